"""The command t2t-export, whatever the format: what it leaves in the folder, and what
it says of mistakes.
"""

from __future__ import annotations

import json
from copy import copy as copy_of
from pathlib import Path
from types import SimpleNamespace

import pytest
import tensorflow as tf
from tiny_run import change_manifest, last_of_each
from tiny_task import contents

import t2tlite
from t2tlite.bin import t2t_export
from t2tlite.files.lock import only_process
from t2tlite.programs.export.export import FORMATS
from t2tlite.programs.export.plan import ExportFormat
from t2tlite.programs.runs import load as runs

resource = pytest.importorskip("resource", reason="not on Windows")

pytestmark = pytest.mark.usefixtures("loaded_once")


class QuickFormat(ExportFormat):
    name = "quick"

    def write(self, model, folder, plan):
        (folder / "model.bin").write_bytes(bytes(100_000))
        return "A paragraph."

    def open(self, model, folder, plan):
        raise NotImplementedError

    def verify(self, model, folder, plan, sentences):
        return "nothing"


@pytest.fixture
def quick(monkeypatch) -> QuickFormat:
    """A format `quick`, whose methods a test can replace."""
    format_ = QuickFormat()
    monkeypatch.setitem(FORMATS, "quick", format_)
    return format_


def export(run: Path, target: Path, *more: str) -> int:
    return t2t_export.main(
        last_of_each(
            f"--output_dir={run}",
            f"--export_dir={target}",
            "--format=quick",
            *more,
        )
    )


def refused(capsys, status: int) -> str:
    """The one message of a command that failed."""
    assert status == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("t2tlite: ") == 1
    assert "Traceback" not in output.err
    return output.err


def test_an_export_is_a_folder_with_its_record(tiny_run, quick, tmp_path, capsys):
    target = tmp_path / "new" / "out"
    assert export(tiny_run.run, target, "--decode_hparams=beam_size=3") == 0
    assert sorted(path.name for path in target.iterdir()) == [
        "README.md",
        "export.json",
        "model.bin",
    ]
    assert [path.name for path in target.parent.iterdir()] == ["out"]
    record = json.loads((target / "export.json").read_text())
    assert (record["format"], record["problem"], record["step"]) == (
        "quick",
        "twenty_words",
        120,
    )
    assert record["decode_hparams"]["beam_size"] == 3
    assert "A paragraph." in (target / "README.md").read_text()
    out, err = capsys.readouterr()
    assert err.splitlines()[-3:] == [
        f"Loading {tiny_run.run} ...",
        "Writing the model as quick ...",
        "Decoding 12 sentences with the export and the run ...",
    ]
    assert out.startswith(
        f"Exported {tiny_run.run}/model.ckpt-120 to {target}. Equal to the run: nothing"
        " of 12 sentences"
    )


def test_an_existing_export_is_kept_without_overwrite(
    tiny_run, quick, tmp_path, capsys
):
    assert export(tiny_run.run, tmp_path / "out") == 0
    (tmp_path / "out" / "mine").write_text("mine")
    before = contents(tmp_path)
    capsys.readouterr()
    message = refused(capsys, export(tiny_run.run, tmp_path / "out"))
    assert "must be a new folder" in message
    assert "which holds an export. Name another folder, or set overwrite" in message
    assert contents(tmp_path) == before
    assert export(tiny_run.run, tmp_path / "out", "--overwrite") == 0
    assert sorted(contents(tmp_path)) == [
        "out/README.md",
        "out/export.json",
        "out/model.bin",
    ]


def test_what_is_no_export_is_never_replaced(tiny_run, quick, tmp_path, capsys):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "letter").write_text("mine")
    (tmp_path / "file").write_text("mine")
    before = contents(tmp_path)
    for name in ("out", "file"):
        message = refused(capsys, export(tiny_run.run, tmp_path / name, "--overwrite"))
        assert (
            f"or with overwrite that of another export. Received: {tmp_path / name}"
            in message
        )
    assert contents(tmp_path) == before


