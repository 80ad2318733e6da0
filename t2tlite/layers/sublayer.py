"""What stands around every sublayer: residual connection, dropout and layer normalisation (section 3.1, 5.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import keras

from t2tlite.layers.dropout import Dropout


class Residual(keras.layers.Layer):
    """LayerNorm(x + Dropout(Sublayer(x))), the paper's; or x + Dropout(Sublayer(LayerNorm(x))), pre-norm.

    Args:
        dropout: rate on the sublayer's output.
        pre_norm: normalise the sublayer's input rather than the sum.
        epsilon: added to the variance.
    """

    def __init__(self, dropout: float, pre_norm: bool, epsilon: float, **kwargs: Any) -> None:
        super().__init__(autocast=False, **kwargs)
        self.pre_norm = pre_norm
        self.norm = keras.layers.LayerNormalization(epsilon=epsilon, name="norm", dtype=self.dtype_policy)
        self.dropout = Dropout(dropout, name="dropout", dtype=self.dtype_policy)

    def call(self, x: Any, sublayer: Callable[[Any], Any], seed: Any = None) -> Any:
        """Applies `sublayer`, a function [B, T, D] -> [B, T, D], to `x` [B, T, D]."""
        if self.pre_norm:
            return x + self.dropout(sublayer(self.norm(x)), seed=seed)
        return self.norm(x + self.dropout(sublayer(x), seed=seed))
