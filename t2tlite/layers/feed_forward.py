"""The position-wise feed-forward layer, section 3.3."""

from __future__ import annotations

import keras

from t2tlite.layers.dropout import Dropout
from t2tlite.types import Config, Tensor


@keras.saving.register_keras_serializable("t2tlite")
class FeedForward(keras.layers.Layer):
    """FFN(x) = max(0, x W1 + b1) W2 + b2, equation (2).

    Args:
        hidden_size: D, width of input and output.
        filter_size: d_ff, inner width.
        dropout: rate on the inner activations; the paper has none.
    """

    def __init__(self, hidden_size: int, filter_size: int, dropout: float, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.inner = keras.layers.Dense(filter_size, activation="relu", name="inner", dtype=self.dtype_policy)
        self.inner_dropout = Dropout(dropout, name="inner_dropout", dtype=self.dtype_policy)
        self.outer = keras.layers.Dense(hidden_size, name="outer", dtype=self.dtype_policy)

    def call(self, x: Tensor, seed: Tensor | None = None) -> Tensor:
        """[B, T, D] -> [B, T, D]."""
        return self.outer(self.inner_dropout(self.inner(x), seed=seed))

    def get_config(self) -> Config:
        return {
            **super().get_config(),
            "hidden_size": self.outer.units,
            "filter_size": self.inner.units,
            "dropout": self.inner_dropout.rate,
        }