def test_an_empty_folder_is_used_and_a_link_is_kept(tiny_run, quick, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "empty")
    assert export(tiny_run.run, tmp_path / "link") == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "empty" / "export.json").is_file()


def test_difference_leaves_nothing_and_keeps_earlier_export(
    tiny_run, quick, tmp_path, capsys
):
    def differs(model, folder, plan, sentences):
        assert (folder / "model.bin").is_file()
        raise ValueError("An export must decode as the run does.")

    assert export(tiny_run.run, tmp_path / "out") == 0
    before = contents(tmp_path)
    quick.verify = differs
    capsys.readouterr()
    for name in ("out", "other"):
        assert "must decode as the run does" in refused(
            capsys, export(tiny_run.run, tmp_path / name, "--overwrite")
        )
        assert contents(tmp_path) == before
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_an_export_that_was_killed_is_cleared_by_the_next(tiny_run, quick, tmp_path):
    """Killed when the earlier export was moved aside, and the new one was not yet in
    its place.
    """
    assert export(tiny_run.run, tmp_path / "out") == 0
    work = tmp_path / ".out.exporting"
    (work / "new").mkdir(parents=True)
    (tmp_path / "out").rename(work / "old")
    (work / ".lock").touch()
    quick.verify = lambda *_: 1 / 0
    assert export(tiny_run.run, tmp_path / "out", "--overwrite") == 1
    assert sorted(contents(tmp_path)) == [
        "out/README.md",
        "out/export.json",
        "out/model.bin",
    ]


def test_earlier_export_returns_if_the_new_one_cannot_be_moved(
    tiny_run, quick, tmp_path, capsys, monkeypatch
):
    assert export(tiny_run.run, tmp_path / "out") == 0
    before, rename = contents(tmp_path), Path.rename

    def fail_for_the_new_one(path, target):
        if path.name == "new":
            raise OSError("Input/output error")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    capsys.readouterr()
    assert "Input/output error" in refused(
        capsys, export(tiny_run.run, tmp_path / "out", "--overwrite")
    )
    assert contents(tmp_path) == before


def test_path_that_tensorflow_takes_for_a_pattern_is_refused(tiny_run, tmp_path):
    with pytest.raises(
        ValueError,
        match=r"must have no brackets or backslashes: .* Name another export_dir\.",
    ):
        t2tlite.load(tiny_run.run).export(tmp_path / "served[1]")
    assert not list(tmp_path.iterdir())


def test_a_full_disk(tiny_run, quick, tmp_path, capsys):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, hard))
    try:
        status = export(tiny_run.run, tmp_path / "out")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert f"export_dir={tmp_path}/out cannot be written: [Errno 27]" in refused(
        capsys, status
    )
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        (
            "--format=onnx",
            f"format must be one of {', '.join(FORMATS)}. Received: 'onnx'.",
        ),
        ("--format=", "--format must be given"),
        ("--export_dir=", "--export_dir must be given"),
    ],
)
def test_mistakes(tiny_run, tmp_path, capsys, flag, message):
    assert message in refused(capsys, export(tiny_run.run, tmp_path / "out", flag))
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_made(tiny_run, quick, tmp_path, capsys):
    (tmp_path / "file").write_text("")
    message = refused(capsys, export(tiny_run.run, tmp_path / "file" / "out"))
    assert f"export_dir={tmp_path}/file/out cannot be written: " in message
    assert "Name another folder" in message


def test_no_checkpoint(tiny_run_copy, tmp_path, capsys, quick):
    for path in tiny_run_copy.glob("model.ckpt-*"):
        path.unlink()
    assert "heckpoint" in refused(capsys, export(tiny_run_copy, tmp_path / "out"))
    assert not (tmp_path / "out").exists()


