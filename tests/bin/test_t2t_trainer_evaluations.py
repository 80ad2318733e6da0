"""The command t2t-trainer, ended in an evaluation: it counts once it is recorded, and
is repeated if it is not.
"""

import json
import re
import signal
from types import SimpleNamespace

import pytest
from tiny_run import SMALL, checkpoint_names, events, small
from tiny_task import contents

from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import checkpoint_paths
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.task import Score
from t2tlite.training import loop


class KilledError(BaseException):
    """Ends a run as SIGKILL does: nothing handles it."""


def killed(*_):
    raise KilledError


def evaluated(run):
    """The recorded dev losses by step, and the step of the best checkpoint."""
    folder = RunFolder(run)
    best = folder.best()
    return {
        record.step: record.metrics["loss"] for record in folder.evaluations()
    }, best and best.step


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def train(tiny_run, run, fake_dev_losses):
    """train(losses, *flags): the exit status of training in which evaluations find
    these losses.
    """

    def train(losses, *flags):
        fake_dev_losses.extend(losses)
        return small(tiny_run, run, *flags)

    return train


def fake_bleu(monkeypatch, *scores):
    """Lets evaluations find these scores, and decode nothing."""
    results = iter(
        [
            SimpleNamespace(score=Score("BLEU", {"BLEU": score}, {"BLEU": "signature"}))
            for score in scores
        ]
    )
    monkeypatch.setattr(TextDecoder, "decode_and_score", lambda *_: next(results))


EVERY_2 = "--local_eval_frequency=2"


def test_killed_evaluation_is_repeated_first(train, run, capsys):
    how = [EVERY_2, "--train_steps=6", "--early_stopping_evals=1"]
    with pytest.raises(KilledError):
        train([3.0, KilledError()], *how)
    assert evaluated(run) == ({2: 3.0}, 2)
    assert checkpoint_names(run) == ["model.ckpt-2", "model.ckpt-4"]
    capsys.readouterr()
    assert train([2.0, 1.0], *how) == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0, 6: 1.0}, 6)
    stderr = capsys.readouterr().err
    assert (
        stderr.index("Evaluating step 4")
        < stderr.index("step 4: dev loss 2.0000")
        < stderr.index("step 6: dev loss 1.0")
    )
    assert events(run)["dev/loss"] == [2, 4, 6]


def test_evaluation_killed_before_its_record_is_repeated(train, run, monkeypatch):
    how = [EVERY_2, "--train_steps=4"]
    with monkeypatch.context() as patch:
        # of the best before
        patch.setattr(checkpoint_paths, "remove_checkpoint", killed)
        with pytest.raises(KilledError):
            train([3.0, 2.0], *how)
    assert evaluated(run) == ({2: 3.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-2", "model.ckpt-4"]
    with monkeypatch.context() as patch:
        patch.setattr(RunFolder, "write_evaluations", killed)
        with pytest.raises(KilledError):
            train([2.0], *how)
    assert events(run)["dev/loss"] == [2, 4]
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    assert train([2.0], *how) == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]


def test_killed_last_evaluation_is_repeated(train, run, capsys):
    with pytest.raises(KilledError):
        train([KilledError()], "--train_steps=2")
    assert evaluated(run) == ({}, None)
    before = contents(run)
    assert train([2.5], "--train_steps=2") == 0
    output = capsys.readouterr()
    assert "step 2: dev loss 2.5000" in output.err
    assert "Nothing to train: the run is at step 2 of 2." in output.err
    assert "Trained twenty_words: dev loss 2.5000" in output.out
    assert evaluated(run) == ({2: 2.5}, 2)
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]
    after = contents(run)
    assert all(
        after[name] == digest
        for name, digest in before.items()
        if not name.startswith("events.")
    )


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_signal_ends_an_evaluation(train, run, capsys, name):
    number = signal.Signals[name]
    assert train([number], EVERY_2, "--train_steps=4") == 128 + number
    stderr = capsys.readouterr().err
    assert (
        f"{name}: ending the evaluation, which is repeated when the run resumes."
        in stderr
    )
    assert (
        f"Stopped by {name} at step 2; a checkpoint is saved. The same command resumes"
        " from there." in stderr
    )
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])


