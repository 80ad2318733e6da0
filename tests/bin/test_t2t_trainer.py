"""The command t2t-trainer: what a run holds, and how it may end."""

import re

import numpy as np
import pytest
from tiny_run import checkpoint_names, events, small, tensors

from t2tlite.run_folder import RunFolder
from t2tlite.training import loop
from t2tlite.training.train_step import StepResult

# what a run holds


def test_run_is_self_contained(tiny_run):
    names = [f"model.ckpt-{step}" for step in (40, 80, 120)]
    assert checkpoint_names(tiny_run.run) == names
    run = RunFolder(tiny_run.run)
    assert run.hparams().hidden_size == 32
    vocabulary = (tiny_run.data / "twenty_words" / "vocab.model").read_bytes()
    assert (tiny_run.run / "vocab.model").read_bytes() == vocabulary
    assert run.manifest().name == "twenty_words"
    noted = run.flags()
    expected = {"generate_data": "True", "local_eval_frequency": "40"}
    assert noted.items() >= (expected | {"problem": "twenty_words"}).items()
    assert not {"hparams", "warm_start_from"} & set(noted)  # not given


def test_events_have_the_metrics(tiny_run):
    steps = events(tiny_run.run)
    assert steps["train/loss"] == steps["train/gradient_norm"] == list(range(1, 121))
    for name in ("dev/loss", "dev/perplexity", "dev/accuracy"):
        assert steps[name] == [40, 80, 120]
    for name in ("train/learning_rate", "train/tokens_per_second"):
        assert steps[name][-1] == 120


def test_what_is_said(tiny_run):
    assert "twenty_words: made in" in tiny_run.stderr  # --generate_data
    assert "1,500 pairs in 12 batches an epoch, 1 replica." in tiny_run.stderr
    assert re.search(
        r"step 40: dev loss \d+\.\d{4}, perplexity \d+\.\d{3}, accuracy 0\.\d{4}"
        r" \(best",
        tiny_run.stderr,
    )
    assert "\r" not in tiny_run.stderr  # bars are for terminals; see test_progress.py
    trained, *checkpoints, cost = tiny_run.stdout.splitlines()
    assert cost.startswith("Training cost: ")
    assert trained.startswith("Trained twenty_words: dev loss ")
    assert trained.endswith(f"The run is in {tiny_run.run}.")
    assert "checkpoint" in checkpoints[0]


def test_best_checkpoint_has_its_metrics(tiny_run):
    losses = re.findall(r"dev loss (\d+\.\d+)", tiny_run.stderr)[:3]
    lowest = min(map(float, losses))
    best = RunFolder(tiny_run.run).best()
    assert best.metrics["loss"] == pytest.approx(lowest, abs=1e-4)
    assert best.step == 40 * (1 + list(map(float, losses)).index(lowest))
    assert best.metrics["perplexity"] == pytest.approx(np.exp(best.metrics["loss"]))
    kept = tensors(tiny_run.run / "best" / f"model.ckpt-{best.step}")
    assert kept.keys() == tensors(tiny_run.run / "model.ckpt-120").keys()


@pytest.mark.parametrize("loss", [float("nan"), float("inf")])
def test_loss_of_nan_stops_the_run(
    tiny_run, tmp_path, fake_dev_losses, monkeypatch, capsys, loss
):
    losses = iter([1.0, 1.0, loss])
    monkeypatch.setattr(
        loop,
        "make_train_step",
        lambda *_: lambda *_: StepResult(next(losses), 10.0),
    )
    status = small(
        tiny_run, tmp_path / "run", "--train_steps=3", "--local_eval_frequency=5"
    )
    assert status == 1
    stderr = capsys.readouterr().err
    assert f"diverged: the loss is {loss} at step 3, which is not saved. " in stderr
    assert checkpoint_names(tmp_path / "run") == []
