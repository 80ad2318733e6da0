"""Position vectors against the paper's formula, and tensor2tensor's against what it
computed.
"""

import keras
import numpy as np
import pytest

from t2tlite.layers.embedding import Positions, sinusoid_halves, sinusoids

# float32 keeps an angle x to 1.2e-7 x, or 1e-5 at positions below 64. A wrong exponent
# or a position that is off by one changes some cell by 0.01 or more.
ROUNDING = 3e-5


def section_3_5(positions, hidden_size: int) -> np.ndarray:
    """PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i + 1) = cos(pos / 10000^(2i/d)),
    cell by cell.
    """
    table = np.zeros((len(positions), hidden_size))
    for row, position in enumerate(positions):
        for i in range(hidden_size // 2):
            angle = position / 10000 ** (2 * i / hidden_size)
            table[row, 2 * i], table[row, 2 * i + 1] = np.sin(angle), np.cos(angle)
    return table


def halves(positions, hidden_size: int) -> np.ndarray:
    """tensor2tensor's: all sines, then all cosines, of position x 10000^(-i / (d/2 -
    1)).
    """
    half = hidden_size // 2
    angles = np.asarray(positions)[:, None] * 10000.0 ** (-np.arange(half) / (half - 1))
    return np.concatenate([np.sin(angles), np.cos(angles)], axis=1)


@pytest.mark.parametrize("hidden_size", [2, 6, 64, 512])
def test_the_papers_formula(hidden_size):
    got = keras.ops.convert_to_numpy(sinusoids(np.arange(64), hidden_size))
    assert (got.shape, got.dtype) == ((64, hidden_size), np.float32)
    np.testing.assert_allclose(got, section_3_5(range(64), hidden_size), atol=ROUNDING)
    # sin 0, cos 0
    np.testing.assert_array_equal(got[0], np.tile([0.0, 1.0], hidden_size // 2))


@pytest.mark.parametrize(
    ("key", "start", "length", "hidden_size"),
    [
        ("t2t_len10_ch16", 0, 10, 16),
        ("t2t_len50_ch512", 0, 50, 512),
        ("t2t_len5_ch16_start3", 3, 5, 16),
    ],
)
def test_halves_are_tensor2tensors(fixtures, key, start, length, hidden_size):
    expected = np.load(fixtures / "tensor2tensor" / "positional.npz")[key]
    got = sinusoid_halves(np.arange(start, start + length), hidden_size)
    np.testing.assert_allclose(got, expected, atol=ROUNDING)


@pytest.mark.parametrize(
    ("kind", "formula"),
    [
        ("timing", section_3_5),
        ("timing_halves", halves),
        ("none", lambda positions, size: 0.0),
    ],
)
@pytest.mark.parametrize("start", [0, 7])
def test_the_layer_adds_them(kind, formula, start):
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype(np.float32)
    layer = Positions(kind, 8)
    expected = x + formula(range(start, start + 5), 8)
    np.testing.assert_allclose(layer(x, start=start), expected, atol=ROUNDING)
    assert layer.weights == []


def test_learned_positions():
    layer = Positions("emb", 8, 6)
    table = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    layer.set_weights([table])
    x = np.zeros((3, 2, 8), np.float32)
    for start in (0, 3):
        expected = np.broadcast_to(table[start : start + 2], (3, 2, 8))
        np.testing.assert_array_equal(layer(x, start=start), expected)
