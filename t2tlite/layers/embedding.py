"""Tokens to vectors, and vectors to logits over tokens, with one matrix (section 3.4)."""

# B batch, T length, D hidden size, V vocabulary

from __future__ import annotations

from typing import Any

import keras
from keras import ops

from t2tlite.layers.positions import sinusoid_halves, sinusoids

PAD = 0


class Embedding(keras.layers.Layer):
    """A matrix [V, D] that embeds tokens, scaled by sqrt(D), and whose transpose gives logits.

    Padding (id 0) embeds to zero. Rows start normal with deviation D^-0.5, as in tensor2tensor.

    Args:
        vocab_size: V.
        hidden_size: D.
    """

    def __init__(self, vocab_size: int, hidden_size: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.vocab_size = vocab_size
        self.hidden_size = hidden_size
        self.weight = self.add_weight(
            name="weight",
            shape=(vocab_size, hidden_size),
            initializer=keras.initializers.RandomNormal(stddev=hidden_size**-0.5),
        )

    def call(self, ids: Any) -> Any:
        """int32 [B, T] -> [B, T, D]."""
        vectors = ops.take(ops.cast(self.weight, self.compute_dtype), ids, axis=0)
        scale = ops.cast(ops.not_equal(ids, PAD), self.compute_dtype) * self.hidden_size**0.5  # [B, T]
        return vectors * scale[:, :, None]

    def logits(self, x: Any) -> Any:
        """[B, T, D] -> float32 [B, T, V]."""
        weight = ops.cast(self.weight, self.compute_dtype)
        return ops.cast(ops.matmul(x, ops.transpose(weight)), "float32")


class Positions(keras.layers.Layer):
    """Adds to each vector its position's: `kind` is HParams.pos.

    Args:
        kind: "timing", "timing_halves", "emb" or "none".
        hidden_size: D.
        max_length: rows of the learned table; used by "emb" alone.
    """

    def __init__(self, kind: str, hidden_size: int, max_length: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.kind = kind
        self.hidden_size = hidden_size
        self.table = None
        if kind == "emb":
            self.table = self.add_weight(
                name="table",
                shape=(max_length, hidden_size),
                initializer=keras.initializers.RandomNormal(stddev=hidden_size**-0.5),
            )

    def call(self, x: Any, start: Any = 0) -> Any:
        """Adds the vectors of positions start, start + 1, ...

        Args:
            x: [B, T, D].
            start: position of the first, counted from 0.
        """
        if self.kind == "none":
            return x
        at = ops.arange(ops.shape(x)[1]) + start  # [T]
        if self.kind == "emb":
            vectors = ops.take(self.table, at, axis=0)
        elif self.kind == "timing":
            vectors = sinusoids(at, self.hidden_size)
        else:
            vectors = sinusoid_halves(at, self.hidden_size)
        return x + ops.cast(vectors, x.dtype)[None]  # [B, T, D]
