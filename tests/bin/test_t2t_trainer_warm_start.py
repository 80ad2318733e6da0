"""The command t2t-trainer --warm_start_from: a run that starts from another one's
weights; and --eval_bleu.
"""

import contextlib
import io
import json
import re
import signal
from typing import NamedTuple

import numpy as np
import pytest
from eager import run_eagerly
from tiny_run import checkpoint_names, events, small, tensors, train

import t2tlite
from t2tlite.bin import t2t_decoder, t2t_trainer
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.runs.checkpoint_choice import checkpoint_notes
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.training import loop
from t2tlite.training.checkpoints import Checkpoints
from t2tlite.training.learning_rates import LearningRate
from t2tlite.training.signals import STOPPING


class Continued(NamedTuple):
    """A step from a partly trained model, whose translations are neither all right nor
    all wrong.
    """

    run: RunFolder
    stderr: str


@pytest.fixture(scope="module")
def continued(tiny_run, tmp_path_factory):
    folder, err = tmp_path_factory.mktemp("continued") / "run", io.StringIO()
    flags = [
        f"--data_dir={tiny_run.data}",
        f"--warm_start_from={tiny_run.run}/model.ckpt-80",
        f"--output_dir={folder}",
    ]
    with contextlib.redirect_stderr(err), run_eagerly():
        status = t2t_trainer.main(
            [*flags, "--hparams=label_smoothing=0.2", "--train_steps=1", "--eval_bleu"]
        )
    assert status == 0, err.getvalue()
    return Continued(RunFolder(folder), err.getvalue())


def test_hparams_are_those_of_that_run(tiny_run, continued):
    """80 steps, of which 60 of warm-up: the new rate, at its peak, is that of update
    80.
    """
    message = (
        f"the hparams of {tiny_run.run}/model.ckpt-80, with"
        " learning_rate_constant=0.3464, so that"
    )
    assert message in continued.stderr  # 0.4 / root of (80 / 60)
    ours, theirs = continued.run.hparams(), RunFolder(tiny_run.run).hparams()
    assert ours.diff(theirs) == {
        "learning_rate_constant": (0.3464, 0.4),
        "label_smoothing": (0.2, 0.1),
    }
    loss = float(re.search(r"step 1: dev loss (\d+\.\d+)", continued.stderr)[1])
    assert (
        f"Starting from the weights of {tiny_run.run}/model.ckpt-80."
        in continued.stderr
    )
    assert loss < 3  # an untrained model has ln 500 = 6.2
    rates = [
        LearningRate("noam", 32, 60, hparams.learning_rate_constant)
        for hparams in (ours, theirs)
    ]
    assert float(rates[0](59)) == pytest.approx(float(rates[1](79)), rel=1e-3)


def test_bleu_of_dev(continued):
    shown = re.search(
        r"step 1: .*, BLEU (\d+\.\d\d) \(chrF2 (\d+\.\d\d)\)", continued.stderr
    )
    recorded = continued.run.evaluations()[1].metrics
    metrics = [recorded["bleu"], recorded["chrf2"]]
    assert metrics == pytest.approx(
        [float(number) for number in shown.groups()], abs=0.01
    )
    # before the first step, too
    assert events(continued.run.path)["dev/bleu"] == [0, 1]
    assert events(continued.run.path)["dev/chrf2"] == [0, 1]


def test_first_line_shows_where_it_began(tiny_run, continued):
    """The metrics of the checkpoint that it starts from, as its own run recorded
    them.
    """
    recorded = next(
        evaluation
        for evaluation in RunFolder(tiny_run.run).evaluations()
        if evaluation.step == 80
    )
    loss, bleu = re.search(
        r"step 0: dev loss (\d+\.\d+), .*, BLEU (\d+\.\d\d) ", continued.stderr
    ).groups()
    assert float(loss) == pytest.approx(recorded.metrics["loss"], abs=2e-4)
    assert 0 <= float(bleu) <= 100
    start, first = continued.run.evaluations()
    assert (start.step, first.step) == (0, 1)
    assert start.metrics["loss"] == pytest.approx(recorded.metrics["loss"], abs=2e-4)
    assert start.metrics["bleu"] == pytest.approx(float(bleu), abs=0.006)
    best = max(continued.run.evaluations(), key=lambda record: record.metrics["bleu"])
    assert continued.run.best().step == best.step


