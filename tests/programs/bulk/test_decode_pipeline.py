"""Files decoded by the workers of a pipeline: the same output, whoever decodes it, and
in however many runs.
"""

from __future__ import annotations

import pickle
import re
import time

import pytest
from bulk_cases import SENTENCES, write

from t2tlite.bin import t2t_decoder
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.programs.bulk import decode_file as module
from t2tlite.programs.bulk.decode_file import decode_by_workers, decode_file
from t2tlite.programs.runs.translator import Translator

pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

LINES = [f"{SENTENCES[i % 6]} {i}" for i in range(20)]
TWO_PROCESSES = "--direct_num_workers=2 --direct_running_mode=multi_processing"


class InThisProcess(Pipeline):
    """A pipeline with one worker, this process."""

    def _run(self, start, files):
        make = start()
        for path, task in files:
            make(path, pickle.loads(task.read_bytes()))


HERE = InThisProcess("here")


@pytest.fixture
def source(tmp_path, monkeypatch):
    """A file of four windows."""
    monkeypatch.setattr(module, "FILE_WINDOW", 6)
    return write(tmp_path / "in.txt", LINES)


@pytest.fixture(autouse=True)
def loaded_by_workers(run, load, monkeypatch):
    """Workers in this process do not load the model again."""
    monkeypatch.setattr(module, "load", lambda *model: load(run, None))


@pytest.fixture
def decoded(run, open_job, tmp_path, source):
    """decoded(name, pipeline, ...): the output of decoding the file."""

    def decode(name, pipeline=None, *changes, **job):
        opened = open_job(*changes, **job)
        if pipeline is None:
            decode_file(opened, source, tmp_path / name)
        else:
            decode_by_workers(opened, run, pipeline, source, tmp_path / name)
        assert [path.name for path in tmp_path.glob(f"{name}*")] == [name]
        return (tmp_path / name).read_bytes()

    return decode


def test_output_is_that_of_one_process(decoded):
    changes = "beam_size=2,return_beams=2"
    assert decoded("out.gz", Pipeline("DirectRunner"), changes) == decoded(
        "local.gz", None, changes
    )


def test_formats_and_prefixes_are_those_of_one_process(decoded, source):
    write(source, ["", *(f"{line}\tkatze" for line in LINES)])
    job = {"output_format": "jsonl", "alignments": True, "prefixes": True}
    output = decoded("out.jsonl", HERE, "return_beams=2", **job)
    assert output == decoded("local.jsonl", None, "return_beams=2", **job)
    assert output.count(b'"text": "katze') == 2 * 20


def test_done_windows_are_not_decoded_again(decoded, tmp_path, monkeypatch):
    expected, calls, decode = decoded("local.txt"), [], module._decode_piece

    def counted(*work):
        calls.append(work)
        if len(calls) == 3:
            raise OSError("the machine is gone")
        decode(*work)

    monkeypatch.setattr(module, "_decode_piece", counted)
    with pytest.raises(
        ChildProcessError,
        match=r"DirectRunner failed: the machine is gone.* The same",
    ):
        decoded("out.txt", Pipeline("DirectRunner"))
    assert not (tmp_path / "out.txt").exists()
    # neither pieces nor half files
    assert [path.name for path in tmp_path.glob("out.txt*")] == ["out.txt.part"]

    assert decoded("out.txt", HERE) == expected
    assert len(calls) == 3 + 2  # of four windows two were left


def test_summary_has_the_seconds_of_all_windows(
    run, open_job, tmp_path, source, monkeypatch
):
    decode, windows = Translator.decode, []

    def slow(*arguments):
        time.sleep(0.2)
        windows.append(arguments)
        if len(windows) == 3:
            raise ChildProcessError("the machine is gone")
        return decode(*arguments)

    monkeypatch.setattr(Translator, "decode", slow)
    work = run, HERE, source, tmp_path / "out.txt"
    with pytest.raises(ChildProcessError, match="gone"):
        decode_by_workers(open_job(), *work)
    summary = decode_by_workers(open_job(), *work)
    assert len(windows) == 3 + 2
    shown = re.match(r"20 sentences in (\S+) s, ", summary)
    assert float(shown[1]) >= 4 * 0.2


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
