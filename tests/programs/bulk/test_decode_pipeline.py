"""Files decoded by the workers of a pipeline: the same output, whoever decodes it, and in however many runs."""

from __future__ import annotations

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.data.pipeline import Pipeline
from t2tlite.programs.bulk import decode, decode_pipeline
from t2tlite.programs.bulk.decode_file import decode_file
from t2tlite.programs.bulk.decode_pipeline import Workers
from t2tlite.programs.bulk.line_format import PLAIN, LineFormat
from t2tlite.programs.runs.translator import decode_options
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

LINES = ["red cat sees dog", "", "bird hears white mouse now", "fish likes horse", "black dog bites cat today"] * 4
TWO_THREADS = "--direct_num_workers=2 --direct_running_mode=multi_threading"
TWO_PROCESSES = "--direct_num_workers=2 --direct_running_mode=multi_processing"


@pytest.fixture
def source(tmp_path, monkeypatch):
    monkeypatch.setattr(decode, "WINDOW", 6)  # so that there are four
    path = tmp_path / "in.txt"
    path.write_text("".join(f"{line}\n" for line in LINES))
    return path


@pytest.fixture
def decoded(tiny_run, load, tmp_path, source, monkeypatch):
    """decoded(name, options, workers): the output of decoding the file; the model is loaded once."""
    monkeypatch.setattr(decode_pipeline, "load", lambda run, *others: load(tiny_run.run, None))

    def run(name, changes="beam_size=2", pipeline=None, form=PLAIN):
        options = decode_options(RunFolder(tiny_run.run).manifest(), changes)
        workers = None if pipeline is None else Workers(pipeline, tiny_run.run)
        decode_file(load(tiny_run.run, None), source, tmp_path / name, options, workers, form)
        assert not (tmp_path / f"{name}.windows").exists()
        return (tmp_path / name).read_bytes()

    return run


@pytest.mark.parametrize(
    ("name", "changes"),
    [("out.txt", "beam_size=2"), ("out.gz", "beam_size=3,return_beams=2")],
)
def test_the_output_is_that_of_one_process(decoded, name, changes):
    assert decoded(name, changes, Pipeline("DirectRunner")) == decoded(f"local.{name}", changes)


def test_formats_and_prefixes(decoded, source):
    source.write_text("".join(f"{line}\tkatze\n" if line else "\n" for line in LINES))
    form = LineFormat("jsonl", alignments=True, prefixes=True)
    found = decoded("out.jsonl", "return_beams=2", Pipeline("DirectRunner"), form)
    assert found == decoded("local.jsonl", "return_beams=2", form=form)
    assert found.count(b'"text": "katze') == 2 * 16


def test_windows_that_are_done_are_not_decoded_again(decoded, tmp_path, monkeypatch):
    expected, calls = decoded("local.txt"), []
    lines = decode_pipeline.decode_lines

    def counted(model, sentences, *args, **more):
        calls.append(len(sentences))
        if len(calls) == 3:
            raise OSError("the machine is gone")
        return lines(model, sentences, *args, **more)

    monkeypatch.setattr(decode_pipeline, "decode_lines", counted)
    with pytest.raises(ChildProcessError, match=r"DirectRunner failed: the machine is gone.* Run the same"):
        decoded("out.txt", pipeline=Pipeline("DirectRunner"))
    assert not (tmp_path / "out.txt").exists()
    assert len(list((tmp_path / "out.txt.windows").glob("*.out.json"))) == 2
    assert not list((tmp_path / "out.txt.windows").glob("*.tmp"))

    assert decoded("out.txt", pipeline=Pipeline("DirectRunner")) == expected
    assert len(calls) == 3 + 2  # of four windows two were left


def test_windows_of_other_options_are_not_used(decoded, tmp_path):
    decoded("other.txt", "beam_size=1", Pipeline("DirectRunner"))
    folder = tmp_path / "out.txt.windows"
    folder.mkdir()
    (folder / f"{'0' * 32}.out.json").write_text('{"lines": ["wrong"], "counts": {}}')
    assert decoded("out.txt", "beam_size=2", Pipeline("DirectRunner")) == decoded("local.txt", "beam_size=2")


def test_workers_that_do_not_see_the_folder(decoded, monkeypatch):
    monkeypatch.setattr(decode_pipeline, "_start_decoding", lambda *args: lambda paths: None)
    with pytest.raises(ChildProcessError, match=r"must see .*out\.txt\.windows under the same path .* Received: no "):
        decoded("out.txt", pipeline=Pipeline("DirectRunner"))


@pytest.mark.slow
def test_the_command_with_two_worker_processes(tiny_run, source, tmp_path):
    flags = [f"--output_dir={tiny_run.run}", f"--decode_from_file={source}", "--decode_hparams=beam_size=2"]
    assert t2t_decoder.main([*flags, f"--decode_to_file={tmp_path}/local.txt"]) == 0
    beam = ["--beam_runner=DirectRunner", f"--beam_options={TWO_PROCESSES}"]
    assert t2t_decoder.main([*flags, f"--decode_to_file={tmp_path}/beam.txt", *beam]) == 0
    assert (tmp_path / "beam.txt").read_bytes() == (tmp_path / "local.txt").read_bytes()


def test_flags_that_do_not_go_together(tiny_run, source, capsys):
    assert t2t_decoder.main([f"--output_dir={tiny_run.run}", "--split=dev", "--beam_runner=DirectRunner"]) == 1
    assert "--beam_runner goes with --decode_from_file and --decode_to_file." in capsys.readouterr().err
