"""The command t2t-export, whatever the format: what it leaves in the folder, and what
it says of mistakes.
"""

import dataclasses
import json
from copy import copy as copy_of
from pathlib import Path
from types import SimpleNamespace

import exports
import pytest
import tensorflow as tf
from tiny_run import change_manifest
from tiny_task import contents

import t2tlite
from t2tlite.decoding.engine import EVERYTHING
from t2tlite.files.own_files import only_process
from t2tlite.programs.export.export import sample_sentences
from t2tlite.programs.export.formats import FORMATS, ExportFormat
from t2tlite.programs.runs import load as runs

resource = pytest.importorskip("resource", reason="not on Windows")

pytestmark = pytest.mark.usefixtures("loaded_once")
FILES = ["out/README.md", "out/export.json", "out/model.bin"]


@dataclasses.dataclass(frozen=True)
class QuickFormat(ExportFormat):
    name = "quick"
    supported = EVERYTHING
    compared_with = {"beam_size": 1, "return_beams": 1}  # noqa: RUF012

    def write(self, model, folder, decoding):
        (folder / "model.bin").write_bytes(bytes(100_000))
        return {}

    def open(self, model, folder):
        return lambda sentences, options: model.translate(sentences, beam_size=1)


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    """The format `quick`; replaces a method of it."""
    monkeypatch.setitem(FORMATS, "quick", QuickFormat)

    def replace(name, function):
        monkeypatch.setattr(
            QuickFormat, name, lambda self, *arguments: function(*arguments)
        )

    return replace


def export(run: Path, target: Path, *more: str) -> int:
    return exports.export(run, target, "--format=quick", *more)


@pytest.fixture
def refused(capsys):
    """The one message of an export that failed."""

    def message_of(run: Path, target: Path, *more: str) -> str:
        capsys.readouterr()
        assert export(run, target, *more) == 1
        output = capsys.readouterr()
        assert output.out == ""
        assert output.err.count("t2tlite: ") == 1
        assert "Traceback" not in output.err
        return output.err

    return message_of


def record_of(folder: Path) -> dict:
    return json.loads((folder / "export.json").read_text())


def test_an_export_is_a_folder_with_its_record(tiny_run, tmp_path, capsys):
    target = tmp_path / "new" / "out"
    assert export(tiny_run.run, target, "--decode_hparams=beam_size=3") == 0
    assert sorted(contents(tmp_path / "new")) == FILES
    record = record_of(target)
    actual = record["format"], record["problem"], record["step"]
    assert actual == ("quick", "twenty_words", 120)
    assert record["decode_hparams"]["beam_size"] == 3
    readme = (target / "README.md").read_text()
    assert readme == "# twenty_words, step 120, as quick\n\n"
    out, err = capsys.readouterr()
    assert err.splitlines()[-3:] == [
        f"Loading {tiny_run.run} ...",
        "Writing the model as quick ...",
        "Decoding 12 sentences with the export and the run ...",
    ]
    assert out.startswith(
        f"Exported {tiny_run.run}/model.ckpt-120 to {target}. Equal to the run: 12"
        " of 12 translations."
    )


def test_an_existing_export_is_kept_without_overwrite(tiny_run, tmp_path, refused):
    assert export(tiny_run.run, tmp_path / "out") == 0
    (tmp_path / "out" / "mine").write_text("mine")
    before = contents(tmp_path)
    message = refused(tiny_run.run, tmp_path / "out")
    assert f"with overwrite another export. Received: {tmp_path / 'out'}." in message
    assert contents(tmp_path) == before
    assert export(tiny_run.run, tmp_path / "out", "--overwrite") == 0
    assert sorted(contents(tmp_path)) == FILES


def test_what_is_no_export_is_never_replaced(tiny_run, tmp_path, refused):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    for name in ("out", "file"):
        message = refused(tiny_run.run, tmp_path / name, "--overwrite")
        assert f"another export. Received: {tmp_path / name}." in message
    assert contents(tmp_path) == before


