"""The command t2t-trainer, ended in an evaluation: it counts once it is recorded, and is repeated if it is not."""

from __future__ import annotations

import json
import signal

import pytest
from tiny_run import checkpoint_names, events, small
from tiny_task import contents

from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import checkpoint_paths
from t2tlite.run_folder import RunFolder
from t2tlite.training import loop


class KilledError(BaseException):
    """Ends a run as SIGKILL does: nothing handles it."""


def killed(*_):
    raise KilledError


def evaluated(run):
    """The recorded dev losses by step, and the step of the best checkpoint."""
    folder = RunFolder(run)
    best = folder.best()
    return {one.step: one.metrics["loss"] for one in folder.evaluations()}, best and best.step


EVERY_2 = "--local_eval_frequency=2"


def test_killed_in_an_evaluation_then_run_again_evaluates_first(tiny_run, tmp_path, fake_dev_losses, capsys):
    run, how = tmp_path / "run", [EVERY_2, "--train_steps=6", "--early_stopping_evals=1"]
    fake_dev_losses += [3.0, KilledError()]
    with pytest.raises(KilledError):
        small(tiny_run, run, *how)
    assert evaluated(run) == ({2: 3.0}, 2)
    assert checkpoint_names(run) == ["model.ckpt-2", "model.ckpt-4"]

    fake_dev_losses += [2.0, 1.0]
    capsys.readouterr()
    assert small(tiny_run, run, *how) == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0, 6: 1.0}, 6)
    stderr = capsys.readouterr().err
    assert (
        stderr.index("Evaluating step 4")
        < stderr.index("step 4: dev loss 2.0000")
        < stderr.index("step 6: dev loss 1.0")
    )
    assert events(run)["dev/loss"] == [2, 4, 6]


def test_killed_before_an_evaluation_is_recorded_then_run_again(tiny_run, tmp_path, fake_dev_losses, monkeypatch):
    run, how = tmp_path / "run", [EVERY_2, "--train_steps=4"]
    fake_dev_losses += [3.0, 2.0]
    with monkeypatch.context() as patch:
        patch.setattr(checkpoint_paths, "remove_checkpoint", killed)  # of the best before
        with pytest.raises(KilledError):
            small(tiny_run, run, *how)
    assert evaluated(run) == ({2: 3.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-2", "model.ckpt-4"]

    fake_dev_losses += [2.0]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_evaluations", killed)
        with pytest.raises(KilledError):
            small(tiny_run, run, *how)
    assert events(run)["dev/loss"] == [2, 4]
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]

    fake_dev_losses += [2.0]
    assert small(tiny_run, run, *how) == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]


def test_killed_in_the_last_evaluation_then_run_again(tiny_run, tmp_path, fake_dev_losses, capsys):
    run = tmp_path / "run"
    fake_dev_losses += [KilledError()]
    with pytest.raises(KilledError):
        small(tiny_run, run, "--train_steps=2")
    assert evaluated(run) == ({}, None)
    before = contents(run)

    fake_dev_losses += [2.5]
    assert small(tiny_run, run, "--train_steps=2") == 0
    output = capsys.readouterr()
    assert "step 2: dev loss 2.5000" in output.err
    assert "Nothing to train: the run is at step 2 of 2." in output.err
    assert "Trained twenty_words: dev loss 2.5000" in output.out
    assert evaluated(run) == ({2: 2.5}, 2)
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]
    after = contents(run)
    assert all(after[name] == digest for name, digest in before.items() if not name.startswith("events."))


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_a_signal_ends_an_evaluation(tiny_run, tmp_path, fake_dev_losses, capsys, name):
    run, number = tmp_path / "run", signal.Signals[name]
    fake_dev_losses += [number]
    assert small(tiny_run, run, EVERY_2, "--train_steps=4") == 128 + number
    stderr = capsys.readouterr().err
    assert f"{name}: ending the evaluation, which is repeated when the run resumes." in stderr
    assert f"Stopped by {name} at step 2; a checkpoint is saved. The same command resumes from there." in stderr
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])


def test_a_signal_while_the_best_is_written_comes_after_it(tiny_run, tmp_path, fake_dev_losses, monkeypatch):
    run, write_best = tmp_path / "run", RunFolder.write_best
    monkeypatch.setattr(RunFolder, "write_best", lambda *args: (signal.raise_signal(signal.SIGTERM), write_best(*args)))
    fake_dev_losses += [2.0]
    assert small(tiny_run, run, EVERY_2, "--train_steps=4") == 128 + signal.SIGTERM
    assert (evaluated(run), checkpoint_names(run)) == (({2: 2.0}, 2), ["model.ckpt-2"])
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]


