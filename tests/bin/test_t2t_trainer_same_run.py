"""The command t2t-trainer in the folder of an earlier run: what must be the same, and
what is left alone.
"""

import dataclasses
import json
import shutil

import pytest
from run_command import refusal, run_command
from tiny_run import change_manifest, checkpoint_names, small, train
from tiny_task import contents

import t2tlite
from t2tlite.bin import t2t_trainer
from t2tlite.files.own_files import only_process
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import TrainedWith


def test_nothing_to_train_changes_nothing(tiny_run, tiny_run_copy, fake_dev_losses):
    fake_dev_losses += [1.0]

    def state():
        times = {path: path.stat().st_mtime_ns for path in tiny_run_copy.iterdir()}
        return contents(tiny_run_copy), times

    before = state()
    changed = ["--train_steps=100", "--hparams=learning_rate_constant=9"]
    assert train(tiny_run, tiny_run_copy, *changed) == 0
    # its problem and data are those that it was trained on
    assert t2t_trainer.main([f"--output_dir={tiny_run_copy}", "--train_steps=9"]) == 0
    t2tlite.train("twenty_words", {}, tiny_run_copy, train_steps=9)
    assert state() == before


def test_data_that_is_gone_is_named(tiny_run_copy, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    message = refusal(capsys, t2t_trainer, f"--output_dir={tiny_run_copy}")
    assert "There is no finished data of twenty_words in data." in message


def test_another_seed_is_refused(tiny_run, tiny_run_copy, capsys):
    before = contents(tiny_run_copy)
    assert train(tiny_run, tiny_run_copy, "--random_seed=7", "--train_steps=130") == 1
    differs = (
        f"Received: {tiny_run_copy}, which differs in random_seed (1, 7). Give the"
    )
    assert differs in capsys.readouterr().err
    assert contents(tiny_run_copy) == before


def test_other_pairs_are_refused(tiny_run, tiny_run_copy, tmp_path, capsys):
    data = shutil.copytree(tiny_run.data, tmp_path / "data")
    path = data / "twenty_words" / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["splits"]["dev"]["shards"][0]["sha256"] = "0" * 64
    path.write_text(json.dumps(manifest))
    for deleted in (False, True):
        if deleted:  # the manifest alone identifies the data then
            (tiny_run_copy / "training.json").unlink()
        flags = f"--data_dir={data}", "--train_steps=130"
        assert train(tiny_run, tiny_run_copy, *flags) == 1
        stderr = capsys.readouterr().err
        assert f"Received: {tiny_run_copy}, which differs in pairs (" in stderr
        assert f"another --output_dir, with --warm_start_from={tiny_run_copy}" in stderr


def test_other_number_of_replicas_is_reported_if_batch_changes(
    tiny_run, tiny_run_copy, no_training, capsys
):
    run = RunFolder(tiny_run_copy)
    trained_with = run.read(TrainedWith)
    run.write(dataclasses.replace(trained_with, replicas=4, global_batch_tokens=4096))
    assert train(tiny_run, tiny_run_copy, "--train_steps=130") == 0
    changed = "Changed global batch, from here on: 4,096 -> 1,024 tokens (4 -> 1 repl"
    assert changed in capsys.readouterr().err
    assert run.read(TrainedWith).global_batch_tokens == 1024
    assert train(tiny_run, tiny_run_copy, "--train_steps=130") == 0
    assert "Changed global batch" not in capsys.readouterr().err


def test_a_second_trainer_is_refused(tiny_run, tiny_run_copy, capsys):
    with only_process(tiny_run_copy, "train a run"):
        assert train(tiny_run, tiny_run_copy, "--train_steps=130") == 1
    using = f"train a run. Received: {tiny_run_copy}, which another process"
    assert f"Only one process at a time can {using}" in capsys.readouterr().err
    assert RunFolder(tiny_run_copy).command() == RunFolder(tiny_run.run).command()


@pytest.mark.parametrize("left", [(), ("model.ckpt-40",)])
def test_a_best_checkpoint_later_than_the_newest_is_refused(
    tiny_run, tiny_run_copy, capsys, left
):
    for path in tiny_run_copy.glob("model.ckpt-*"):
        if path.name.partition(".data")[0].removesuffix(".index") not in left:
            path.unlink()
    assert train(tiny_run, tiny_run_copy) == 1
    later = f"{tiny_run_copy}/best must have no later checkpoint than the run. Delete"
    assert later in capsys.readouterr().err


def test_records_of_checkpoints_that_were_deleted_are_dropped(
    tiny_run, tiny_run_copy, fake_dev_losses
):
    """The newest two are deleted, and the best with them: what is evaluated next is the
    best, here step 40 again.
    """
    shutil.rmtree(tiny_run_copy / "best")
    for step in (80, 120):
        for path in tiny_run_copy.glob(f"model.ckpt-{step}.*"):
            path.unlink()
    fake_dev_losses += [7.0, 8.0]
    flags = "--train_steps=42", "--local_eval_frequency=40"
    assert train(tiny_run, tiny_run_copy, *flags) == 0
    run = RunFolder(tiny_run_copy)
    losses = {record.step: record.metrics["loss"] for record in run.evaluations()}
    assert losses == {40: 7.0, 42: 8.0}
    assert run.best().step == 40


def test_leftovers_of_a_killed_save_are_removed(tiny_run, tiny_run_copy, no_training):
    (tiny_run_copy / ".saving").mkdir()
    left = [".saving/model.ckpt-130.index", "model.ckpt-90.data-00000-of-00001"]
    left += ["best/model.ckpt-90.data-00000-of-00001", ".cost.json.01234567.tmp"]
    for name in left:
        (tiny_run_copy / name).touch()
    assert train(tiny_run, tiny_run_copy, "--train_steps=130") == 0
    assert not [name for name in left if (tiny_run_copy / name).exists()]
    assert not (tiny_run_copy / ".saving").exists()
    assert checkpoint_names(tiny_run_copy) == checkpoint_names(tiny_run.run)


def test_resumes_after_a_warm_start_without_its_source_and_flags(
    tiny_run, tiny_run_copy, tmp_path, fake_dev_losses, monkeypatch, capsys
):
    run = tmp_path / "run"
    flags = [f"--t2t_usr_dir={tiny_run.package}", f"--data_dir={tiny_run.data}"]
    flags.append(f"--output_dir={run}")
    start = f"--warm_start_from={tiny_run_copy}"
    fake_dev_losses += [4.0, 3.0, 2.0, 1.0]  # the first before the first step
    run_command(t2t_trainer, *flags, start, "--train_steps=1")
    before = RunFolder(run).hparams()
    shutil.rmtree(tiny_run_copy)
    run_command(t2t_trainer, *flags, "--train_steps=2")
    # the same command
    run_command(t2t_trainer, *flags, start, "--train_steps=3")
    assert capsys.readouterr().err.count("Starting from the weights") == 1
    assert RunFolder(run).hparams() == before
    trained_with = RunFolder(run).read(TrainedWith)
    assert trained_with.warm_start_from == f"{tiny_run_copy}/model.ckpt-120"


def test_a_folder_whose_name_is_a_glob_pattern(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    """lr[1] matches lr1: a sibling, whose checkpoints stay; the run resumes, and is
    decoded.
    """
    sibling, run = tmp_path / "lr1", tmp_path / "lr[1]"
    sibling.mkdir()
    for path in tiny_run.run.glob("model.ckpt-*"):
        shutil.copy(path, sibling)
    before = contents(sibling)
    how = ["--keep_checkpoint_max=1", "--local_eval_frequency=1"]
    fake_dev_losses += [3.0, 2.0, 1.0]
    assert small(tiny_run, run, *how, "--train_steps=2") == 0
    assert small(tiny_run, run, *how, "--train_steps=3") == 0
    assert "resuming from step 2." in capsys.readouterr().err
    assert contents(sibling) == before
    assert checkpoint_names(run) == ["model.ckpt-3"]
    assert t2tlite.load(run, run / "best").checkpoint == f"{run}/best/model.ckpt-3"
