"""What a run has cost: cost.json through stops and restarts, and the line that
t2t-trainer prints.
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from t2tlite.data.token_store import TokenStore
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import RunCost
from t2tlite.training import cost as costs
from t2tlite.training.cost import CostMeter, cost_line, training_flops


@pytest.fixture
def clock(monkeypatch):
    """The meter's clock, set by hand."""

    class Clock:
        now = 100.0

        def monotonic(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(costs, "time", clock)
    return clock


def test_time_tokens_and_flops_add_up(tmp_path, clock):
    meter = CostMeter(RunFolder(tmp_path), 0, devices=4, flops_per_token=1e6)
    for tokens in (20.0, np.float32(30)):
        meter.count(tokens)
    clock.now += 5
    meter.save(2)
    with meter.paused():
        clock.now += 60  # evaluation
    meter.count(tf.constant(50.0))
    clock.now += 2
    meter.save(3)
    assert RunFolder(tmp_path).costs()[-1] == RunCost(
        step=3, steps=3, seconds=7, device_seconds=28, tokens=100, flops=1e8
    )


def train_to(folder, start, stop):
    """Trains from step to step, ten tokens each, and saves a checkpoint at the end."""
    meter = CostMeter(RunFolder(folder), start, devices=1, flops_per_token=3.0)
    for _ in range(start, stop):
        meter.count(10.0)
    meter.save(stop)
    (folder / f"model.ckpt-{stop}.index").touch()


def counted(folder):
    cost = RunFolder(folder).costs()[-1]
    return cost.step, cost.steps, cost.tokens, cost.flops


@pytest.mark.parametrize(
    ("spans", "lost", "resumed", "expected"),
    [
        ([(0, 5)], [], (5, 8), (8, 8, 80, 240)),
        # from an older checkpoint
        ([(0, 5), (5, 8), (8, 20)], [8, 20], (5, 6), (6, 6, 60, 180)),
        # killed between record and checkpoint
        ([(0, 5), (5, 8)], [8], (5, 9), (9, 9, 90, 270)),
    ],
)
def test_resumed_run_counts_each_step_once(tmp_path, spans, lost, resumed, expected):
    for span in spans:
        train_to(tmp_path, *span)
    for step in lost:
        (tmp_path / f"model.ckpt-{step}.index").unlink()
    train_to(tmp_path, *resumed)
    assert counted(tmp_path) == expected


def test_records_stay_only_of_checkpoints_that_do(tmp_path):
    for step in range(5):
        train_to(tmp_path, step, step + 1)
        (tmp_path / f"model.ckpt-{step - 1}.index").unlink(missing_ok=True)
    written = json.loads((tmp_path / "cost.json").read_text())
    assert [record["step"] for record in written["costs"]] == [3, 4, 5]


def test_steps_before_the_record_was_deleted_are_not_counted(tmp_path):
    train_to(tmp_path, 100, 105)
    assert counted(tmp_path) == (105, 5, 50, 150)


def test_line():
    cost = RunCost(9, 9, seconds=720, device_seconds=5760, tokens=70, flops=1.234e15)
    expected = "Training cost: 1.23e+15 FLOPs counted, in 96.0 device minutes."
    assert cost_line(cost) == expected


def test_run_counts_what_it_trained_on(tiny_run):
    """12 batches an epoch, 120 steps: ten epochs, so ten times the corpus."""
    shards = sorted((tiny_run.data / "twenty_words").glob("train*"))
    store = TokenStore(shards)
    tokens = int(store.source_lengths.sum() + store.target_lengths.sum())
    cost = RunFolder(tiny_run.run).costs()[-1]
    assert (cost.step, cost.steps, cost.tokens) == (120, 120, 10 * tokens)
    assert 0 < cost.seconds == cost.device_seconds < 600
    hparams = RunFolder(tiny_run.run).hparams()
    pair = store.source_lengths.mean(), store.target_lengths.mean()
    a_pair = training_flops(hparams, 500, *pair)
    assert cost.flops == pytest.approx(10 * len(store.source_lengths) * a_pair)
    assert tiny_run.stdout.splitlines()[-1] == cost_line(cost)
