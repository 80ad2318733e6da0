"""t2t-datagen and t2t-trainer with several training corpora and their weights."""

import dataclasses
import re

import numpy as np
import pytest
from corpora import SMALL, datagen_flags, write_corpora
from run_command import refusal, said
from tiny_run import change_manifest, checkpoint_names, tensors
from tiny_task import contents

from t2tlite.bin import t2t_datagen, t2t_decoder, t2t_report, t2t_trainer
from t2tlite.data.dataset import open_dataset
from t2tlite.data.manifest import read_manifest
from t2tlite.programs.runs.training import warm_start_hparams
from t2tlite.run_folder import RunFolder


@pytest.fixture
def files(tmp_path, monkeypatch):
    """The flags of t2t-datagen for two corpora, whose files are in the current
    folder.
    """
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path, real=120, back=30, dev=10)
    return datagen_flags("real,back", "dev")


def train(run, *more, problem="parallel_text", steps=2):
    flags = [
        f"--problem={problem}",
        "--hparams_set=transformer_tiny",
        "--data_dir=data",
        f"--output_dir={run}",
    ]
    return t2t_trainer.main([*flags, f"--train_steps={steps}", *more])


def weighted(weights):
    return f"--hparams={SMALL},corpus_weights={weights}"


@pytest.fixture
def data(files, tmp_path, monkeypatch, capsys):
    """The folder of their data, and its summary."""
    assert t2t_datagen.main([*files, "--data_dir=data"]) == 0
    return tmp_path / "data" / "parallel_text", capsys.readouterr().out


def join_corpora(folder):
    """Makes the data what earlier versions made of several training files: one
    split.
    """
    manifest = read_manifest(folder)
    both = manifest.corpora["train"] + manifest.corpora["train2"]
    kept = {"train": both} | {
        name: split
        for name, split in manifest.splits.items()
        if name not in manifest.corpora
    }
    splits = {name: dataclasses.asdict(split) for name, split in kept.items()}
    change_manifest(folder, splits=splits)


def test_each_corpus_is_in_the_manifest_and_the_summary(data, files, capsys):
    folder, summary = data
    dataset = open_dataset(folder.parent, "parallel_text")
    splits = dataset.manifest.splits
    pairs = {"train": 120, "train2": 30, "dev": 10}
    assert {name: split.pairs for name, split in splits.items()} == pairs
    shown = re.findall(r"(?m)^  (train2?|dev) +(\d+) pairs", summary)
    assert {name: int(count) for name, count in shown} == pairs
    assert len(dataset.store("train2")) == 30
    assert len(dataset.store("train", "train2")) == 150
    with pytest.raises(ValueError, match=r"Only dev and test data keep their text"):
        dataset.store("train2").source_text()
    again = said(capsys, t2t_datagen, *files, "--data_dir=data").out
    assert "already complete, nothing to do" in again


@pytest.mark.parametrize(
    ("train_files", "dev_files", "message"),
    [
        (
            "real,back,dev",
            "dev",
            "splits was train,train2,dev, now train,train2,train3,",
        ),
        # the same files in the same order
        ("real", "back,dev", "splits was train,train2,dev, now train,dev,dev2"),
        ("back,real", "dev", "parallel_text now yields other pairs"),
    ],
)
def test_data_of_other_corpora_is_noticed(
    data, capsys, train_files, dev_files, message
):
    before = contents(data[0])
    flags = datagen_flags(train_files, dev_files)
    stderr = said(capsys, t2t_datagen, *flags, "--data_dir=data", status=1).err
    assert f" has data made from something else: {message}" in stderr
    assert contents(data[0]) == before


@pytest.mark.parametrize(
    ("text", "flags", "message"),
    [
        ("", [], r"at least 1\. Received: back\.en with 0, back\.de with 0\."),
        ("\n \n", [], r"must have a pair to keep in train2\. Received: 2\."),
        (
            "a " * 40 + "\n",
            ["--max_length=30"],
            r"in train2\. Received: 1\. Check",
        ),
    ],
    ids=["empty", "blank", "dropped"],
)
def test_a_corpus_without_pairs_is_refused(
    files, tmp_path, capsys, text, flags, message
):
    for language in ("en", "de"):
        (tmp_path / f"back.{language}").write_text(text)
    stderr = said(capsys, t2t_datagen, *files, *flags, "--data_dir=data", status=1).err
    assert re.search(message, stderr)
    assert not (tmp_path / "data" / "parallel_text" / "manifest.json").exists()


def test_weights_may_change_when_a_run_resumes(data, tmp_path, eagerly, capsys):
    assert train("run", weighted("1:4"), steps=1) == 0
    stderr = capsys.readouterr().err
    assert re.search(r"parameters, 240 pairs in \d+ batches an epoch", stderr)
    assert RunFolder(tmp_path / "run").hparams().corpus_weights == "1:4"

    assert train("run", weighted("1:2")) == 0
    stderr = capsys.readouterr().err
    assert "Changed hparams, from here on: corpus_weights 1:4 -> 1:2." in stderr
    assert re.search(
        r"180 pairs in .* an epoch, 1 replica; resuming from step 1", stderr
    )
    assert checkpoint_names(tmp_path / "run")[-1] == "model.ckpt-2"

    assert t2t_report.main(["--output_dir=run"]) == 0
    assert "| training pairs | 150 |" in (tmp_path / "run" / "report.md").read_text()
    stderr = refusal(capsys, t2t_decoder, "--output_dir=run", "--split=train2")
    assert "must be dev. Received: train2." in stderr
    # the weights belong to that run's data
    assert warm_start_hparams("run").corpus_weights == ""


@pytest.mark.parametrize("weights", ["1:4:2", "3"])
def test_other_than_a_weight_for_each_corpus_is_refused(
    data, tmp_path, eagerly, capsys, weights
):
    assert train("run", weighted(weights)) == 1
    received = f"Received: {weights} for 2."
    assert f"--train_source=a,b. {received}" in capsys.readouterr().err
    assert not list((tmp_path / "run").glob("[!.]*"))


def test_data_of_several_files_in_one_split(data, files, tmp_path, eagerly, capsys):
    """As earlier versions made it: it trains as two corpora without weights do, which
    it cannot have.
    """
    assert train("two", f"--hparams={SMALL}", problem="parallel_text_rev") == 0
    join_corpora(data[0])
    assert train("one", f"--hparams={SMALL}", problem="parallel_text_rev") == 0
    actual = tensors(tmp_path / "one" / "model.ckpt-2")
    expected = tensors(tmp_path / "two" / "model.ckpt-2")
    assert actual.keys() == expected.keys()
    for name, array in actual.items():
        np.testing.assert_array_equal(array, expected[name], err_msg=name)
    assert train("weighted", weighted("1:4")) == 1
    stderr = capsys.readouterr().err
    assert "1:4 for 1." in stderr
    message = (
        "made from something else: splits was train,dev, now train,train2,dev. Delete"
    )
    assert message in refusal(capsys, t2t_datagen, *files, "--data_dir=data")