def test_the_python_api_and_another_checkpoint(tiny_run, quick, tmp_path):
    model = t2tlite.load(tiny_run.run)
    assert model.export(tmp_path / "out", "quick", beam_size=2) == tmp_path / "out"
    assert (
        json.loads((tmp_path / "out" / "export.json").read_text())["decode_hparams"][
            "beam_size"
        ]
        == 2
    )
    assert (
        export(
            tiny_run.run,
            tmp_path / "out",
            "--overwrite",
            "--checkpoint_path=model.ckpt-40",
        )
        == 0
    )
    assert json.loads((tmp_path / "out" / "export.json").read_text())["step"] == 40
    with pytest.raises(ValueError, match="holds an export"):
        model.export(tmp_path / "out", "quick")
    with pytest.raises(ValueError, match="has no field 'beam'"):
        model.export(tmp_path / "other", "quick", beam=2)


def test_a_model_of_another_engine_is_refused(tiny_run, quick, tmp_path):
    model = copy_of(t2tlite.load(tiny_run.run))
    model.engine = SimpleNamespace(name="ctranslate2")
    with pytest.raises(
        ValueError,
        match=(
            r"Received: one loaded with engine=ctranslate2\. Load the run without"
            r" naming"
        ),
    ):
        model.export(tmp_path / "out", "quick")
    assert not list(tmp_path.iterdir())


def test_one_process_at_a_time_exports_to_a_folder(tiny_run, quick, tmp_path, capsys):
    with only_process(tmp_path / ".out.exporting", "export to a folder"):
        message = refused(capsys, export(tiny_run.run, tmp_path / "out"))
    assert "Only one process at a time can export to a folder" in message
    assert not list(tmp_path.iterdir())


def test_sentences_are_made_where_the_data_is_gone(
    tiny_run_copy, quick, tmp_path, capsys
):
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    seen = []
    quick.verify = lambda model, folder, plan, sentences: seen.extend(sentences)
    assert export(tiny_run_copy, tmp_path / "out") == 0
    assert (
        "None of 12 sentences made of the vocabulary's words" in capsys.readouterr().out
    )
    assert len(seen) == len({*seen}) == 12
    assert all(sentence.strip() for sentence in seen)


def test_a_full_disk_that_tensorflow_reports(tiny_run, quick, tmp_path, capsys):
    message = "{{function_node SaveV2}} variables; No space left on device"

    def fail(*_):
        raise tf.errors.ResourceExhaustedError(None, None, message)

    quick.write = fail
    assert (
        f"export_dir={tmp_path}/out cannot be written: variables; No space left on"
        " device. Make room"
    ) in refused(capsys, export(tiny_run.run, tmp_path / "out"))
    assert not list(tmp_path.iterdir())


def test_a_plan_is_checked_once_and_before_the_model_is_loaded(
    tiny_run, quick, tmp_path, capsys, monkeypatch
):
    checks = []
    quick.check = checks.append
    assert export(tiny_run.run, tmp_path / "out") == 0
    t2tlite.load(tiny_run.run).export(tmp_path / "python", "quick")
    assert [plan.folder for plan in checks] == [tmp_path / "out", tmp_path / "python"]

    def refuse(plan):
        raise ValueError("Quick formats have no parsers.")

    quick.check = refuse
    capsys.readouterr()
    message = refused(capsys, export(tiny_run.run, tmp_path / "other"))
    assert message == "t2tlite: Quick formats have no parsers.\n"
    assert not (tmp_path / "other").exists()


def test_an_export_made_meanwhile_is_kept(
    tiny_run, quick, tmp_path, capsys, monkeypatch
):
    """By another process, while this one loads the model."""
    other = tmp_path / "out"
    load = runs.load

    def load_meanwhile(*arguments, **options):
        other.mkdir()
        (other / "export.json").write_text("theirs")
        return load(*arguments, **options)

    monkeypatch.setattr(runs, "load", load_meanwhile)
    message = refused(capsys, export(tiny_run.run, other))
    assert "which holds an export. Name another folder" in message
    assert list(contents(tmp_path)) == ["out/export.json"]
    assert (other / "export.json").read_text() == "theirs"
