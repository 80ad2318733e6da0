"""The command t2t-trainer --warm_start_from: a run that starts from another one's
weights; and --eval_bleu.
"""

import contextlib
import io
import json
import re

import numpy as np
import pytest
from eager import run_eagerly
from run_command import run_command
from tiny_run import (
    before_writing,
    change_manifest,
    checkpoint_names,
    events,
    small,
    tensors,
    train,
)

import t2tlite
from t2tlite.bin import t2t_decoder, t2t_trainer
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.runs.load import notes_on_checkpoint, run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation, EvaluationsFile, TrainedWith
from t2tlite.training.checkpoints import Checkpoints
from t2tlite.training.learning_rates import LearningRate
from t2tlite.training.signals import STOPPING


@pytest.fixture(scope="module")
def continued(tiny_run, tmp_path_factory):
    """A step from a partly trained model, whose translations are neither all right nor
    all wrong: the run, and what was printed.
    """
    folder, err = tmp_path_factory.mktemp("continued") / "run", io.StringIO()
    start = f"--warm_start_from={tiny_run.run}/model.ckpt-80"
    flags = [f"--data_dir={tiny_run.data}", start, f"--output_dir={folder}"]
    more = ["--hparams=label_smoothing=0.2", "--train_steps=1", "--eval_bleu"]
    with contextlib.redirect_stderr(err), run_eagerly():
        run_command(t2t_trainer, *flags, *more)
    return RunFolder(folder), err.getvalue()


def test_hparams_are_those_of_that_run(tiny_run, continued):
    """80 steps, of which 60 of warm-up: the new rate, at its peak, is that of update
    80.
    """
    run, stderr = continued
    checkpoint = f"{tiny_run.run}/model.ckpt-80"
    # 0.4 / root of (80 / 60)
    assert f"the hparams of {checkpoint}, with learning_rate_constant=0.3464." in stderr
    assert f"Starting from the weights of {checkpoint}." in stderr
    ours, theirs = run.hparams(), RunFolder(tiny_run.run).hparams()
    assert ours.diff(theirs) == {
        "learning_rate_constant": (0.3464, 0.4),
        "label_smoothing": (0.2, 0.1),
    }
    loss = float(re.search(r"step 1: dev loss (\d+\.\d+)", stderr)[1])
    assert loss < 3  # an untrained model has ln 500 = 6.2
    rates = [
        LearningRate("noam", 32, 60, hparams.learning_rate_constant)(update)
        for hparams, update in ((ours, 59), (theirs, 79))
    ]
    assert float(rates[0]) == pytest.approx(float(rates[1]), rel=1e-3)


def test_dev_is_scored_from_where_it_began(tiny_run, continued):
    """The first metrics are of the checkpoint that it starts from, as its own run
    recorded them.
    """
    run, stderr = continued
    recorded = RunFolder(tiny_run.run).evaluations()[1]
    pattern = r"step {}: dev loss (\S+),.*, BLEU (\S+) \(chrF2 (\d+\.\d\d)\)"
    for evaluation in run.evaluations():
        shown = re.search(pattern.format(evaluation.step), stderr).groups()
        metrics = [evaluation.metrics[name] for name in ("loss", "bleu", "chrf2")]
        assert list(map(float, shown)) == pytest.approx(metrics, abs=0.01)
    start, first = run.evaluations()
    assert (recorded.step, start.step, first.step) == (80, 0, 1)
    assert start.metrics["loss"] == pytest.approx(recorded.metrics["loss"], abs=2e-4)
    for name in ("dev/bleu", "dev/chrf2"):
        assert events(run.path)[name] == [0, 1]
    best = max(run.evaluations(), key=lambda record: record.metrics["bleu"])
    assert run.best().step == best.step


