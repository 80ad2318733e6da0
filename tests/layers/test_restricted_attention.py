"""Self-attention restricted to a radius: against NumPy one query at a time, and against
attention with a mask.
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

from t2tlite.layers.attention import padding_mask
from t2tlite.layers.restricted_attention import RestrictedAttention

# B batch, T length, D hidden size, H heads

# of which the last is padding alone
IDS = np.array([[7, 3, 5, 2, 9, 4, 1], [6, 8, 2, 1, 0, 0, 0], [0] * 7])
LENGTH = IDS.shape[1]
RADII = [1, 2, 3, 4, 7, 20]


def make(radius: int, causal: bool, dropout: float = 0.0) -> RestrictedAttention:
    sizes = {"key_channels": KEYS, "value_channels": VALUES}
    options = {"radius": radius, "causal": causal, "dropout": dropout}
    layer = RestrictedAttention(HIDDEN, HEADS, **sizes, **options)
    layer(normal(1, 2, HIDDEN))
    randomise(layer, seed=0)
    return layer


def bias_of(causal: bool) -> np.ndarray:
    """What the encoder or the decoder gives with a radius: the padding mask, or nothing
    masked.
    """
    mask = np.asarray(padding_mask(IDS))
    return 0 * mask if causal else mask


def seen_from(b: int, i: int, radius: int, causal: bool) -> list[int]:
    last = i if causal else i + radius - 1
    near = [j for j in range(LENGTH) if i - radius < j <= last]
    return near if causal else [j for j in near if IDS[b, j]]


def allowed_positions(radius: int, causal: bool) -> np.ndarray:
    """Bool [2, T, S] of the first two sentences; True where there would be nothing but
    padding to attend to.
    """
    allowed = np.zeros((2, LENGTH, LENGTH), bool)
    for b, i in np.ndindex(2, LENGTH):
        allowed[b, i, seen_from(b, i, radius, causal) or slice(None)] = True
    return allowed


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("radius", RADII)
def test_a_position_attends_to_those_nearer_than_the_radius(radius, causal):
    layer, x = make(radius, causal), normal(2, LENGTH, HIDDEN)
    computed = np.asarray(layer(x, x, bias_of(causal)[:2]))
    expected = numpy_attention(layer, x, x, allowed_positions(radius, causal))
    # beyond, there may be nothing but padding to attend to
    for b, length in enumerate((7, 4)):
        np.testing.assert_allclose(
            computed[b, :length], expected[b, :length], rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
@pytest.mark.parametrize("radius", RADII)
def test_blocks_equal_recorded_weights_and_their_gradients(radius, causal):
    """When weights are recorded, the scores of all pairs of positions are computed.
    Padding is included here.
    """
    layer, bias = make(radius, causal), bias_of(causal)
    x = tf.constant(normal(3, LENGTH, HIDDEN))
    upstream = normal(3, LENGTH, HIDDEN, seed=1)
    recorded: list[np.ndarray] = []
    outputs, gradients = [], []
    for record in (None, recorded.append):
        with tf.GradientTape() as tape:
            tape.watch(x)
            outputs.append(layer(x, x, bias, record=record))
        variables = [x, *layer.trainable_variables]
        gradients.append(tape.gradient(outputs[-1], variables, upstream))
    np.testing.assert_allclose(outputs[0], outputs[1], rtol=1e-5, atol=1e-5)
    for in_blocks, whole in zip(*gradients, strict=True):
        assert np.isfinite(whole).all()
        np.testing.assert_allclose(in_blocks, whole, rtol=1e-4, atol=1e-4)
    weights = np.asarray(recorded[0])
    assert weights.shape == (3, HEADS, LENGTH, LENGTH)
    np.testing.assert_allclose(weights.sum(-1), 1, rtol=1e-5)
    for b, length in enumerate((7, 4)):
        for i in range(length):
            seen = np.flatnonzero(weights[b, 0, i]).tolist()
            assert seen == seen_from(b, i, radius, causal)


@pytest.mark.parametrize("causal", [False, True], ids=["encoder", "decoder"])
def test_a_length_that_is_not_known_yet(causal):
    """In a TensorFlow graph, and with XLA, which knows it."""
    layer = make(3, causal)
    vectors, mask = (
        tf.TensorSpec((None, None, HIDDEN)),
        tf.TensorSpec((None, 1, 1, None)),
    )
    unknown = tf.function(layer, input_signature=[vectors, vectors, mask])
    for call in (unknown, tf.function(layer, jit_compile=True)):
        for length in (2, 3, 7):
            x, bias = normal(3, length, HIDDEN), bias_of(causal)[:, :, :, :length]
            np.testing.assert_allclose(
                call(x, x, bias), layer(x, x, bias), rtol=1e-4, atol=1e-4
            )


def test_dropout_on_the_weights():
    """Twenty thousand equal sentences with one seed: each has a mask of its own, and
    their mean is what it would be without dropout.
    """
    layer = make(3, causal=False, dropout=0.3)
    x = np.tile(normal(1, LENGTH, HIDDEN), (20_000, 1, 1))
    bias = np.zeros((20_000, 1, 1, LENGTH), np.float32)
    seed = keras.ops.array([3, 4], "int32")
    dropped = np.asarray(layer(x, x, bias, seed=seed))
    expected = np.asarray(layer(x[:1], x[:1], bias[:1]))[0]
    deviation = dropped.std(axis=0) / math.sqrt(20_000)
    assert (deviation > 0).all()
    assert (np.abs(dropped.mean(axis=0) - expected) < 6 * deviation).all()
