"""Dropout whose mask is a pure function of a seed that the caller hands in.

Nothing is remembered between calls, so a training step is a function of (weights, batch, step number): a resumed
run draws the masks that an uninterrupted one would have drawn.
"""

from __future__ import annotations

from typing import Any

import keras
from keras import ops


class Dropout(keras.layers.Layer):
    """Zeroes a share of the elements and scales the others up, so that the mean stays.

    Args:
        rate: share of the elements to zero, in [0, 1).
    """

    def __init__(self, rate: float, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: Any, seed: Any = None) -> Any:
        """Drops where there is a seed.

        Args:
            x: any tensor.
            seed: int32 [2], or None, which leaves `x` as it is: no seed, no dropout.
        """
        if seed is None or self.rate == 0.0:
            return x
        return keras.random.dropout(x, self.rate, seed=_GivenSeed(seed))


def fold(seed: Any, number: int) -> Any:
    """Another seed for each number, so that each use of dropout draws a mask of its own.

    Args:
        seed: int32 [2], or None.
        number: which of the seeds.

    Returns:
        int32 [2], or None for None.
    """
    return None if seed is None else seed + ops.convert_to_tensor([number, 0], dtype="int32")


class _GivenSeed(keras.random.SeedGenerator):
    """Hands a tensor to keras.random, which takes an int or a SeedGenerator only."""

    def __init__(self, seed: Any) -> None:  # no state, so the base class is not initialised
        self.seed = seed

    def next(self, ordered: bool = True) -> Any:
        return self.seed