def test_dev_bleu_is_the_same_wherever_it_is_computed(continued):
    """One path from text to scored text: evaluation during training, t2t-decoder and
    Python.
    """
    run, _ = continued
    newest = run.evaluations()[-1].metrics
    assert 5 < newest["bleu"] < 95
    run_command(t2t_decoder, f"--output_dir={run}", "--split=dev")
    scores = run.decode_record("dev.1").scores
    assert (scores["BLEU"], scores["chrF2"]) == (newest["bleu"], newest["chrf2"])
    model, store = t2tlite.load(run.path), run_dataset(run).store("dev")
    texts = store.source_text(), store.target_text()
    n_best = model.decode(texts[0], model.options())
    score = model.score_outputs(*texts, n_best, model.options())
    assert score.value == newest["bleu"]
    written = run.decoded_file("dev.1").read_text().splitlines()
    assert [outputs[0].text for outputs in n_best] == written


@pytest.fixture
def run(tmp_path):
    return tmp_path / "run"


@pytest.fixture
def start(tiny_run, run, capsys, fake_dev_losses):
    """start(losses, *flags): what t2t-trainer prints, with these dev losses."""

    def start(losses, *flags, status=0):
        fake_dev_losses[:] = losses
        capsys.readouterr()
        assert train(tiny_run, run, *flags) == status
        return capsys.readouterr()

    return start


@pytest.fixture
def warm(tiny_run):
    return f"--warm_start_from={tiny_run.run}"


EVERY_2 = "--local_eval_frequency=2"


def model_tensors(checkpoint):
    arrays = tensors(checkpoint)
    return {name: arrays[name] for name in arrays if name.startswith("model/")}


def assert_same_weights(checkpoint, other):
    weights = model_tensors(other)
    for name, array in model_tensors(checkpoint).items():
        np.testing.assert_array_equal(array, weights[name], err_msg=name)


def test_warm_start_early_stopping_and_what_is_kept(start, warm, run):
    """The second evaluation after the first step is better than the start, and stays
    the best.
    """
    how = [EVERY_2, "--early_stopping_evals=3", "--keep_checkpoint_max=2"]
    how.append("--train_steps=100")
    stderr = start([1.5, 2.0, 1.0, 1.5, 1.4, 1.3, 1.2], *how, warm).err
    assert "Stopping early at step 10, without a better" in stderr
    assert checkpoint_names(run) == ["model.ckpt-8", "model.ckpt-10"]
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    best = RunFolder(run).best()
    assert (best.step, best.metrics["loss"]) == (4, 1.0)
    assert "the run stopped early at step 10 of 100." in start([1.2], *how).err


@pytest.mark.parametrize("number", STOPPING)
def test_a_signal_before_the_first_step(start, warm, run, number):
    """There is no checkpoint but the start, and none is spoken of."""
    stderr = start([number], "--train_steps=100", warm, status=128 + number).err
    assert stderr.endswith(
        f"t2tlite: Stopped by {number.name} before the first step. The same command"
        " continues.\n"
    )
    assert "checkpoint is saved" not in stderr
    assert checkpoint_names(run) == ["model.ckpt-0"]


def test_the_start_may_be_the_best(start, warm, tiny_run, run):
    """A run that only becomes worse stops early, and keeps the weights it began
    with.
    """
    how = [EVERY_2, "--early_stopping_evals=2", "--keep_checkpoint_max=1"]
    how.append("--train_steps=100")
    out, err = start([0.9, 2.0, 1.0], *how, warm)
    assert re.search(r"step 0: dev loss 0\.9000.* \(best so far\)", err)
    assert not re.search(r"step [24]: .*best so far", err)
    assert "Stopping early at step 4, without a better" in err
    assert "Best checkpoint by dev loss, step 0: dev loss 0.9000" in out
    assert checkpoint_names(run) == ["model.ckpt-4"]
    assert checkpoint_names(run / "best") == ["model.ckpt-0"]
    assert_same_weights(run / "best/model.ckpt-0", tiny_run.run / "model.ckpt-120")
    losses = [record.metrics["loss"] for record in RunFolder(run).evaluations()]
    assert losses == [0.9, 2.0, 1.0]
    assert events(run)["dev/loss"] == [0, 2, 4]
    # what uses the run
    best = f"{run}/best/model.ckpt-0"
    assert find_checkpoint(run, "best") == find_checkpoint(run, "0") == best
    [note] = notes_on_checkpoint(RunFolder(run), f"{run}/model.ckpt-4")
    assert note.endswith("the best by dev, of step 0, is --checkpoint_path=best.")
    assert "the run stopped early at step 4 of 100." in start([1.0], *how).err