def test_signal_while_the_best_is_written_comes_after_it(train, run, monkeypatch):
    write_best = RunFolder.write_best
    monkeypatch.setattr(
        RunFolder,
        "write_best",
        lambda *args: (signal.raise_signal(signal.SIGTERM), write_best(*args)),
    )
    assert train([2.0], EVERY_2, "--train_steps=4") == 128 + signal.SIGTERM
    assert (evaluated(run), checkpoint_names(run)) == (({2: 2.0}, 2), ["model.ckpt-2"])
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]


def test_error_in_scoring_does_not_count_as_evaluation(train, run, monkeypatch, capsys):
    how = [EVERY_2, "--train_steps=4", "--early_stopping_evals=1", "--eval_bleu"]

    def broken(*args):
        raise OSError("[Errno 28] No space left on device")

    monkeypatch.setattr(TextDecoder, "decode_and_score", broken)
    assert train([2.0], *how) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])
    fake_bleu(monkeypatch, 30.0, 20.0)
    assert train([2.0, 2.0], *how) == 0
    assert evaluated(run)[0] == {2: 2.0, 4: 2.0}
    assert RunFolder(run).best().metrics["bleu"] == 30.0


def test_full_disk_while_the_best_is_written(train, run, monkeypatch, capsys):
    write_best = RunFolder.write_best

    def full(*args):
        raise OSError("[Errno 28] No space left on device")

    monkeypatch.setattr(
        RunFolder,
        "write_best",
        lambda *args: (full if args[1].step == 4 else write_best)(*args),
    )
    assert train([3.0, 2.0], EVERY_2, "--train_steps=4") == 1
    assert evaluated(run) == ({2: 3.0}, 2)
    monkeypatch.setattr(RunFolder, "write_best", write_best)
    assert train([2.0], EVERY_2, "--train_steps=4") == 0
    assert evaluated(run) == ({2: 3.0, 4: 2.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]


def test_early_stopping_counts_evaluations_not_steps(train, run, capsys):
    """Step 8 is six steps after the best, but a single evaluation."""
    how = ["--early_stopping_evals=3", "--train_steps=8"]
    assert train([1.0, 2.0], *how, "--local_eval_frequency=2", "--train_steps=4") == 0
    assert train([2.0, 2.0], *how, "--local_eval_frequency=1") == 0
    assert (
        "Stopping early at step 6: 3 evaluations without a better one."
        in capsys.readouterr().err
    )
    assert evaluated(run) == ({2: 1.0, 4: 2.0, 5: 2.0, 6: 2.0}, 2)
    assert train([2.0], *how, "--local_eval_frequency=1") == 0
    assert (
        "Nothing to train: the run stopped early at step 6." in capsys.readouterr().err
    )


def test_checkpoint_interval_leaves_out_evaluations(train, run, monkeypatch):
    """An evaluation takes an hour, and each step a second: no checkpoint is due one
    step after the evaluation.
    """
    clock = [0.0]
    step, evaluate = loop.make_train_step(), loop.make_evaluation()

    def passes(seconds, act):
        def timed(*args):
            clock[0] += seconds
            return act(*args)

        return lambda *_: timed

    monkeypatch.setattr(loop.time, "monotonic", lambda: clock[0])
    monkeypatch.setattr(loop, "make_train_step", passes(1.0, step))
    monkeypatch.setattr(loop, "make_evaluation", passes(3600.0, evaluate))
    assert (
        train(
            [2.0, 1.0],
            "--local_eval_frequency=4",
            "--save_checkpoints_secs=2",
            "--train_steps=8",
        )
        == 0
    )
    assert checkpoint_names(run) == [
        "model.ckpt-3",
        "model.ckpt-4",
        "model.ckpt-7",
        "model.ckpt-8",
    ]


def test_dev_loss_of_nan_is_recorded_and_can_be_read(train, run):
    assert train([float("nan"), 2.0], EVERY_2, "--train_steps=4") == 0
    first, second = RunFolder(run).evaluations()
    assert (first.step, first.metrics) == (2, {"accuracy": 0.5})
    assert second.metrics["loss"] == 2.0
    assert RunFolder(run).best().step == 4


def test_training_json_that_was_deleted_is_written_again(train, run):
    assert train([2.0, 1.0], EVERY_2, "--train_steps=2") == 0
    (run / "training.json").unlink()
    assert train([], EVERY_2, "--train_steps=4") == 0
    assert evaluated(run) == ({2: 2.0, 4: 1.0}, 4)
    assert json.loads((run / "training.json").read_text())["random_seed"] == 1


@pytest.mark.parametrize("loss", [89.0, 240.0, 9e30])
def test_diverged_dev_loss_is_said_and_recorded(train, run, capsys, loss):
    """exp(89) is infinite in float32, in which TensorBoard stores it, and exp(231)
    beyond what records may hold.
    """
    assert train([2.0, loss, 3.0], EVERY_2, "--train_steps=4") == 0
    assert "Training has diverged, or is about to." in capsys.readouterr().err
    assert evaluated(run) == ({2: 2.0, 4: loss}, 2)
    assert train([], EVERY_2, "--train_steps=6") == 0
    assert RunFolder(run).evaluations()[1].metrics == {"loss": loss, "accuracy": 0.5}


def test_deleted_best_checkpoint_is_replaced_by_the_next(train, run, capsys):
    """best.json alone kept all later ones from being the best, and early stopping
    counted from it.
    """
    how = [EVERY_2, "--early_stopping_evals=2"]
    assert train([1.0, 5.0], *how, "--train_steps=4") == 0
    for path in (run / "best").glob("model.ckpt-*"):
        path.unlink()
    assert train([5.0, 4.0], *how, "--train_steps=6") == 0
    assert (
        f"The best checkpoint, of step 2, was deleted from {run}/best."
        in capsys.readouterr().err
    )
    assert evaluated(run) == ({2: 1.0, 4: 5.0, 6: 4.0}, 6)
    assert checkpoint_names(run / "best") == ["model.ckpt-6"]


def test_equal_bleu_is_decided_by_loss(train, run, monkeypatch):
    """BLEU 0.00 at first does not end a run whose loss falls."""
    fake_bleu(monkeypatch, 0.0, 0.004, 0.0, 0.02)
    how = [EVERY_2, "--train_steps=8", "--early_stopping_evals=2", "--eval_bleu"]
    assert train([5.0, 4.0, 4.5, 6.0], *how) == 0
    assert evaluated(run) == ({2: 5.0, 4: 4.0, 6: 4.5, 8: 6.0}, 8)
    best = RunFolder(run).best()
    assert (best.step, best.metrics["bleu"]) == (8, 0.02)


def test_weights_of_a_useless_loss_are_not_saved(train, run, monkeypatch, capsys):
    """They are finite, so that restarts would train on from them."""
    how = [EVERY_2, "--train_steps=4"]
    losses = iter([5.0, 5.0, 1e20])  # before the first step, and before each save
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda batches: next(losses))
    assert train([2.0], *how) == 1
    stderr = capsys.readouterr().err
    assert (
        "Training diverged: the loss is 1e+20 at step 4, which is not saved."
        " Checkpoints from before are in" in stderr
    )
    assert (evaluated(run), checkpoint_names(run)) == (({2: 2.0}, 2), ["model.ckpt-2"])
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda batches: 5.0)
    assert train([1.0], *how, f"--hparams={SMALL},learning_rate_constant=0.1") == 0
    assert evaluated(run) == ({2: 2.0, 4: 1.0}, 4)


def test_useless_weights_are_noticed_by_their_loss(tiny_run, run, eagerly, capsys):
    """A single update with this rate leaves weights of 1e21, all finite."""
    rate = f"--hparams={SMALL},learning_rate_constant=1e25,learning_rate_warmup_steps=1"
    assert small(tiny_run, run, rate, "--train_steps=1") == 1
    assert re.search(
        r"diverged: the loss is (nan|inf|\d\S*e\+\d+) at step 1, which is not saved",
        capsys.readouterr().err,
    )
    assert checkpoint_names(run) == []


def test_early_stopping_without_evaluations_is_refused(train, run, capsys):
    assert train([], "--early_stopping_evals=2", "--local_eval_frequency=0") == 1
    stderr = capsys.readouterr().err
    assert (
        "early_stopping_evals requires evaluations during training. Received:"
        " local_eval_frequency=0" in stderr
    )
    assert not run.exists()
