"""How many replicas share a global batch makes no difference to what is learnt."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore, write_shard
from t2tlite.models.transformer import build_transformer
from t2tlite.training.evaluation import Evaluation, make_evaluation
from t2tlite.training.train_step import make_optimizer, make_train_step

VOCAB, STEPS, GLOBAL_TOKENS = 20, 4, 96
HPARAMS = HParams(
    hidden_size=16,
    filter_size=32,
    num_heads=2,
    num_hidden_layers=1,
    max_length=16,
    batch_size=GLOBAL_TOKENS,
    layer_prepostprocess_dropout=0.0,
    learning_rate_warmup_steps=4,
    learning_rate_constant=0.05,
)


class Run(NamedTuple):
    """What came of a few steps of training."""

    losses: list[float]
    tokens: list[float]
    weights: list[np.ndarray]
    evaluation: Callable[[], Evaluation]


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> TokenStore:
    random = np.random.default_rng(5)
    sources, targets = ([random.integers(2, VOCAB, random.integers(1, 12)).tolist() for _ in range(50)] for _ in "st")
    path = tmp_path_factory.mktemp("data") / "train.arrow"
    write_shard(path, sources, targets, VOCAB)
    return TokenStore([path])


def train(store: TokenStore, strategy: tf.distribute.Strategy) -> Run:
    """Trains as training/trainer.py does; the tokens of a global batch are the same whatever the strategy."""
    replicas = strategy.num_replicas_in_sync
    hparams = dataclasses.replace(HPARAMS, batch_size=GLOBAL_TOKENS // replicas)
    plan = training_plan(hparams, store.source_lengths, store.target_lengths, replicas, seed=3)
    with strategy.scope():
        keras.utils.set_random_seed(1)
        model = build_transformer(hparams, VOCAB, VOCAB)
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
    step = make_train_step(strategy, model, optimizer, hparams)
    batches = iter(distribute(strategy, store, plan, 0, STEPS))
    results = [step(batches) for _ in range(STEPS)]
    evaluate = make_evaluation(strategy, model, store, hparams)
    assert optimizer.iterations.numpy() == STEPS
    return Run([float(r.loss) for r in results], [float(r.tokens) for r in results], model.get_weights(), evaluate)


@pytest.fixture(scope="module")
def alone(store) -> Run:
    return train(store, tf.distribute.get_strategy())


@pytest.mark.parametrize("replicas", [2, pytest.param(4, marks=pytest.mark.slow)])
def test_replicas_equal_one(store, alone, cpu_devices, monkeypatch, replicas):
    # Strategies of several sizes in one process must not share the keys of their collective operations.
    monkeypatch.setattr(tf.distribute.MirroredStrategy, "_collective_key_base", 1000 * replicas)
    strategy = tf.distribute.MirroredStrategy(cpu_devices[:replicas])
    assert strategy.num_replicas_in_sync == replicas
    run = train(store, strategy)
    np.testing.assert_allclose(run.losses, alone.losses, rtol=1e-5)
    assert run.tokens == alone.tokens
    for ours, theirs in zip(run.weights, alone.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)
    if replicas == 2:  # to trace it for four takes long
        ours, theirs = run.evaluation(), alone.evaluation()
        assert ours.tokens == theirs.tokens == store.target_lengths.sum()
        assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
        assert ours.accuracy == pytest.approx(theirs.accuracy, abs=1e-6)


def test_training_moves_the_weights(store, alone):
    keras.utils.set_random_seed(1)
    start = build_transformer(HPARAMS, VOCAB, VOCAB).get_weights()
    assert max(np.abs(a - b).max() for a, b in zip(start, alone.weights, strict=True)) > 1e-3