class KilledError(BaseException):
    """Ends a run as SIGKILL does: nothing handles it."""


def raises_killed(*_):
    raise KilledError


@pytest.mark.parametrize("killed_at", ["saving", "evaluating", "keeping", "recording"])
def test_killed_at_its_start(start, warm, tiny_run, run, monkeypatch, killed_at):
    """The start is evaluated once more, also without --warm_start_from."""
    how = [EVERY_2, "--train_steps=4"]
    records = {"keeping": DevEvaluation, "recording": EvaluationsFile}
    with monkeypatch.context() as patch:
        if killed_at == "saving":
            patch.setattr(Checkpoints, "save", raises_killed)
        before_writing(patch, records.get(killed_at, ()), raises_killed)
        with pytest.raises(KilledError):
            start([KilledError() if killed_at == "evaluating" else 0.9], *how, warm)
    assert RunFolder(run).evaluations() == []
    # before the first checkpoint, nothing has begun
    more = [warm] if killed_at == "saving" else []
    stderr = start([0.9, 2.0, 0.5], *how, *more).err
    if killed_at != "saving":
        assert "resuming from step 0." in stderr
        assert "Evaluating step 0, which was not finished." in stderr
    folder = RunFolder(run)
    losses = {record.step: record.metrics["loss"] for record in folder.evaluations()}
    assert losses == {0: 0.9, 2: 2.0, 4: 0.5}
    assert folder.best().step == 4
    assert checkpoint_names(run / "best") == ["model.ckpt-4"]
    assert folder.read(TrainedWith).warm_start_from == f"{tiny_run.run}/model.ckpt-120"
    assert_same_weights(run / "model.ckpt-0", tiny_run.run / "model.ckpt-120")


def test_warm_start_from_another_shape(tiny_run, run, warm, capsys):
    assert small(tiny_run, run, warm) == 1
    stderr = capsys.readouterr().err
    checkpoint = f"Checkpoint {tiny_run.run}/model.ckpt-120"
    need = "hparams and vocabularies need 5,136 weights"
    assert f"{checkpoint} cannot be restored: {need}" in stderr


def test_warm_start_from_another_vocabulary_is_refused(
    start, tiny_run, tiny_run_copy, run
):
    """Its size is the same."""
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    vocabulary = manifest["vocabulary"] | {"sha256": "0" * 64}
    change_manifest(tiny_run_copy, vocabulary=vocabulary)
    stderr = start([], f"--warm_start_from={tiny_run_copy / 'best'}", status=1).err
    data = f"{tiny_run.data}/twenty_words"
    differs = f"{tiny_run_copy} and {data}, which differ in vocabulary ({'0' * 12}, "
    assert f"Received: {differs}" in stderr
    made = f"t2t-datagen --vocab_file={tiny_run_copy}/vocab.model, in another"
    assert made in stderr
    assert not run.exists()


def test_weights_of_another_model_that_fit_are_reported(start, warm, tiny_run):
    """Two heads and four have weights of the same shapes."""
    stderr = start([3.0, 2.0], "--train_steps=1", "--hparams=num_heads=4", warm).err
    differed = "model.ckpt-120 differed in num_heads (2, 4)."
    assert differed in stderr


def test_warm_start_from_nothing(start, tmp_path, run):
    absent = f"{tmp_path}/absent"
    stderr = start([], f"--warm_start_from={absent}", status=1).err
    assert f"There is no checkpoint at {absent}," in stderr
    assert not run.exists()
