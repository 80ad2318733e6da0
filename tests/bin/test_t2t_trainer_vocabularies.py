"""The command t2t-trainer on data with a vocabulary for each language: only one and the
same content can share embeddings.
"""

import json
import shutil

import pytest
from corpora import SMALL, datagen_flags, write_corpora

from t2tlite.bin import t2t_datagen, t2t_trainer
from t2tlite.programs.runs import train as train_module
from t2tlite.run_folder import RunFolder

SIZE = 285


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """en and de have data of one language alone, whose vocabularies are of the same
    size; two has the vocabularies of both, and same one of them twice.
    """
    folder = tmp_path_factory.mktemp("vocabularies")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_corpora(folder, train=200, dev=12)
        flags = datagen_flags("train", "dev")
        flags[1] = f"--vocab_size={SIZE}"
        for language, other in (("en", "de"), ("de", "en")):
            monolingual = [flag.replace(f".{other}", f".{language}") for flag in flags]
            assert t2t_datagen.main([*monolingual, f"--data_dir={language}"]) == 0
        en, de = (f"{name}/parallel_text/vocab.model" for name in ("en", "de"))
        shutil.copy(en, "copy.model")
        for name, files in (("two", f"{en},{de}"), ("same", f"{en},copy.model")):
            more = [f"--data_dir={name}", f"--vocab_file={files}"]
            assert t2t_datagen.main([*flags, *more]) == 0
        assert sizes(folder, "two") == sizes(folder, "same") == [SIZE, SIZE]
    return folder


def sizes(folder, name):
    manifest = json.loads((folder / name / "parallel_text/manifest.json").read_text())
    return [manifest[key]["size"] for key in ("vocabulary", "target_vocabulary")]


@pytest.fixture
def train(folder, tmp_path, monkeypatch, once):
    """train(data, run, *flags): the exit status of training that takes no steps."""
    monkeypatch.chdir(folder)

    def train(data, run, *more, hparams=SMALL, problem="parallel_text"):
        flags = [f"--problem={problem}", f"--hparams={hparams}", f"--data_dir={data}"]
        return t2t_trainer.main([*flags, f"--output_dir={tmp_path / run}", *more])

    return train


SET = "--hparams_set=transformer_tiny"
UNTIED = f"{SMALL},shared_embedding_and_softmax_weights=false"


@pytest.mark.parametrize("problem", ["parallel_text", "parallel_text_rev"])
def test_vocabularies_of_the_same_size_are_not_shared(
    train, no_training, tmp_path, capsys, problem
):
    how = [SET, "--train_steps=1"]
    assert train("two", "run", *how, problem=problem) == 1
    stderr = capsys.readouterr().err
    for part in (
        "Shared embeddings need one vocabulary",
        "vocab.source.model",
        "vocab.target.model",
        "--hparams=shared_embedding_and_softmax_weights=false",
    ):
        assert part in stderr
    assert not (tmp_path / "run").exists()
    assert train("two", "run", *how, hparams=UNTIED, problem=problem) == 0
    assert (tmp_path / "run" / "hparams.json").exists()


def test_one_vocabulary_given_twice_is_shared(train, no_training):
    assert train("same", "run", SET, "--train_steps=1") == 0


def test_a_changed_vocabulary_is_refused(train, no_training, tmp_path, capsys):
    shutil.copytree("en", tmp_path / "data")
    with (tmp_path / "data" / "parallel_text" / "vocab.model").open("ab") as file:
        file.write(b"x")
    assert train(tmp_path / "data", "run", SET, "--train_steps=1") == 1
    assert "vocab.model must have the SHA-256 recorded" in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_runs_that_share_them_already_continue(
    train, fake_dev_losses, tmp_path, monkeypatch, capsys
):
    """Older ones resume, and their weights can start others, as can tensor2tensor's;
    random weights cannot.
    """
    fake_dev_losses += [3.0] * 5
    with monkeypatch.context() as patch:
        patch.setattr(train_module, "_check_shared_embeddings", lambda *_: None)
        assert train("two", "old", SET, "--train_steps=1") == 0
    assert train("two", "old", "--train_steps=2") == 0
    old = RunFolder(tmp_path / "old")
    assert [record.step for record in old.evaluations()] == [1, 2]
    warm = f"--warm_start_from={old}"
    assert train("two", "new", warm, "--train_steps=1") == 0
    assert train("two", "untied", SET, "--train_steps=1", hparams=UNTIED) == 0
    capsys.readouterr()
    tied = f"--warm_start_from={tmp_path / 'untied'}"
    assert train("two", "tied", SET, tied, "--train_steps=1") == 1
    assert "Shared embeddings need one vocabulary" in capsys.readouterr().err


def test_a_start_without_manifest_is_refused(train, fake_dev_losses, tmp_path, capsys):
    """Nothing says of which vocabulary its embeddings are."""
    fake_dev_losses += [3.0]
    assert train("same", "old", SET, "--train_steps=1") == 0
    (tmp_path / "old" / "manifest.json").unlink()
    warm = f"--warm_start_from={tmp_path / 'old'}"
    assert train("same", "new", SET, warm, "--train_steps=1") == 1
    assert "A run needs its manifest.json." in capsys.readouterr().err
