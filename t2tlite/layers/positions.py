"""Sinusoid position vectors, to be added to embeddings: section 3.5, and tensor2tensor's variant."""

# T positions, d hidden size

from __future__ import annotations

import math

import numpy as np
from keras import ops

from t2tlite.types import Tensor


def sinusoids(positions: Tensor, hidden_size: int) -> Tensor:
    """The paper's: PE(pos, 2i) = sin(pos / 10000^(2i/d)), PE(pos, 2i+1) = cos of the same (section 3.5).

    Args:
        positions: [T], counted from 0.
        hidden_size: d, even.

    Returns:
        float32 [T, hidden_size].
    """
    rates = 10000.0 ** (-np.arange(0, hidden_size, 2, dtype=np.float64) / hidden_size)
    angles = _angles(positions, rates)  # [T, d/2]
    both = ops.stack([ops.sin(angles), ops.cos(angles)], axis=-1)  # [T, d/2, 2]
    return ops.reshape(both, (-1, hidden_size))


def sinusoid_halves(positions: Tensor, hidden_size: int) -> Tensor:
    """tensor2tensor's: all sines, then all cosines, at rates 10000^(-i/(d/2-1)) (its get_timing_signal_1d).

    Args:
        positions: [T], counted from 0.
        hidden_size: d, even.

    Returns:
        float32 [T, hidden_size].
    """
    half = hidden_size // 2
    rates = np.exp(-np.arange(half, dtype=np.float64) * math.log(10000.0) / max(half - 1, 1))
    angles = _angles(positions, rates)  # [T, d/2]
    return ops.concatenate([ops.sin(angles), ops.cos(angles)], axis=-1)


def _angles(positions: Tensor, rates: np.ndarray) -> Tensor:
    """[T] and [d/2] -> float32 [T, d/2]."""
    return ops.cast(positions, "float32")[:, None] * ops.convert_to_tensor(rates, dtype="float32")[None, :]
