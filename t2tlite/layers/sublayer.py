"""What surrounds every sublayer: residual connection, dropout and layer normalisation (sections 3.1 and 5.4)."""

from __future__ import annotations

from collections.abc import Callable

import keras

from t2tlite.layers.dropout import Dropout
from t2tlite.types import Config, Tensor


@keras.saving.register_keras_serializable("t2tlite")
class Residual(keras.layers.Layer):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's; or x + Dropout(Sublayer(LayerNorm(x))), pre-norm.

    Args:
        dropout: rate on the sublayer's output.
        pre_norm: normalise the sublayer's input rather than the sum.
        epsilon: added to the variance.
    """

    def __init__(self, dropout: float, pre_norm: bool, epsilon: float, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.pre_norm = pre_norm
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, name="norm", dtype=self.dtype_policy)
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def call(self, x: Tensor, sublayer: Callable[[Tensor], Tensor], seed: Tensor | None = None) -> Tensor:
        """Applies `sublayer`, a function [B, T, D] -> [B, T, D], to `x` [B, T, D]."""
        if self.pre_norm:
            return x + self.dropout(sublayer(self.norm(x)), seed=seed)
        return self.norm(x + self.dropout(sublayer(x), seed=seed))

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "dropout": self.dropout.rate,
            "pre_norm": self.pre_norm,
            "epsilon": self.norm.epsilon,
        }
