"""Where a token stands, as a vector to add to its embedding: section 3.5, and tensor2tensor's variant."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from keras import ops


def sinusoids(positions: Any, hidden_size: int) -> Any:
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


def sinusoid_halves(positions: Any, hidden_size: int) -> Any:
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


def _angles(positions: Any, rates: np.ndarray) -> Any:
    return ops.cast(positions, "float32")[:, None] * ops.convert_to_tensor(rates, dtype="float32")[None, :]
