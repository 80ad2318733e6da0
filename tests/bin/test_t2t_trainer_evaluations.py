"""The command t2t-trainer, ended in an evaluation: it counts once it is recorded, and
is repeated if it is not.
"""

import functools
import re
import signal

import numpy as np
import pytest
from tiny_run import SMALL, before_writing, checkpoint_names, events, small, tensors
from tiny_task import contents

from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import checkpoint_paths
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation, EvaluationsFile
from t2tlite.tasks.task import Score
from t2tlite.training import loop
from t2tlite.training.signals import STOPPING
from t2tlite.training.train_step import StepResult


class KilledError(BaseException):
    """Ends a run as SIGKILL does: nothing handles it."""


def killed(*_):
    raise KilledError


def evaluated(run):
    """The recorded dev losses by step, and the step of the best checkpoint."""
    folder = RunFolder(run)
    best = folder.best()
    losses = {record.step: record.metrics["loss"] for record in folder.evaluations()}
    return losses, best and best.step


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def train(tiny_run, run, fake_dev_losses, capsys):
    """train(losses, *flags): what training prints in which evaluations find these
    losses.
    """

    def train(losses, *flags, status=0):
        fake_dev_losses.extend(losses)
        capsys.readouterr()
        assert small(tiny_run, run, *flags) == status
        return capsys.readouterr()

    return train


def fake_bleu(monkeypatch, *scores):
    """Lets evaluations find these scores, and decode nothing."""
    results = iter(scores)

    def score(*_):
        bleu = {"BLEU": next(results)}
        return Score("BLEU", bleu, {"BLEU": "signature"})

    monkeypatch.setattr(TextDecoder, "decode_and_score", score)


EVERY_2 = "--local_eval_frequency=2"


def test_killed_evaluation_is_repeated_first(train, run):
    how = [EVERY_2, "--train_steps=6", "--early_stopping_evals=1"]
    with pytest.raises(KilledError):
        train([3.0, KilledError()], *how)
    assert evaluated(run) == ({2: 3.0}, 2)
    assert checkpoint_names(run) == ["model.ckpt-2", "model.ckpt-4"]
    stderr = train([2.0, 1.0], *how).err
    assert evaluated(run) == ({2: 3.0, 4: 2.0, 6: 1.0}, 6)
    order = "(?s)Evaluating step 4.*step 4: dev loss 2.0000.*step 6: dev loss 1.0"
    assert re.search(order, stderr)
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
        before_writing(patch, EvaluationsFile, killed)
        with pytest.raises(KilledError):
            train([2.0], *how)
    assert events(run)["dev/loss"] == [2, 4]
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    train([2.0], *how)
    assert evaluated(run) == ({2: 3.0, 4: 2.0}, 4)
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]


def test_killed_last_evaluation_is_repeated(train, run):
    with pytest.raises(KilledError):
        train([KilledError()], "--train_steps=2")
    assert evaluated(run) == ({}, None)
    before = contents(run)
    output = train([2.5], "--train_steps=2")
    assert "step 2: dev loss 2.5000" in output.err
    assert "Nothing to train: the run is at step 2 of 2." in output.err
    assert "Trained twenty_words: dev loss 2.5000" in output.out
    assert evaluated(run) == ({2: 2.5}, 2)
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]
    after = contents(run)
    changed = [name for name in before if after[name] != before[name]]
    assert all("events" in name for name in changed)


@pytest.mark.parametrize("number", STOPPING, ids=lambda number: number.name)
def test_signal_ends_an_evaluation(train, run, number):
    stderr = train([number], EVERY_2, "--train_steps=4", status=128 + number).err
    assert f"Stopped by {number.name} at step 2; a checkpoint is saved. The" in stderr
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])


def test_signal_while_the_best_is_written_comes_after_it(train, run, monkeypatch):
    sigterm = functools.partial(signal.raise_signal, signal.SIGTERM)
    before_writing(monkeypatch, DevEvaluation, sigterm)
    train([2.0], EVERY_2, "--train_steps=4", status=128 + signal.SIGTERM)
    assert (evaluated(run), checkpoint_names(run)) == (({2: 2.0}, 2), ["model.ckpt-2"])
    assert checkpoint_names(run / "best") == ["model.ckpt-2"]


