"""Dropout whose mask is a pure function of a seed that the caller passes.

Nothing is remembered between calls, so a training step is a function of (weights, batch, step number): a resumed
run draws the masks that an uninterrupted one would have drawn.
"""

from __future__ import annotations

import keras
from keras import ops

from t2tlite.types import Config, Tensor


@keras.saving.register_keras_serializable("t2tlite")
class Dropout(keras.layers.Layer):
    """Zeroes a share of the elements and scales the others up, so that the mean stays.

    Args:
        rate: share of the elements to zero, in [0, 1).
    """

    def __init__(self, rate: float, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.rate = rate

    def call(self, x: Tensor, seed: Tensor | None = None) -> Tensor:
        """Applies dropout if there is a seed.

        Args:
            x: any tensor.
            seed: int32 [2], or None, which returns `x` as it is: no seed, no dropout.
        """
        if seed is None or self.rate == 0.0:
            return x
        return keras.random.dropout(x, self.rate, seed=_GivenSeed(seed))

    def get_config(self) -> Config:
        return {**super().get_config(), "rate": self.rate}


def fold(seed: Tensor | None, number: int) -> Tensor | None:
    """Another seed for each number, so that each use of dropout draws a mask of its own.

    Args:
        seed: int32 [2], or None.
        number: which of the seeds.

    Returns:
        int32 [2], or None for None.
    """
    return None if seed is None else seed + ops.convert_to_tensor([number, 0], dtype="int32")


class _GivenSeed(keras.random.SeedGenerator):
    """Passes a tensor to keras.random, which accepts an int or a SeedGenerator only."""

    def __init__(self, seed: Tensor) -> None:  # no state, so the base class is not initialised
        self.seed = seed

    def next(self, ordered: bool = True) -> Tensor:
        # JAX requires uint32 (a negative number wraps around). TensorFlow draws from int32 as it is.
        return ops.cast(self.seed, "uint32") if keras.config.backend() == "jax" else self.seed
