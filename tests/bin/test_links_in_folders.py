"""In a folder from somebody else, a symbolic link can lead anywhere. No command writes,
replaces or removes what is there.
"""

import shutil

import pytest
from tiny_run import train
from tiny_task import contents

from t2tlite.bin import (
    t2t_attention,
    t2t_avg_checkpoints,
    t2t_datagen,
    t2t_decoder,
    t2t_export,
    t2t_report,
    t2t_trainer,
)

pytestmark = pytest.mark.usefixtures("loaded_once")
SPLIT = [t2t_decoder, "--split=test"]
AVERAGE = [t2t_avg_checkpoints]
TRAIN = [t2t_trainer, "--train_steps=130"]
EXPORT = [t2t_export, "--format=ctranslate2", "--export_dir=run/export", "--overwrite"]
CTRANSLATE2 = [t2t_decoder, "--split=dev", "--engine=ctranslate2"]
ATTENTION = [t2t_attention, "--source=cat"]


@pytest.fixture
def run(tiny_run, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_run.run, "mine")  # what a link leads to
    shutil.copytree(tiny_run.run / "best", "mine/averaged")
    return shutil.copytree(tiny_run.run, tmp_path / "run")


@pytest.mark.parametrize(
    ("link", "to", "command"),
    [
        ("averaged", "mine/averaged", AVERAGE),
        ("averaged/.saving", "mine", AVERAGE),
        ("averaged/.lock", "new", AVERAGE),
        ("best", "mine/best", TRAIN),
        ("best/.saving", "mine", TRAIN),
        (".lock", "new", TRAIN),
        ("training.json", "mine/training.json", TRAIN),
        ("flags.txt", "mine/hparams.json", TRAIN),
        ("decodes", "mine", SPLIT),
        ("decodes/test.120.src", "new", SPLIT),
        ("decodes/test.120.txt.part", "mine/hparams.json", SPLIT),
        ("decodes/test.120.txt.pieces", "mine", SPLIT),
        ("attention", "mine", ATTENTION),
        ("report.md", "new", [t2t_report]),
        (".export.exporting", "mine", EXPORT),
        ("export", "mine/export", EXPORT),
        ("ctranslate2", "mine", CTRANSLATE2),
        ("ctranslate2/.converting", "mine", CTRANSLATE2),
    ],
)
def test_a_link_in_a_run(run, tiny_run, tmp_path, capsys, link, to, command):
    record = tmp_path / "mine" / "export" / "export.json"
    record.parent.mkdir()
    record.write_text("{}", encoding="utf-8")
    path = run / link
    path.parent.mkdir(exist_ok=True)
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.symlink_to(tmp_path / to)
    before = contents(tmp_path / "mine"), contents(run / "best")
    program, *flags = command
    if program is t2t_trainer:
        assert train(tiny_run, run, *flags) == 1
    else:
        assert program.main([f"--output_dir={run}", *flags]) == 1
    err = capsys.readouterr().err
    assert f"{link} must not be a link" in err
    assert f"Received: one to {tmp_path / to}. Remove it." in err
    assert (contents(tmp_path / "mine"), contents(run / "best")) == before
    assert not (tmp_path / "new").exists()
    assert path.is_symlink()


@pytest.mark.parametrize("link", ["", "/vocab.model", "/train-00000.arrow"])
def test_a_link_in_data(tiny_run, tmp_path, capsys, link):
    """Data that is there, made from something else, is made anew."""
    data = tmp_path / "data" / "grammar_ende"
    shutil.copytree(tiny_run.data / "twenty_words", tmp_path / "mine")
    if link:
        data.mkdir(parents=True)
    else:
        data.parent.mkdir()
    (tmp_path / "mine" / "manifest.json").unlink()
    (tmp_path / f"data/grammar_ende{link}").symlink_to(tmp_path / f"mine{link}")
    before = contents(tmp_path / "mine")
    flags = "--problem=grammar_ende", f"--data_dir={tmp_path / 'data'}"
    assert t2t_datagen.main([*flags, "--vocab_size=300"]) == 1
    assert f"grammar_ende{link} must not be a link" in capsys.readouterr().err
    assert contents(tmp_path / "mine") == before
