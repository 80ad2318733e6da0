"""How many replicas share a global batch makes no difference to what is learnt."""

import contextlib
import dataclasses
import subprocess
import sys
from collections.abc import Callable
from typing import NamedTuple

import keras
import numpy as np
import pytest
import tensorflow as tf
from eager import run_eagerly
from tiny_training import GLOBAL_TOKENS, HPARAMS, make_model, random_store

from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.models.transformer import Transformer
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import TrainedWith
from t2tlite.training.evaluation import Evaluation, make_evaluation
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.train_step import (
    make_gradients,
    make_train_step,
    make_trial,
    smoothed_cross_entropy,
)

STEPS = 4


class Run(NamedTuple):
    """What came of a few steps of training."""

    losses: list[float]
    gradient_norms: list[float]
    tokens: list[float]
    weights: list[np.ndarray]
    evaluation: Callable[[], Evaluation]
    trial: Callable[[], float]  # of micro-batches of 3 pairs of 8 + 10 tokens
    model: Transformer
    optimizer: keras.optimizers.Optimizer


@pytest.fixture(scope="module")
def store(tmp_path_factory) -> TokenStore:
    return random_store(tmp_path_factory.mktemp("data"))


def train(
    store: TokenStore, strategy: tf.distribute.Strategy, eagerly: bool = False
) -> Run:
    """Trains as training/loop.py does: on 4 replicas, or as many micro-batches on
    fewer, with dropout.
    """
    replicas = strategy.num_replicas_in_sync
    hparams = dataclasses.replace(
        HPARAMS,
        global_batch_tokens=GLOBAL_TOKENS,
        batch_size=GLOBAL_TOKENS // 4,
        layer_prepostprocess_dropout=0.2,
    ).for_replicas(replicas)
    assert hparams.accumulate_steps == 4 // replicas
    plan = training_plan(
        hparams, store.source_lengths, store.target_lengths, replicas, seed=3
    )
    with strategy.scope():
        model = make_model(hparams)
        optimizer = make_optimizer(model)
    gradients = make_gradients(model, optimizer)
    step = make_train_step(strategy, model, optimizer, gradients)
    batches = iter(
        distribute(strategy, store, plan, 0, STEPS, hparams.accumulate_steps)
    )
    with run_eagerly() if eagerly else contextlib.nullcontext():
        results = [step(batches) for _ in range(STEPS)]
    evaluate = make_evaluation(strategy, model, store)
    assert optimizer.iterations.numpy() == STEPS
    values = []
    for name in ("loss", "gradient_norm", "tokens"):
        values.append([float(getattr(result, name)) for result in results])
    trial = make_trial(strategy, gradients, (3, 8, 10), hparams.accumulate_steps)
    return Run(*values, model.get_weights(), evaluate, trial, model, optimizer)


@pytest.fixture(scope="module")
def alone(store) -> Run:
    # faster than to compile a few steps
    return train(store, tf.distribute.get_strategy(), eagerly=True)


@pytest.fixture(scope="module")
def together(request, store, cpu_devices) -> Run:
    """The same, by as many replicas as the parameter says."""
    with pytest.MonkeyPatch.context() as patch:
        # Strategies of several sizes in one process must not share the keys of their
        # collective operations.
        patch.setattr(
            tf.distribute.MirroredStrategy, "_collective_key_base", 1000 * request.param
        )
        strategy = tf.distribute.MirroredStrategy(cpu_devices[: request.param])
        assert strategy.num_replicas_in_sync == request.param
        return train(store, strategy)


@pytest.mark.parametrize(
    "together", [2, pytest.param(4, marks=pytest.mark.slow)], indirect=True
)
def test_replicas_equal_one(together, alone):
    np.testing.assert_allclose(together.losses, alone.losses, rtol=1e-5)
    np.testing.assert_allclose(together.gradient_norms, alone.gradient_norms, rtol=1e-4)
    assert together.tokens == alone.tokens
    assert len(set(together.losses)) == STEPS
    for ours, theirs in zip(together.weights, alone.weights, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.slow
# to trace it for four takes long
@pytest.mark.parametrize("together", [2], indirect=True)
def test_evaluation_by_two_replicas_equals_that_by_one(store, together, alone):
    ours, theirs = together.evaluation(), alone.evaluation()
    assert ours.tokens == theirs.tokens == store.target_lengths.sum()
    assert ours.loss == pytest.approx(theirs.loss, rel=1e-5)
    assert ours.accuracy == pytest.approx(theirs.accuracy, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("together", [2], indirect=True)
def test_trial_returns_the_loss_and_changes_nothing(together):
    """All micro-batches are equal, their seeds too; so the loss is that of one."""
    state = [*together.model.trainable_variables, *together.optimizer.variables]
    before = [variable.numpy() for variable in state]
    loss = together.trial()
    for variable, old in zip(state, before, strict=True):
        np.testing.assert_array_equal(variable.numpy(), old)
    ones = tf.ones((3, 8), tf.int32), tf.ones((3, 10), tf.int32)
    logits = together.model(*ones, seed=tf.ones(2, tf.int32))
    expected, tokens = smoothed_cross_entropy(logits, ones[1], HPARAMS.label_smoothing)
    assert loss == pytest.approx(float(expected / tokens), rel=1e-5)


@pytest.mark.slow
def test_a_process_divides_the_cpu_among_its_replicas(tiny_run, tmp_path):
    """In a process of its own, since TensorFlow divides a CPU before it computes."""
    flags = [
        "--worker_cpu=2",
        f"--t2t_usr_dir={tiny_run.package}",
        f"--data_dir={tiny_run.data}",
        "--hparams_set=transformer_tiny",
        f"--output_dir={tmp_path / 'run'}",
        "--train_steps=2",
        "--global_batch_tokens=512",
    ]
    command = [sys.executable, "-m", "t2tlite.bin.t2t_trainer", *flags]
    subprocess.run(command, check=True, timeout=300)
    folder = RunFolder(tmp_path / "run")
    assert folder.read(TrainedWith).replicas == 2
    assert folder.hparams().global_batch_tokens == 512