def test_an_empty_folder_is_used_and_a_link_is_kept(tiny_run, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert export(tiny_run.run, tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "export.json").is_file()


def test_difference_leaves_nothing_and_keeps_earlier_export(
    tiny_run, quick, tmp_path, refused
):
    def wrong(model, folder):
        assert (folder / "model.bin").is_file()
        return lambda sentences, options: ["wrong"] * 12

    assert export(tiny_run.run, tmp_path / "out") == 0
    before = contents(tmp_path)
    quick("open", wrong)
    for name in ("out", "other"):
        message = refused(tiny_run.run, tmp_path / name, "--overwrite")
        assert "must decode as the run does. Received for '" in message
        assert "'wrong' from the export, '" in message
        assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_full_disk(tiny_run, quick, tmp_path, refused):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        message = refused(tiny_run.run, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"File too large: {tmp_path}/out. Free some space" in message

    def fail(*_):  # as TensorFlow reports it
        reason = "{{function_node SaveV2}} variables; No space left on device"
        raise tf.errors.ResourceExhaustedError(None, None, reason)

    quick("write", fail)
    message = refused(tiny_run.run, tmp_path / "out")
    assert f"The export must fit on the disk of {tmp_path}/out. " in message
    assert "variables; No space left on device" in message
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--format=onnx", "format must be one of saved_model, ctranslate2, argos"),
        ("--format=", "--format must be given"),
        ("--export_dir=", "--export_dir must be given"),
        ("--quantization=int8", "format=quick has no option quantization."),
        ("--languages=en-de", "has no option languages. Leave it out."),
        ("--checkpoint_path=7", "There is no checkpoint"),
    ],
)
def test_mistakes(tiny_run, tmp_path, refused, flag, message):
    assert message in refused(tiny_run.run, tmp_path / "out", flag)
    assert list(tmp_path.iterdir()) == []


def test_the_python_api_and_another_checkpoint(tiny_run, tmp_path):
    model = t2tlite.load(tiny_run.run)
    folder = tmp_path / "out"
    assert model.export(folder, "quick", beam_size=2) == folder
    assert record_of(folder)["decode_hparams"]["beam_size"] == 2
    flags = "--overwrite", "--checkpoint_path=model.ckpt-40"
    assert export(tiny_run.run, folder, *flags) == 0
    assert record_of(folder)["step"] == 40
    with pytest.raises(ValueError, match="with overwrite another export"):
        model.export(folder, "quick")
    with pytest.raises(ValueError, match="has no field 'beam'"):
        model.export(tmp_path / "other", "quick", beam=2)


def test_a_model_of_another_engine_is_refused(tiny_run, tmp_path):
    model = copy_of(t2tlite.load(tiny_run.run))
    model.engine = SimpleNamespace(name="ctranslate2")
    with pytest.raises(ValueError, match=r"Received: engine=ctranslate2\."):
        model.export(tmp_path / "out", "quick")
    assert not list(tmp_path.iterdir())


def test_one_process_at_a_time_exports_to_a_folder(tiny_run, tmp_path, refused):
    with only_process(tmp_path / ".out.exporting", "export to a folder"):
        message = refused(tiny_run.run, tmp_path / "out")
    assert "Only one process at a time can export to a folder" in message
    assert not list(tmp_path.iterdir())


def test_sentences_are_made_where_the_data_is_gone(
    tiny_run_copy, quick, tmp_path, capsys
):
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    seen = []

    original = QuickFormat.open

    def opened(model, folder):
        translate = original(None, model, folder)
        return lambda texts, options: seen.extend(texts) or translate(texts, options)

    quick("open", opened)
    assert export(tiny_run_copy, tmp_path / "out") == 0
    assert "Equal to the run: 12 of 12 translations." in capsys.readouterr().out
    assert len(seen) == len({*seen}) == 12
    assert all(sentence.strip() for sentence in seen)


def test_sentences_of_digits_alone():
    encoder = SimpleNamespace(vocab_size=8, encode_batch=list)
    encoder.decode = lambda ids: str(ids[0] - 2)
    manifest = SimpleNamespace(data_dir="")
    model = SimpleNamespace(source_encoder=encoder, manifest=manifest)
    assert sample_sentences(model) == ["0 1 2 3", "4 5"]


def test_a_plan_is_checked_before_the_model_is_loaded(
    tiny_run, quick, tmp_path, refused, monkeypatch
):
    def refuse(run, folder):
        raise ValueError("Quick formats have no parsers.")

    quick("check", refuse)
    monkeypatch.setattr(runs, "load", lambda *_: pytest.fail("loaded"))
    message = refused(tiny_run.run, tmp_path / "out")
    assert message == "t2tlite: Quick formats have no parsers.\n"
    assert not list(tmp_path.iterdir())


def test_an_export_made_meanwhile_is_kept(tiny_run, tmp_path, refused, monkeypatch):
    """By another process, while this one loads the model."""
    other = tmp_path / "out"
    load = runs.load

    def load_meanwhile(*arguments, **options):
        other.mkdir()
        (other / "export.json").write_text("theirs")
        return load(*arguments, **options)

    monkeypatch.setattr(runs, "load", load_meanwhile)
    assert "or with overwrite another export." in refused(tiny_run.run, other)
    assert list(contents(tmp_path)) == ["out/export.json"]
    assert (other / "export.json").read_text() == "theirs"
