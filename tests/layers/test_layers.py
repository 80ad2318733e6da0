"""Layers against the paper's formulas, written once more in NumPy at double
precision.
"""

import math

import keras
import numpy as np
import pytest
import tensorflow as tf
from numpy_attention import (
    HEADS,
    HIDDEN,
    KEYS,
    VALUES,
    normal,
    numpy_attention,
    randomise,
)

from t2tlite.layers import sublayer
from t2tlite.layers.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    padding_mask,
)
from t2tlite.layers.embedding import Embedding
from t2tlite.layers.sublayer import (
    Dropout,
    FeedForward,
    LayerNormalization,
    Residual,
)

# Ones with dropout, in eager TensorFlow 2.21 on a CPU: (rate, seed) -> what is kept of
# [4, 16], a bit each.
KEPT = {
    (0.5, (3, 4)): "98947e5f2be5a9ff",
    (0.5, (0, 1000)): "67b523d38abacfa3",
    (0.5, (-5, 2**31 - 1)): "40d954d28bd20318",
    (0.1, (3, 4)): "bff7feff7ffffbff",
    (0.1, (0, 1000)): "fffffbffdffffff3",
    (0.1, (-5, 2**31 - 1)): "fffbf7fffff6f7ff",
}


def layer_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, epsilon: float
) -> np.ndarray:
    mean, variance = x.mean(axis=-1, keepdims=True), x.var(axis=-1, keepdims=True)
    return (x - mean) / np.sqrt(variance + epsilon) * gamma + beta


@pytest.fixture(scope="module")
def attention() -> MultiHeadAttention:
    layer = MultiHeadAttention(HIDDEN, HEADS, KEYS, VALUES, dropout=0.0)
    layer(normal(1, 2, HIDDEN), normal(1, 2, HIDDEN), causal_mask(2))
    randomise(layer)
    return layer


def test_attention_to_a_padded_source(attention):
    x, memory = normal(2, 3, HIDDEN), normal(2, 5, HIDDEN)
    ids = np.array([[7, 7, 7, 7, 1], [7, 1, 0, 0, 0]])
    allowed = np.repeat((ids != 0)[:, None], 3, axis=1)
    expected = numpy_attention(attention, x, memory, allowed)
    output = attention(x, memory, padding_mask(ids))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_causal_self_attention(attention):
    x = normal(2, 6, HIDDEN)
    allowed = np.repeat(np.tril(np.ones((6, 6), bool))[None], 2, axis=0)
    expected = numpy_attention(attention, x, x, allowed)
    output = attention(x, x, causal_mask(6))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_masked_positions_have_no_weight():
    queries, keys = normal(1, 2, 3, 4), 50 * normal(1, 2, 4, 4)
    weights = attention_weights(queries, keys, padding_mask(np.array([[3, 0, 4, 0]])))
    weights = np.asarray(weights)
    assert (weights[..., [1, 3]] == 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), 1, rtol=1e-5)
    # of a row of padding alone they are uniform
    weights = attention_weights(queries, keys / 50, padding_mask(np.zeros((1, 4), int)))
    np.testing.assert_allclose(weights, np.full((1, 2, 3, 4), 1 / 4), rtol=1e-5)


@pytest.mark.parametrize(
    ("dtype", "avx2", "rows", "shape"),
    [
        ("float32", False, None, None),
        ("float32", False, 3, (1, HIDDEN, 64)),
        ("float32", True, None, (16, HIDDEN)),
        ("mixed_bfloat16", True, None, None),
        ("mixed_bfloat16", True, 17, None),
        ("mixed_bfloat16", False, 3, (16, HIDDEN)),
    ],
)
def test_feed_forward(monkeypatch, dtype, avx2, rows, shape):
    monkeypatch.setattr(sublayer, "cpu_ends_at_avx2", lambda: avx2)
    layer = FeedForward(HIDDEN, 16, dropout=0.0, dtype=dtype)
    x = normal(2, 3, HIDDEN)
    layer(x)
    randomise(layer)
    w1, b1, w2, b2 = (np.asarray(weight, np.float64) for weight in layer.weights)
    expected = np.maximum(x @ w1 + b1, 0) @ w2 + b2
    atol = 1e-4 if dtype == "float32" else 2**-6 * np.abs(expected).max()
    np.testing.assert_allclose(layer(x), expected, rtol=1e-4, atol=atol)
    kernels = layer.step_kernels(rows)
    assert [kernel.shape for kernel in kernels[0]] == ([shape] if shape else [])
    step = layer.step(tf.cast(x[0], layer.compute_dtype), kernels)
    np.testing.assert_allclose(step, expected[0], rtol=1e-4, atol=atol)
    layer.inner.activation = keras.activations.tanh  # as a variant of the layer has
    step = layer.step(tf.cast(x[0], layer.compute_dtype), kernels)
    np.testing.assert_allclose(step, layer(x)[0], rtol=1e-4, atol=atol)


