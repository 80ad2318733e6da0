"""The command t2t-trainer, stopped and run again."""

import hashlib
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
from run_command import run_command, said
from tiny_run import (
    SMALL,
    checkpoint_names,
    events,
    small,
    tensors,
    train,
    trainer_flags,
)

from t2tlite.bin import t2t_datagen, t2t_trainer
from t2tlite.programs.runs import train as training_run
from t2tlite.run_folder import RunFolder
from t2tlite.training import loop
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.progress import Progress


def test_stopped_by_a_signal_then_run_again_equals_uninterrupted(
    tiny_run, tmp_path, monkeypatch, capsys
):
    stopped = tmp_path / "stopped"
    step = Progress.step
    # neither changes the weights
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda: 1.0)
    monkeypatch.setattr(
        loop, "make_evaluation", lambda *_: lambda: Evaluation(1.0, 0.5, 10)
    )

    def signalled(self, number, result):
        step(self, number, result)
        if number == 5:
            signal.raise_signal(signal.SIGTERM)

    with monkeypatch.context() as patch:
        patch.setattr(Progress, "step", signalled)
        assert train(tiny_run, stopped, "--train_steps=40") == 128 + signal.SIGTERM
    stderr = capsys.readouterr().err
    assert "SIGTERM: stopping, and saving what is trained; once more ends" in stderr
    assert "t2tlite: Stopped by SIGTERM at step 5; a checkpoint is saved." in stderr
    assert checkpoint_names(stopped) == ["model.ckpt-5"]
    assert train(tiny_run, stopped, "--train_steps=40") == 0
    assert "resuming from step 5." in capsys.readouterr().err
    assert RunFolder(stopped).hparams().layer_prepostprocess_dropout > 0
    expected = tensors(tiny_run.run / "model.ckpt-40")
    actual = tensors(stopped / "model.ckpt-40")
    assert expected.keys() == actual.keys()
    # not vacuous: weights, and Adam's two moments
    assert len([name for name in actual if "kernel" in name]) > 10
    for name in expected:
        np.testing.assert_array_equal(actual[name], expected[name], err_msg=name)
    assert events(stopped)["train/loss"] == list(range(1, 41))
    whole, resumed = RunFolder(tiny_run.run).costs()[0], RunFolder(stopped).costs()[-1]
    for name in ("step", "steps", "tokens", "flops"):
        assert getattr(whole, name) == pytest.approx(getattr(resumed, name)), name


CHANGED = "--hparams=batch_size=512,accumulate_steps=2"


def test_resumed_without_the_set_its_flags_still_name_it(
    tiny_run, tmp_path, fake_dev_losses
):
    """A report compares the run's hparams with those of the set that flags.txt
    names.
    """
    run = tmp_path / "run"
    fake_dev_losses += [3.0, 2.0, 1.0]
    begun = f"--hparams={SMALL},label_smoothing=0.2", "--global_batch_tokens=1024"
    assert train(tiny_run, run, *begun, "--train_steps=1") == 0
    assert RunFolder(run).flags()["hparams_set"] == "twenty_words_tiny"
    how = [f"--t2t_usr_dir={tiny_run.package}", f"--data_dir={tiny_run.data}"]
    how.append(f"--output_dir={run}")
    for changes in (["--hparams=label_smoothing=0.1,batch_size=512"], []):
        steps = 3 - len(changes)
        run_command(t2t_trainer, *how, f"--train_steps={steps}", *changes)
        after = RunFolder(run).flags()
        assert after["hparams_set"] == "twenty_words_tiny"
        expected = f"{SMALL},batch_size=512,global_batch_tokens=1024"
        assert set(expected.split(",")) <= set(after["hparams"].split(","))
        assert after["train_steps"] == str(steps)


def test_other_hparams_for_the_same_run(tiny_run, tiny_run_copy, no_training, capsys):
    assert train(tiny_run, tiny_run_copy, CHANGED) == 0
    stderr = capsys.readouterr().err
    changed = (
        "Changed hparams, from here on: batch_size 1024 -> 512, accumulate_steps 1"
    )
    assert f"{changed} -> 2." in stderr
    assert RunFolder(tiny_run_copy).hparams().batch_size == 512
    noted = (tiny_run_copy / "flags.txt").read_text()
    assert small(tiny_run, tiny_run_copy) == 1
    stderr = capsys.readouterr().err
    assert "which differs in hidden_size (32, 8), filter_size (64, 8)" in stderr
    # a command that is refused leaves the run alone
    assert (tiny_run_copy / "flags.txt").read_text() == noted
    for change, difference in (
        ("dtype_policy=mixed_float16", "mixed_float16 (False, True)"),
        ("self_attention_radius=2", "self_attention_radius (0, 2)"),
    ):
        assert train(tiny_run, tiny_run_copy, f"{CHANGED},{change}") == 1
        assert f"which differs in {difference}." in capsys.readouterr().err
    assert train(tiny_run, tiny_run_copy, CHANGED, "--problem=twenty_words_rev") == 1
    stderr = capsys.readouterr().err
    assert "differs in problem (twenty_words, twenty_words_rev)." in stderr


