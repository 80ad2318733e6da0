"""Files of version 1.0.0rc1, which every 1.x reads: tests/fixtures/formats/1."""

import json
import shutil
from pathlib import Path

import pytest
from eager import run_eagerly
from tiny_run import checkpoint_names, tensors

from t2tlite.bin import t2t_decoder, t2t_trainer
from t2tlite.run_folder import RunFolder

FORMATS = Path(__file__).parent / "fixtures" / "formats" / "1"


@pytest.fixture
def formats(tmp_path, monkeypatch) -> Path:
    """A copy, as the current folder."""
    folder = Path(shutil.copytree(FORMATS, tmp_path / "formats"))
    monkeypatch.chdir(folder)
    return folder


def test_a_run_decodes_as_it_did(formats):
    flags = [
        "--output_dir=run",
        "--decode_from_file=input.en",
        "--decode_to_file=out",
        "--decode_hparams=beam_size=1,extra_length=0",
    ]
    with run_eagerly():
        assert t2t_decoder.main(flags) == 0
    lines = Path("out").read_text(encoding="utf-8").removesuffix("\n").split("\n")
    assert len(lines) == 11
    # what that version had done when it was interrupted; not read any more
    (window,) = Path("out.windows").glob("*.json")
    assert lines[:4] == json.loads(window.read_text())["output"]["lines"]


def test_training_resumes(formats, monkeypatch, capsys):
    before = tensors("run/model.ckpt-4")
    flags = ["--flagfile=run/flags.txt", "--keep_checkpoint_max=2", "--train_steps=5"]
    with run_eagerly():
        assert t2t_trainer.main(flags) == 0
    assert "1 replica; resuming from step 4." in capsys.readouterr().err
    assert checkpoint_names(formats / "run") == ["model.ckpt-4", "model.ckpt-5"]
    assert tensors("run/model.ckpt-5").keys() == before.keys()
    steps = [evaluation.step for evaluation in RunFolder(Path("run")).evaluations()]
    assert steps == [4, 5]


def test_the_fixture_is_that_of_the_version():
    """Made anew by a later version, it would test nothing."""
    for record in ("run/manifest.json", "data/parallel_text/manifest.json"):
        content = json.loads((FORMATS / record).read_text(encoding="utf-8"))
        assert (content["t2tlite"], content["format_version"]) == ("1.0.0rc1", 1)