@pytest.mark.parametrize("shape", [(7, HIDDEN), (2, 3, HIDDEN)])
@pytest.mark.parametrize("compiled", [False, True])
def test_layer_normalisation_and_its_gradient(shape, compiled):
    layer = LayerNormalization(epsilon=1e-3)
    x, upstream = tf.constant(normal(*shape)), tf.constant(normal(*shape, seed=5))
    layer(x)
    randomise(layer)

    @tf.function(jit_compile=compiled)
    def run():
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = layer(x)
            total = tf.reduce_sum(y * upstream)
        return y, *tape.gradient(total, [x, layer.gamma, layer.beta])

    y, *gradients = (np.asarray(value) for value in run())
    *point, weights = (
        np.asarray(value, np.float64)
        for value in (x, layer.gamma, layer.beta, upstream)
    )
    np.testing.assert_allclose(
        y, layer_norm(*point, epsilon=1e-3), rtol=1e-4, atol=1e-5
    )
    for i, gradient in enumerate(gradients):  # central differences
        for at in np.ndindex(gradient.shape):
            totals = []
            for step in (1e-5, -1e-5):
                moved = [value.copy() for value in point]
                moved[i][at] += step
                totals.append(np.sum(layer_norm(*moved, epsilon=1e-3) * weights))
            assert gradient[at] == pytest.approx(
                (totals[0] - totals[1]) / 2e-5, rel=1e-3, abs=1e-4
            )


@pytest.mark.parametrize("pre_norm", [False, True])
def test_residual(pre_norm):
    layer = Residual(dropout=0.0, pre_norm=pre_norm, epsilon=1e-6)
    x, kernel = normal(2, 3, HIDDEN), normal(HIDDEN, HIDDEN)
    layer.build(x.shape)
    randomise(layer)
    gamma = np.asarray(layer.norm.gamma, np.float64)
    beta = np.asarray(layer.norm.beta, np.float64)
    wide = x.astype(np.float64)
    if pre_norm:
        expected = wide + layer_norm(wide, gamma, beta, 1e-6) @ kernel
    else:
        expected = layer_norm(wide + wide @ kernel, gamma, beta, 1e-6)
    output = layer.leave(x, keras.ops.matmul(layer.enter(x), kernel))
    np.testing.assert_allclose(output, expected, rtol=1e-4, atol=1e-4)


def test_residual_drops_the_sublayer_and_not_the_way_around_it():
    layer = Residual(dropout=0.5, pre_norm=True, epsilon=1e-6)
    x = normal(4, 5, HIDDEN)
    seed = keras.ops.array([1, 2], "int32")
    added = np.asarray(layer.leave(x, np.ones_like(x), seed=seed)) - x
    assert set(np.round(added.flatten(), 5)) == {0.0, 2.0}


def test_embedding_scales_by_root_of_width_and_pad_is_zero():
    layer = Embedding(vocab_size=11, hidden_size=HIDDEN)
    table = np.asarray(layer.weight)
    ids = np.array([[4, 1, 0], [10, 0, 0]])
    vectors = np.asarray(layer(ids))
    np.testing.assert_allclose(vectors[0, 0], table[4] * math.sqrt(HIDDEN), rtol=1e-5)
    np.testing.assert_allclose(vectors[0, 1], table[1] * math.sqrt(HIDDEN), rtol=1e-5)
    assert (vectors[ids == 0] == 0).all()


def test_logits_use_the_same_matrix_unscaled():
    layer = Embedding(vocab_size=11, hidden_size=HIDDEN)
    x = normal(2, 3, HIDDEN)
    expected = x @ np.asarray(layer.weight).T
    np.testing.assert_allclose(layer.logits(x), expected, rtol=1e-4, atol=1e-4)


def test_embedding_starts_with_the_papers_deviation():
    keras.utils.set_random_seed(1)
    table = np.asarray(Embedding(vocab_size=500, hidden_size=64).weight)
    assert table.std() == pytest.approx(1 / 8, rel=0.02)
    assert abs(table.mean()) < 0.003


@pytest.mark.parametrize("rate", [0.1, 0.5])
def test_dropout_zeroes_its_share_and_keeps_the_mean(rate):
    layer = Dropout(rate)
    x = np.ones((200, 500), np.float32)
    dropped = np.asarray(layer(x, seed=keras.ops.array([3, 4], "int32")))
    # 6 deviations of 100,000 draws or more
    assert (dropped == 0).mean() == pytest.approx(rate, abs=0.01)
    assert dropped.mean() == pytest.approx(1, abs=0.02)
    np.testing.assert_allclose(dropped[dropped != 0], 1 / (1 - rate), rtol=1e-5)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dropout_keeps_the_same_elements_in_16_bits(dtype):
    """They are drawn alike for all types: numbers of 8 bits would drop 30.5%."""
    seed, x = keras.ops.array([3, 4], "int32"), keras.ops.ones((50, 100))
    dropped = Dropout(0.3, dtype=dtype)(x, seed=seed)
    assert dropped.dtype == dtype
    kept = np.asarray(Dropout(0.3)(x, seed=seed)) != 0
    np.testing.assert_array_equal(np.asarray(dropped != 0), kept)


@pytest.mark.parametrize(("rate", "seed"), KEPT)
@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "function"])
def test_dropout_masks_do_not_change_between_versions(rate, seed, compiled):
    """Or a run that is resumed after an update would not train as it would have without
    the interruption.
    """
    layer = Dropout(rate)
    call = tf.function(layer) if compiled else layer
    kept = np.asarray(call(tf.ones((4, 16)), seed=tf.constant(seed, tf.int32))) != 0
    assert np.packbits(kept).tobytes().hex() == KEPT[rate, seed]