def test_the_recorded_flags_are_a_flagfile(tiny_run, tmp_path, no_training):
    """They train a run as the command did, and flags after them change it."""
    flagfile = f"--flagfile={tiny_run.run}/flags.txt"
    run = tmp_path / "run"
    run_command(t2t_trainer, flagfile, f"--output_dir={run}", "--random_seed=7")
    expected = (tiny_run.run / "flags.txt").read_text()
    for old, new in ((f"={tiny_run.run}\n", f"={run}\n"), ("seed=1\n", "seed=7\n")):
        expected = expected.replace(old, new)
    assert (run / "flags.txt").read_text() == expected
    assert RunFolder(run).hparams() == RunFolder(tiny_run.run).hparams()


def test_another_vocabulary_for_the_same_run(
    tiny_run, tiny_run_copy, tmp_path, capsys, no_training
):
    """What differs is named: the content of two files of one name, and why."""
    data = tmp_path / "other"
    problem = f"--t2t_usr_dir={tiny_run.package}", "--problem=twenty_words"
    options = "--user_symbols=<a>", "--num_processes=1"
    assert t2t_datagen.main([*problem, f"--data_dir={data}", *options]) == 0
    capsys.readouterr()
    assert train(tiny_run, tiny_run_copy, CHANGED, f"--data_dir={data}") == 1
    stderr = capsys.readouterr().err
    digests = []
    for folder in (tiny_run_copy, data / "twenty_words"):
        content = (folder / "vocab.model").read_bytes()
        digests.append(hashlib.sha256(content).hexdigest()[:12])
    difference = (
        f"differs in vocabulary ({', '.join(digests)}). Give the same as before"
    )
    assert f"Received: {tiny_run_copy}, which {difference}" in stderr
    vocabulary = f"t2t-datagen --vocab_file={tiny_run_copy}/vocab.model, in another"
    assert f" Make data with the run's vocabulary, {vocabulary} --data_dir." in stderr


def test_a_signal_before_a_resumed_step(
    tiny_run, tiny_run_copy, fake_dev_losses, monkeypatch, capsys
):
    """Also while the model is built: nothing has happened since the checkpoint."""
    setup = training_run._setup

    def signalled(*args):
        signal.raise_signal(signal.SIGTERM)
        return setup(*args)

    monkeypatch.setattr(training_run, "_setup", signalled)
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda: 1.0)
    assert train(tiny_run, tiny_run_copy, "--train_steps=200") == 128 + signal.SIGTERM
    assert "Stopped by SIGTERM at step 120; a" in capsys.readouterr().err
    assert checkpoint_names(tiny_run_copy)[-1] == "model.ckpt-120"


@pytest.mark.slow
def test_killed_then_run_again_in_a_process_of_its_own(tiny_run, tmp_path, capsys):
    """SIGKILL leaves no time to save: the last checkpoint counts. And the terminal
    shows nothing of TensorFlow's.
    """
    run = tmp_path / "run"
    program = [sys.executable, "-m", "t2tlite.bin.t2t_trainer"]
    flags = trainer_flags(tiny_run, run, f"--hparams={SMALL}", "--train_steps=100000")
    more = ["--save_checkpoints_secs=0", "--keep_checkpoint_max=3"]
    pipes = {"stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*program, *flags, *more], **pipes) as process:
        deadline = time.monotonic() + 120
        while process.poll() is None and time.monotonic() < deadline:
            if checkpoint_names(run):
                break
            time.sleep(0.02)
        process.kill()
        stderr = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, stderr
    for noise in ("oneDNN", "cudart", "cuInit", "InitializeLog", "WARNING:", "Trace"):
        assert noise not in stderr
    reached = int(checkpoint_names(run)[-1].split("-")[1])
    assert small(tiny_run, run, f"--train_steps={reached + 1}") == 0
    assert f"resuming from step {reached:,}." in capsys.readouterr().err


def test_nothing_to_do_and_the_problem_not_named(tiny_run, tiny_run_copy, capsys):
    flags = trainer_flags(tiny_run, tiny_run_copy, "--train_steps=100")
    flags.remove("--problem=twenty_words")  # the data directory holds one problem
    out, err = said(capsys, t2t_trainer, *flags)
    assert "Nothing to train: the run is at step 120 of 100." in err
    assert "Trained" not in out
    assert "Best checkpoint by dev loss, step 120: dev loss" in out
    assert RunFolder(tiny_run_copy).costs() == RunFolder(tiny_run.run).costs()


def test_a_run_that_saved_nothing_may_become_another_model(
    tiny_run, tmp_path, monkeypatch
):
    def no_training(setup, config, signals):
        setup.begin()
        raise ValueError("something is wrong")

    monkeypatch.setattr(loop, "train", no_training)
    run = tmp_path / "run"
    assert small(tiny_run, run) == 1
    assert train(tiny_run, run) == 1
    assert RunFolder(run).hparams().hidden_size == 32