def test_an_error_in_scoring_is_no_worse_evaluation(tiny_run, tmp_path, fake_dev_losses, monkeypatch, capsys):
    run, how = tmp_path / "run", [EVERY_2, "--train_steps=4", "--early_stopping_evals=1", "--eval_bleu"]
    decode = TextDecoder.decode_and_score

    def broken(*args):
        raise OSError("[Errno 28] No space left on device")

    monkeypatch.setattr(TextDecoder, "decode_and_score", broken)
    fake_dev_losses += [2.0]
    assert small(tiny_run, run, *how) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])

    monkeypatch.setattr(TextDecoder, "decode_and_score", decode)
    fake_dev_losses += [2.0, 2.0]
    assert small(tiny_run, run, *how) == 0
    assert evaluated(run)[0] == {2: 2.0, 4: 2.0}
    assert "bleu" in RunFolder(run).best().metrics


def test_a_full_disk_while_the_best_is_written(tiny_run, tmp_path, fake_dev_losses, monkeypatch, capsys):
    run, write_best = tmp_path / "run", RunFolder.write_best

    def full(*args):
        raise OSError("[Errno 28] No space left on device")

    fake_dev_losses += [3.0, 2.0]
    monkeypatch.setattr(RunFolder, "write_best", lambda *args: (full if args[1].step == 4 else write_best)(*args))
    assert small(tiny_run, run, EVERY_2, "--train_steps=4") == 1
    assert evaluated(run) == ({2: 3.0}, 2)

    monkeypatch.setattr(RunFolder, "write_best", write_best)
    fake_dev_losses += [2.0]
    assert small(tiny_run, run, EVERY_2, "--train_steps=4") == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]


def test_more_frequent_evaluations_after_resuming_do_not_end_a_run(tiny_run, tmp_path, fake_dev_losses, capsys):
    """Step 8 is six steps after the best, but a single evaluation."""
    run, how = tmp_path / "run", ["--early_stopping_evals=3", "--train_steps=8"]
    fake_dev_losses += [1.0, 2.0]
    assert small(tiny_run, run, *how, "--local_eval_frequency=2", "--train_steps=4") == 0
    fake_dev_losses += [2.0, 2.0]
    assert small(tiny_run, run, *how, "--local_eval_frequency=1") == 0
    assert "Stopping early at step 6: 3 evaluations without a better one." in capsys.readouterr().err
    assert evaluated(run) == ({2: 1.0, 4: 2.0, 5: 2.0, 6: 2.0}, 2)


def test_checkpoints_follow_an_evaluation_at_their_own_pace(tiny_run, tmp_path, fake_dev_losses, monkeypatch):
    """An evaluation takes an hour, and each step a second: no checkpoint is due one step after the evaluation."""
    run, clock = tmp_path / "run", [0.0]
    step, evaluate = loop.make_train_step(), loop.make_evaluation()

    def passes(seconds, act):
        def timed(*args):
            clock[0] += seconds
            return act(*args)

        return lambda *_: timed

    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(loop, "make_train_step", passes(1.0, step))
    monkeypatch.setattr(loop, "make_evaluation", passes(3600.0, evaluate))
    fake_dev_losses += [2.0, 1.0]
    assert small(tiny_run, run, "--local_eval_frequency=4", "--save_checkpoints_secs=2", "--train_steps=8") == 0
    assert checkpoint_names(run) == ["model.ckpt-3", "model.ckpt-4", "model.ckpt-7", "model.ckpt-8"]


def test_a_loss_that_is_no_number_is_recorded_and_can_be_read(tiny_run, tmp_path, fake_dev_losses):
    fake_dev_losses += [float("nan"), 2.0]
    assert small(tiny_run, tmp_path / "run", EVERY_2, "--train_steps=4") == 0
    first, second = RunFolder(tmp_path / "run").evaluations()
    assert (first.step, first.metrics) == (2, {"accuracy": 0.5})
    assert second.metrics["loss"] == 2.0
    assert RunFolder(tmp_path / "run").best().step == 4


def test_a_run_of_an_older_version_has_only_its_best_evaluation(tiny_run, tmp_path, fake_dev_losses):
    run = tmp_path / "run"
    fake_dev_losses += [2.0]
    assert small(tiny_run, run, EVERY_2, "--train_steps=2") == 0
    (run / "evaluations.json").unlink()
    (run / "training.json").unlink()
    fake_dev_losses += [1.0]
    assert small(tiny_run, run, EVERY_2, "--train_steps=4") == 0
    assert evaluated(run) == ({2: 2.0, 4: 1.0}, 4)
    assert json.loads((run / "training.json").read_text())["random_seed"] == 1


def test_early_stopping_without_evaluations_is_refused(tiny_run, tmp_path, capsys):
    assert small(tiny_run, tmp_path / "run", "--early_stopping_evals=2", "--local_eval_frequency=0") == 1
    stderr = capsys.readouterr().err
    assert "early_stopping_evals requires evaluations during training. Received: local_eval_frequency=0" in stderr
    assert not (tmp_path / "run").exists()