def test_error_in_scoring_does_not_count_as_evaluation(train, run, monkeypatch):
    how = [EVERY_2, "--train_steps=4", "--early_stopping_evals=1", "--eval_bleu"]

    def broken(*args):
        raise OSError("[Errno 28] No space left on device")

    monkeypatch.setattr(TextDecoder, "decode_and_score", broken)
    stderr = train([2.0], *how, status=1).err
    assert "No space left on device" in stderr
    assert (evaluated(run), checkpoint_names(run)) == (({}, None), ["model.ckpt-2"])
    fake_bleu(monkeypatch, 30.0, 20.0)
    train([2.0, 2.0], *how)
    assert evaluated(run)[0] == {2: 2.0, 4: 2.0}
    assert RunFolder(run).best().metrics["bleu"] == 30.0


def test_early_stopping_counts_evaluations_not_steps(train, run):
    """Step 8 is six steps after the best, but a single evaluation."""
    how = ["--early_stopping_evals=3", "--train_steps=8"]
    train([1.0, 2.0], *how, "--local_eval_frequency=2", "--train_steps=4")
    stderr = train([2.0, 2.0], *how, "--local_eval_frequency=1").err
    stopping = "Stopping early at step 6, without a better evaluation."
    assert stopping in stderr
    assert evaluated(run) == ({2: 1.0, 4: 2.0, 5: 2.0, 6: 2.0}, 2)
    stderr = train([2.0], *how, "--local_eval_frequency=1").err
    stopped = "Nothing to train: the run stopped early at step 6 of 8."
    assert stopped in stderr


def test_dev_loss_of_nan_is_recorded_and_can_be_read(train, run):
    train([float("nan"), 2.0], EVERY_2, "--train_steps=4")
    first, second = RunFolder(run).evaluations()
    assert (first.step, first.metrics) == (2, {"accuracy": 0.5})
    assert second.metrics["loss"] == 2.0
    assert RunFolder(run).best().step == 4


@pytest.mark.parametrize("loss", [89.0, 240.0, 9e30])
def test_diverged_dev_loss_is_recorded(train, run, loss):
    """exp(89) is infinite in float32, in which TensorBoard stores it, and exp(231)
    beyond what records may hold.
    """
    train([2.0, loss, 3.0], EVERY_2, "--train_steps=4")
    assert evaluated(run) == ({2: 2.0, 4: loss}, 2)
    train([], EVERY_2, "--train_steps=6")
    assert RunFolder(run).evaluations()[1].metrics == {"loss": loss, "accuracy": 0.5}


def test_deleted_best_checkpoint_is_replaced_by_the_next(train, run):
    """best.json alone kept all later ones from being the best, and early stopping
    counted from it.
    """
    how = [EVERY_2, "--early_stopping_evals=2"]
    train([1.0, 5.0], *how, "--train_steps=4")
    for path in (run / "best").glob("model.ckpt-*"):
        path.unlink()
    train([5.0, 4.0], *how, "--train_steps=6")
    assert evaluated(run) == ({2: 1.0, 4: 5.0, 6: 4.0}, 6)
    assert checkpoint_names(run / "best") == ["model.ckpt-6"]


def test_equal_bleu_is_decided_by_loss(train, run, monkeypatch):
    """BLEU below 1 at first, up and down, does not end a run whose loss falls."""
    fake_bleu(monkeypatch, 0.02, 0.004, 0.0, 0.9, 7.0)
    how = [EVERY_2, "--train_steps=10", "--early_stopping_evals=2", "--eval_bleu"]
    train([6.0, 5.5, 5.0, 5.2, 6.0], *how)
    assert list(evaluated(run)[0]) == [2, 4, 6, 8, 10]
    best = RunFolder(run).best()
    assert (best.step, best.metrics["bleu"], best.criterion) == (10, 7.0, "bleu")


def test_bleu_that_collapses_stops_a_run_whose_loss_falls(train, run, monkeypatch):
    fake_bleu(monkeypatch, 20.0, 0.02, 0.03)
    how = [EVERY_2, "--train_steps=10", "--early_stopping_evals=2", "--eval_bleu"]
    stderr = train([3.0, 2.5, 2.0], *how).err
    stopping = "Stopping early at step 6, without a better evaluation."
    assert stopping in stderr
    assert evaluated(run) == ({2: 3.0, 4: 2.5, 6: 2.0}, 2)


