"""Files decoded by the workers of a pipeline: the same output, whoever decodes it, and
in however many runs.
"""

from __future__ import annotations

import re
import time

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.programs.bulk import decode_pipeline
from t2tlite.programs.bulk.decode_file import decode_file
from t2tlite.programs.bulk.decode_pipeline import decode_by_workers
from t2tlite.programs.bulk.jobs import PLAIN, DecodeJob, LineFormat
from t2tlite.programs.runs.translator import decode_options
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

LINES = [
    "red cat sees dog",
    "",
    "bird hears white mouse now",
    "fish likes horse",
    "black dog bites cat today",
] * 4
TWO_PROCESSES = "--direct_num_workers=2 --direct_running_mode=multi_processing"


class InThisProcess(Pipeline):
    """A pipeline with one worker, this process; `seconds` is what each of its tasks
    takes in addition.
    """

    seconds = 0.0

    def run(self, start, tasks):
        worker = start()
        for task in tasks:
            time.sleep(self.seconds)
            worker(task)


HERE = InThisProcess("here")


@pytest.fixture
def source(tmp_path, monkeypatch):
    for module in ("decode_file", "decode_pipeline"):
        # so that there are four
        monkeypatch.setattr(f"t2tlite.programs.bulk.{module}.FILE_WINDOW", 6)
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def open_job(tiny_run, load, monkeypatch):
    """open_job(changes, line_format): a job of the run, whose model is loaded once."""
    monkeypatch.setattr(
        decode_pipeline, "load", lambda run, *others: load(tiny_run.run, None)
    )

    def run(changes="beam_size=2", line_format=PLAIN):
        options = decode_options(RunFolder(tiny_run.run).manifest(), changes)
        return DecodeJob(load(tiny_run.run, None), options, line_format)

    return run


@pytest.fixture
def decoded(tiny_run, open_job, tmp_path, source):
    """decoded(name, pipeline, ...): the output of decoding the file."""

    def run(name, pipeline=None, *job):
        if pipeline is None:
            decode_file(open_job(*job), source, tmp_path / name)
        else:
            decode_by_workers(
                open_job(*job), tiny_run.run, pipeline, source, tmp_path / name
            )
        assert not (tmp_path / f"{name}.windows").exists()
        return (tmp_path / name).read_bytes()

    return run


def test_output_is_that_of_one_process(decoded):
    changes = "beam_size=2,return_beams=2"
    assert decoded("out.gz", Pipeline("DirectRunner"), changes) == decoded(
        "local.gz", None, changes
    )


def test_formats_and_prefixes_are_those_of_one_process(decoded, source):
    source.write_text("".join(f"{line}\tkatze\n" if line else "\n" for line in LINES))
    job = "return_beams=2", LineFormat("jsonl", alignments=True, prefixes=True)
    output = decoded("out.jsonl", HERE, *job)
    assert output == decoded("local.jsonl", None, *job)
    assert output.count(b'"text": "katze') == 2 * 16


def test_done_windows_are_not_decoded_again(decoded, tmp_path, monkeypatch):
    expected, calls, decode = decoded("local.txt"), [], decode_pipeline._decode_window

    def counted(job, paths):
        calls.append(paths)
        if len(calls) == 3:
            raise OSError("the machine is gone")
        decode(job, paths)

    monkeypatch.setattr(decode_pipeline, "_decode_window", counted)
    with pytest.raises(
        ChildProcessError,
        match=r"DirectRunner failed: the machine is gone.* Run the same",
    ):
        decoded("out.txt", Pipeline("DirectRunner"))
    assert not (tmp_path / "out.txt").exists()
    assert len(list((tmp_path / "out.txt.windows").glob("*.out.json"))) == 2
    assert not list((tmp_path / "out.txt.windows").glob("*.tmp"))

    assert decoded("out.txt", HERE) == expected
    assert len(calls) == 3 + 2  # of four windows two were left


def test_windows_of_other_options_are_not_used(decoded, tmp_path):
    folder = tmp_path / "out.txt.windows"
    folder.mkdir()
    (folder / f"{'0' * 32}.out.json").write_text('{"lines": ["wrong"], "counts": {}}')
    assert decoded("out.txt", HERE) == decoded("local.txt")


def test_foreign_folder_of_windows_is_refused(decoded, tmp_path):
    folder = tmp_path / "out.txt.windows"
    folder.mkdir()
    (folder / "photo.jpg").touch()
    with pytest.raises(
        ValueError,
        match=(
            r"out\.txt\.windows must have nothing but .* Received: photo\.jpg, perhaps"
            r" yours"
        ),
    ):
        decoded("out.txt", HERE)
    assert [path.name for path in folder.iterdir()] == ["photo.jpg"]


def test_only_windows_are_removed(decoded, tmp_path, monkeypatch):
    folder, read = tmp_path / "out.txt.windows", decode_pipeline.read_record

    def add_photo(*arguments):
        (folder / "photo.jpg").touch()  # while it is decoded
        return read(*arguments)

    monkeypatch.setattr(decode_pipeline, "read_record", add_photo)
    with pytest.raises(AssertionError):  # that the folder does not exist
        decoded("out.txt", HERE)
    assert [path.name for path in folder.iterdir()] == ["photo.jpg"]


def test_summary_has_the_time_of_all_runs(
    tiny_run, open_job, tmp_path, source, monkeypatch
):
    seconds = []

    class Slow(InThisProcess):
        seconds = 0.2

        def run(self, start, tasks):
            super().run(start, tasks[:2])
            if not seconds:
                raise ChildProcessError("the machine is gone")
            super().run(start, tasks[2:])

    work = tiny_run.run, Slow("here"), source, tmp_path / "out.txt"
    with pytest.raises(ChildProcessError, match="gone"):
        decode_by_workers(open_job(), *work)
    seconds.append(True)
    summary = decode_by_workers(open_job(), *work)
    shown = re.match(r"20 sentences in (\S+) s, ", summary)
    assert float(shown[1]) >= 4 * 0.2


def test_workers_that_do_not_see_the_folder_are_named(decoded, monkeypatch):
    monkeypatch.setattr(
        decode_pipeline, "_start_decoding", lambda *args: lambda paths: None
    )
    with pytest.raises(
        ChildProcessError,
        match=r"must see .*out\.txt\.windows under the same path .* Received: no ",
    ):
        decoded("out.txt", HERE)


@pytest.mark.slow
def test_command_with_two_worker_processes(tiny_run, source, tmp_path):
    flags = [
        f"--output_dir={tiny_run.run}",
        f"--decode_from_file={source}",
        "--decode_hparams=beam_size=2",
    ]
    assert t2t_decoder.main([*flags, f"--decode_to_file={tmp_path}/local.txt"]) == 0
    beam = ["--beam_runner=DirectRunner", f"--beam_options={TWO_PROCESSES}"]
    assert (
        t2t_decoder.main([*flags, f"--decode_to_file={tmp_path}/beam.txt", *beam]) == 0
    )
    assert (tmp_path / "beam.txt").read_bytes() == (tmp_path / "local.txt").read_bytes()


def test_split_is_not_decoded_by_workers(tiny_run, source, capsys):
    assert (
        t2t_decoder.main(
            [
                f"--output_dir={tiny_run.run}",
                "--split=dev",
                "--beam_runner=DirectRunner",
            ]
        )
        == 1
    )
    assert (
        "--beam_runner goes with --decode_from_file and --decode_to_file."
        in capsys.readouterr().err
    )