def test_dev_bleu_is_the_same_wherever_it_is_computed(continued):
    """One path from text to scored text: evaluation during training, t2t-decoder and
    Python.
    """
    run = continued.run
    newest = run.evaluations()[-1].metrics
    in_training = newest["bleu"]
    assert 5 < in_training < 95
    assert t2t_decoder.main([f"--output_dir={run}", "--split=dev"]) == 0
    record = json.loads((run.path / "decodes" / "dev.1.json").read_text())
    assert record["scores"]["BLEU"] == in_training
    assert record["scores"]["chrF2"] == newest["chrf2"]
    model, store = t2tlite.load(run.path), run_dataset(run).store("dev")
    decoded = model.decode_and_score(
        store.source_text(), store.target_text(), model.options()
    )
    assert decoded.score.value == in_training
    assert [outputs[0].text for outputs in decoded.n_best] == run.decoded_file(
        "dev.1"
    ).read_text().splitlines()


def test_warm_start_early_stopping_and_what_is_kept(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    """From a trained run: the second evaluation after the first step is better than the
    start, and stays the best.
    """
    run = tmp_path / "run"
    how = [
        "--local_eval_frequency=2",
        "--early_stopping_evals=3",
        "--keep_checkpoint_max=2",
        "--train_steps=100",
    ]
    fake_dev_losses += [1.5, 2.0, 1.0, 1.5, 1.4, 1.3, 1.2]
    assert train(tiny_run, run, *how, f"--warm_start_from={tiny_run.run}") == 0
    stderr = capsys.readouterr().err
    assert f"Starting from the weights of {tiny_run.run}/model.ckpt-120." in stderr
    assert (
        "Stopping early at step 10: 3 evaluations without a better dev loss." in stderr
    )
    assert checkpoint_names(run) == ["model.ckpt-8", "model.ckpt-10"]
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    best = RunFolder(run).best()
    assert (best.step, best.metrics["loss"]) == (4, 1.0)
    weights = tensors(tiny_run.run / "model.ckpt-120")
    for name, array in tensors(run / "best" / "model.ckpt-4").items():
        if name.startswith("model/"):
            np.testing.assert_array_equal(array, weights[name], err_msg=name)
    assert train(tiny_run, run, *how) == 0
    assert (
        "Nothing to train: the run stopped early at step 10." in capsys.readouterr().err
    )
    assert checkpoint_names(run)[-1] == "model.ckpt-10"


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_before_the_first_step(
    tiny_run, tmp_path, fake_dev_losses, capsys, number
):
    """There is no checkpoint but the start, and none is spoken of."""
    run = tmp_path / "run"
    fake_dev_losses.append(number)
    start = "--train_steps=100", f"--warm_start_from={tiny_run.run}"
    assert train(tiny_run, run, *start) == 128 + number
    stderr = capsys.readouterr().err
    assert stderr.endswith(
        f"t2tlite: Stopped by {number.name} before the first step. Nothing is trained"
        " yet; the same command starts again.\n"
    )
    assert "checkpoint is saved" not in stderr
    assert checkpoint_names(run) == ["model.ckpt-0"]


def test_the_start_may_be_the_best(tiny_run, tmp_path, fake_dev_losses, capsys):
    """A run that only becomes worse stops early, and keeps the weights it began
    with.
    """
    run = tmp_path / "run"
    how = [
        f"--warm_start_from={tiny_run.run}",
        "--local_eval_frequency=2",
        "--early_stopping_evals=2",
        "--keep_checkpoint_max=1",
        "--train_steps=100",
    ]
    fake_dev_losses += [0.9, 2.0, 1.0]
    assert train(tiny_run, run, *how) == 0
    output = capsys.readouterr()
    assert re.search(r"step 0: dev loss 0\.9000.* \(best so far\)", output.err)
    assert not re.search(r"step [24]: .*best so far", output.err)
    assert "Stopping early at step 4: 2 evaluations without" in output.err
    assert "Best checkpoint by dev loss, step 0: dev loss 0.9000" in output.out
    assert checkpoint_names(run) == ["model.ckpt-4"]
    assert checkpoint_names(run / "best") == ["model.ckpt-0"]
    weights = tensors(tiny_run.run / "model.ckpt-120")
    for name, array in tensors(run / "best" / "model.ckpt-0").items():
        if name.startswith("model/"):
            np.testing.assert_array_equal(array, weights[name], err_msg=name)
    losses = [record.metrics["loss"] for record in RunFolder(run).evaluations()]
    assert losses == [0.9, 2.0, 1.0]
    assert events(run)["dev/loss"] == [0, 2, 4]
    # what uses the run
    find = find_checkpoint(run, "best")
    assert find == find_checkpoint(run, "0") == str(run / "best" / "model.ckpt-0")
    notes = checkpoint_notes(RunFolder(run), str(run / "model.ckpt-4"))
    assert notes == [
        "Using the newest checkpoint, of step 4; the best by dev, of step 0, is"
        " --checkpoint_path=best."
    ]
    fake_dev_losses.append(1.0)
    assert train(tiny_run, run, *how[1:]) == 0
    assert "the run stopped early at step 4." in capsys.readouterr().err


class KilledError(BaseException):
    """Ends a run as SIGKILL does: nothing handles it."""


@pytest.mark.parametrize("killed_at", ["saving", "evaluating", "keeping", "recording"])
def test_killed_at_its_start(
    tiny_run, tmp_path, fake_dev_losses, monkeypatch, capsys, killed_at
):
    """The start is evaluated once more, also without --warm_start_from."""
    run = tmp_path / "run"
    how = ["--local_eval_frequency=2", "--train_steps=4"]
    warm = f"--warm_start_from={tiny_run.run}"
    place = {
        "saving": (Checkpoints, "save"),
        "keeping": (RunFolder, "write_best"),
        "recording": (RunFolder, "write_evaluations"),
    }
    fake_dev_losses.append(KilledError() if killed_at == "evaluating" else 0.9)
    with monkeypatch.context() as patch:
        if killed_at in place:
            patch.setattr(*place[killed_at], raises_killed)
        with pytest.raises(KilledError):
            train(tiny_run, run, *how, warm)
    assert RunFolder(run).evaluations() == []
    fake_dev_losses[:] = [0.9, 2.0, 0.5]
    capsys.readouterr()
    # before the first checkpoint, nothing has begun
    more = [warm] if killed_at == "saving" else []
    assert train(tiny_run, run, *how, *more) == 0
    stderr = capsys.readouterr().err
    if killed_at != "saving":
        assert "resuming from step 0." in stderr
        assert "Evaluating step 0, which was not finished." in stderr
    folder = RunFolder(run)
    losses = {record.step: record.metrics["loss"] for record in folder.evaluations()}
    assert losses == {0: 0.9, 2: 2.0, 4: 0.5}
    assert folder.best().step == 4
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    assert folder.trained_with().warm_start_from == f"{tiny_run.run}/model.ckpt-120"
    weights = tensors(tiny_run.run / "model.ckpt-120")
    arrays = tensors(run / "model.ckpt-0")
    assert all((arrays[name] == weights[name]).all() for name in model_names(arrays))


def raises_killed(*_):
    raise KilledError


def model_names(arrays):
    return [name for name in arrays if name.startswith("model/")]


def test_a_resumed_run_says_that_it_does_not_start_from_others(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    run = tmp_path / "run"
    fake_dev_losses += [2.0, 1.0, 0.5]
    how = ["--local_eval_frequency=2"]
    assert train(tiny_run, run, *how, "--train_steps=2") == 0
    warm = f"--warm_start_from={tiny_run.run}"
    assert train(tiny_run, run, *how, "--train_steps=4", warm) == 0
    assert (
        f"{warm} is not used: {run} resumes, and started from random weights."
        in capsys.readouterr().err
    )


def test_best_of_a_start_without_newer_checkpoints_is_refused(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    """All checkpoints of the run were deleted but those in best."""
    run = tmp_path / "run"
    fake_dev_losses += [0.9, 2.0]
    how = ["--local_eval_frequency=2", "--train_steps=2"]
    assert train(tiny_run, run, *how, f"--warm_start_from={tiny_run.run}") == 0
    for path in run.glob("model.ckpt-*"):
        path.unlink()
    assert train(tiny_run, run, *how) == 1
    assert "whose newest is missing" in capsys.readouterr().err


def test_a_signal_while_the_largest_batch_is_tried(
    tiny_run, tmp_path, fake_dev_losses, monkeypatch, capsys
):
    """No step is trained for it, which may take a minute."""
    monkeypatch.setattr(
        loop,
        "make_trial",
        lambda *_: lambda: signal.raise_signal(signal.SIGTERM),
    )
    run = tmp_path / "run"
    assert train(tiny_run, run, "--train_steps=100") == 128 + signal.SIGTERM
    assert capsys.readouterr().err.endswith(
        "SIGTERM: stopping, and saving what is trained; once more ends at once.\n"
        "t2tlite: Stopped by SIGTERM before the first step. Nothing is trained yet; the"
        " same command starts again.\n"
    )
    assert checkpoint_names(run) == []


def test_warm_start_from_another_shape(tiny_run, tmp_path, capsys):
    assert small(tiny_run, tmp_path / "run", f"--warm_start_from={tiny_run.run}") == 1
    stderr = capsys.readouterr().err
    assert (
        f"Checkpoint {tiny_run.run}/model.ckpt-120 cannot be restored: the model's"
        " embedding/" in stderr
    )
    assert "has the shape [500, 8], but its shape there is [500, 32]." in stderr


def test_warm_start_from_another_vocabulary_is_refused(
    tiny_run, tiny_run_copy, tmp_path, capsys
):
    """Its size is the same."""
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    manifest["vocabulary"]["sha256"] = "0" * 64
    (tiny_run_copy / "manifest.json").write_text(json.dumps(manifest))
    status = train(
        tiny_run, tmp_path / "run", f"--warm_start_from={tiny_run_copy / 'best'}"
    )
    assert status == 1
    stderr = capsys.readouterr().err
    assert (
        f"Received: {tiny_run_copy} and {tiny_run.data}/twenty_words, which differ in"
        f" vocabulary ({'0' * 12}, " in stderr
    )
    assert (
        f"t2t-datagen --vocab_file={tiny_run_copy}/vocab.model, in another --data_dir."
        in stderr
    )
    assert not (tmp_path / "run").exists()


def test_weights_of_another_model_that_fit_are_reported(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    """Two heads and four have weights of the same shapes."""
    fake_dev_losses += [3.0, 2.0]
    how = ["--train_steps=1", "--hparams=num_heads=4"]
    run = tmp_path / "run"
    assert train(tiny_run, run, *how, f"--warm_start_from={tiny_run.run}") == 0
    assert (
        f"The weights of {tiny_run.run}/model.ckpt-120 were trained in another model,"
        " which differs in num_heads (2, 4)." in capsys.readouterr().err
    )


def test_warm_start_from_nothing(tiny_run, tmp_path, capsys):
    status = train(tiny_run, tmp_path / "run", f"--warm_start_from={tmp_path}/absent")
    assert status == 1
    assert f"There is no checkpoint at {tmp_path}/absent." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
