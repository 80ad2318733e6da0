"""Half precision: weights and losses stay float32, training gets somewhere, decoding
runs.
"""

import dataclasses
import functools

import numpy as np
import pytest
import tensorflow as tf
import tiny_training
from tiny_training import part_of
from tiny_transformer import SOURCES

from t2tlite.data.input_pipeline import Part
from t2tlite.decoding.beam_search import beam_search
from t2tlite.models.transformer import Transformer
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.train_step import make_train_step
from t2tlite.types import EOS

HPARAMS = tiny_training.HPARAMS.override(
    "layer_prepostprocess_dropout=0.1,learning_rate_warmup_steps=8,learning_rate_constant=0.2"
)
POLICIES = ["mixed_float16", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
TARGETS = np.array([[6, 2, 9, 1, 0], [3, 8, 5, 10, 1], [9, 1, 0, 0, 0]], np.int32)


def make_model(policy: str) -> Transformer:
    return tiny_training.make_model(dataclasses.replace(HPARAMS, dtype_policy=policy))


@pytest.fixture(scope="module")
def single() -> Transformer:
    return make_model("float32")


@pytest.fixture(scope="module", params=POLICIES)
def trained(request):
    """A model's weights before training, losses of training it on one batch, the model,
    and its optimizer.
    """
    model = make_model(request.param)
    optimizer = make_optimizer(model)
    start = model.get_weights()
    batches = iter(
        tf.data.Dataset.from_tensors(part_of(SOURCES, TARGETS, seed=(1, 2))).repeat()
    )
    step = make_train_step(tf.distribute.get_strategy(), model, optimizer)
    return start, [float(step(batches).loss) for _ in range(30)], model, optimizer


def test_training_lowers_a_finite_loss(trained):
    _, losses, model, _ = trained
    assert np.isfinite(losses).all()
    assert {variable.dtype for variable in model.weights} == {"float32"}
    assert np.mean(losses[-5:]) < 0.7 * np.mean(losses[:3])


def test_logits_are_near_single_precisions(trained, single):
    start, _, model, _ = trained
    after = model.get_weights()
    model.set_weights(start)
    logits = model(SOURCES, TARGETS)
    model.set_weights(after)
    single.set_weights(start)
    expected = np.asarray(single(SOURCES, TARGETS))
    assert logits.dtype == tf.float32
    # relative distance to the next number
    step = {"bfloat16": 2**-8, "float16": 2**-11}[model.compute_dtype]
    np.testing.assert_allclose(logits, expected, atol=8 * step * np.abs(expected).max())


def test_beam_search_finds_what_single_precision_finds(trained, single):
    _, _, model, _ = trained
    single.set_weights(model.get_weights())
    results = []
    for each in (model, single):
        start = functools.partial(each.start_decoding, SOURCES, 3)
        limits = np.full(3, 6, np.int32)
        options = {"beam_size": 3, "length": 6, "alpha": 0.6, "max_lengths": limits}
        results.append(beam_search(each.decode_step, start, **options))
    mixed, expected = results
    assert mixed.scores.dtype == tf.float32
    best = mixed.scores[:, 0]
    np.testing.assert_allclose(best, expected.scores[:, 0], atol=0.1)
    # which of two hypotheses of nearly equal scores is better is not determined
    for ids, beam in zip(np.asarray(mixed.ids)[:, 0], expected.ids, strict=True):
        assert (np.asarray(beam) == ids).all(axis=1).any()
    assert (np.asarray(mixed.ids) == EOS).any()


@pytest.mark.slow
def test_an_overflow_on_one_replica_skips_the_step_on_all(cpu_devices, monkeypatch):
    # Strategies of several sizes in one process must not share the keys of their
    # collective operations.
    monkeypatch.setattr(tf.distribute.MirroredStrategy, "_collective_key_base", 5000)
    strategy = tf.distribute.MirroredStrategy(cpu_devices[:2])
    with strategy.scope():
        model = make_model("mixed_float16")
        optimizer = make_optimizer(model)
    start, norms = model.get_weights(), []
    # An element for each replica: the first has padding alone, and so no gradient that
    # could overflow.
    parts = Part(
        inputs=np.stack([0 * SOURCES, SOURCES])[:, None],
        targets=np.stack([0 * TARGETS, TARGETS])[:, None],
        tokens=np.full(2, np.count_nonzero(TARGETS), np.float32),
        seeds=np.zeros((2, 1, 2), np.int32),
    )
    dataset = tf.data.Dataset.from_tensor_slices(parts).repeat()
    batches = iter(strategy.distribute_datasets_from_function(lambda _: dataset))
    step = make_train_step(strategy, model, optimizer)
    optimizer.dynamic_scale.assign(2.0**40)
    assert np.isfinite(float(step(batches).loss))
    assert optimizer.dynamic_scale.numpy() == 2.0**39
    for ours, before in zip(model.get_weights(), start, strict=True):
        np.testing.assert_array_equal(ours, before)
    for scale in (2.0**10, 2.0**9):  # the gradient's norm is that without a scale
        optimizer.dynamic_scale.assign(scale)
        norms.append(float(step(batches).gradient_norm))
        for weight, before in zip(model.trainable_variables, start, strict=True):
            weight.assign(before)
    assert norms[0] == pytest.approx(norms[1], rel=0.01)
    step(batches)
    changed = False
    for ours, before in zip(model.get_weights(), start, strict=True):
        assert np.isfinite(ours).all()
        changed |= (ours != before).any()
    assert changed