def weights_that_count_steps(monkeypatch):
    """Lets each training step add 1 to a weight, and decoding find the BLEU that is set
    for its value; returns that dict.
    """
    bleu = {}

    def make_train_step(strategy, model, *_):
        def step(batches, stop):
            model.trainable_variables[0].assign_add(
                np.ones(model.trainable_variables[0].shape)
            )
            return StepResult(1.0, 10.0)

        return step

    def decode_and_score(decoder, *_):
        weight = decoder.engine.model.trainable_variables[0].numpy().flat[0]
        score = bleu[round(float(weight - bleu["start"]))]
        if isinstance(score, BaseException):
            raise score
        return Score("BLEU", {"BLEU": score}, {"BLEU": "s"})

    monkeypatch.setattr(loop, "make_train_step", make_train_step)
    monkeypatch.setattr(TextDecoder, "decode_and_score", decode_and_score)
    return bleu


def first_weight(checkpoint):
    """The first element of the embedding matrix in a checkpoint."""
    arrays = tensors(checkpoint)
    [name] = [
        name for name in arrays if re.fullmatch("model/.*embedding(?!.*Adam).*", name)
    ]
    return arrays[name].flat[0]


def test_best_by_loss_is_decoded_once_when_bleu_decides(train, run, monkeypatch):
    """The weights of step 2 are decoded when the run resumes from step 4, and
    remain the best, since those of step 6 have a lower BLEU.
    """
    bleu = weights_that_count_steps(monkeypatch)
    how = [EVERY_2, "--early_stopping_evals=2", "--keep_checkpoint_max=1"]
    train([3.0, 4.0], *how, "--train_steps=4")
    bleu["start"] = first_weight(run / "best" / "model.ckpt-2") - 2
    bleu |= {2: KilledError(), 6: 30.0, 8: 50.0}
    more = [*how, "--train_steps=8", "--eval_bleu"]
    before = contents(run)
    with pytest.raises(KilledError):
        train([], *more)
    after = contents(run)
    changed = [name for name in before if after[name] != before[name]]
    assert all("events" in name for name in changed)
    bleu[2] = 40.0
    stderr = train([2.0, 3.5], *more).err
    assert "From here on dev bleu decides. The best so far is step 2." in stderr
    assert "step 6: dev loss 2.0000" in stderr
    assert not re.search(r"step 6: .*best so far", stderr)
    assert re.search(r"step 8: .*BLEU 50.00 \(best so far\)", stderr)
    # it trained on from the weights of step 4, not from those of step 2
    assert first_weight(run / "model.ckpt-8") - bleu["start"] == pytest.approx(8)
    records = {record.step: record.metrics for record in RunFolder(run).evaluations()}
    assert [metrics.get("bleu") for metrics in records.values()] == [None, None, 30, 50]
    # a third start compares nothing again
    bleu[10] = 45.0
    stderr = train([1.0], *how, "--train_steps=10", "--eval_bleu").err
    assert "From here on" not in stderr
    assert evaluated(run)[1] == 8


def test_patience_counts_what_was_compared_by_the_same_metric(train, run, monkeypatch):
    """Evaluations 4 and 6 were worse by loss; their BLEU is not known."""
    how = [EVERY_2, "--early_stopping_evals=2"]
    stderr = train([1.0, 2.0, 2.0], *how, "--train_steps=8").err
    assert "Stopping early at step 6" in stderr
    fake_bleu(monkeypatch, 30.0, 31.0)
    train([2.0], *how, "--train_steps=8", "--eval_bleu")
    assert evaluated(run)[1] == 8


def test_weights_of_a_useless_loss_are_not_saved(train, run, monkeypatch):
    """They are finite, so that restarts would train on from them."""
    how = [EVERY_2, "--train_steps=4"]
    losses = iter([5.0, 5.0, 1e20])  # before the first step, and before each save
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda: next(losses))
    stderr = train([2.0], *how, status=1).err
    assert "diverged: the loss is 1e+20 at step 4, which is not saved." in stderr
    assert (evaluated(run), checkpoint_names(run)) == (({2: 2.0}, 2), ["model.ckpt-2"])
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda: 5.0)
    train([1.0], *how, f"--hparams={SMALL},learning_rate_constant=0.1")
    assert evaluated(run) == ({2: 2.0, 4: 1.0}, 4)


def test_early_stopping_without_evaluations_is_refused(train, run):
    stderr = train(
        [], "--early_stopping_evals=2", "--local_eval_frequency=0", status=1
    ).err
    message = "early_stopping_evals requires local_eval_frequency."
    assert message in stderr
    assert not run.exists()
