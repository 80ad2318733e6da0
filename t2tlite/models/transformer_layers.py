"""The two layers that the Transformer stacks (Figure 1): EncoderLayer and DecoderLayer."""

# B batch, S source length, T target length, D hidden size, H heads, K head size
# M hypotheses of a sentence, L positions in the cache

from __future__ import annotations

import dataclasses

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MultiHeadAttention, Record
from t2tlite.layers.dropout import fold
from t2tlite.layers.feed_forward import FeedForward
from t2tlite.layers.sublayer import Residual
from t2tlite.types import Config, LayerCache, Tensor


@keras.saving.register_keras_serializable("t2tlite")
class EncoderLayer(keras.layers.Layer):
    """Self-attention, then feed-forward (Figure 1, left).

    Args:
        hparams: the model's shape.
    """

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams
        self.self_attention = _attention(hparams, "self_attention", self.dtype_policy)
        self.self_attention_residual = _residual(hparams, "self_attention_residual", self.dtype_policy)
        self.feed_forward = _feed_forward(hparams, self.dtype_policy)
        self.feed_forward_residual = _residual(hparams, "feed_forward_residual", self.dtype_policy)

    def call(self, x: Tensor, bias: Tensor, seed: Tensor | None = None, record: Record | None = None) -> Tensor:
        """[B, S, D] -> [B, S, D]; `bias` [B, 1, 1, S] is the padding mask, `record` receives the attention weights."""

        def self_attention(y: Tensor) -> Tensor:
            return self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)

        def feed_forward(y: Tensor) -> Tensor:
            return self.feed_forward(y, seed=fold(seed, 2))

        x = self.self_attention_residual(x, sublayer=self_attention, seed=fold(seed, 3))
        return self.feed_forward_residual(x, sublayer=feed_forward, seed=fold(seed, 4))

    def get_config(self) -> Config:
        return {**super().get_config(), "hparams": dataclasses.asdict(self.hparams)}

    @classmethod
    def from_config(cls, config: Config) -> EncoderLayer:
        return super().from_config({**config, "hparams": HParams(**config["hparams"])})


@keras.saving.register_keras_serializable("t2tlite")
class DecoderLayer(keras.layers.Layer):
    """Causal self-attention, attention to the encoder's output, then feed-forward (Figure 1, right).

    Args:
        hparams: the model's shape.
    """

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams
        self.self_attention = _attention(hparams, "self_attention", self.dtype_policy)
        self.self_attention_residual = _residual(hparams, "self_attention_residual", self.dtype_policy)
        self.cross_attention = _attention(hparams, "cross_attention", self.dtype_policy)
        self.cross_attention_residual = _residual(hparams, "cross_attention_residual", self.dtype_policy)
        self.feed_forward = _feed_forward(hparams, self.dtype_policy)
        self.feed_forward_residual = _residual(hparams, "feed_forward_residual", self.dtype_policy)

    def call(
        self,
        x: Tensor,
        bias: Tensor,
        memory: Tensor,
        memory_bias: Tensor,
        seed: Tensor | None = None,
        record: Record | None = None,
    ) -> Tensor:
        """All positions of a target at once (teacher forcing).

        Args:
            x: [B, T, D].
            bias: [1, 1, T, T], the causal mask.
            memory: [B, S, D], the encoder's output.
            memory_bias: [B, 1, 1, S], the padding mask of the source.
            seed: int32 [2] for dropout, or None.
            record: called with the weights of self-attention, then with those of cross-attention; or None.

        Returns:
            [B, T, D].
        """

        def self_attention(y: Tensor) -> Tensor:
            return self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)

        def cross_attention(y: Tensor) -> Tensor:
            return self.cross_attention(y, memory, memory_bias, seed=fold(seed, 2), record=record)

        def feed_forward(y: Tensor) -> Tensor:
            return self.feed_forward(y, seed=fold(seed, 3))

        x = self.self_attention_residual(x, sublayer=self_attention, seed=fold(seed, 4))
        x = self.cross_attention_residual(x, sublayer=cross_attention, seed=fold(seed, 5))
        return self.feed_forward_residual(x, sublayer=feed_forward, seed=fold(seed, 6))

    def step(
        self, x: Tensor, cache: LayerCache, step: int | Tensor, bias: Tensor, memory_bias: Tensor
    ) -> tuple[Tensor, LayerCache]:
        """`call` for one position of M hypotheses, which take the place of the T positions.

        Args:
            x: [B, M, D].
            cache: what this layer keeps; L positions, filled up to `step`.
            step: the position, counted from 0.
            bias: [B, 1, M, L * M]: which slots, at which positions, belong to a hypothesis.
            memory_bias: [B, 1, 1, S].

        Returns:
            [B, M, D], and the cache with this position filled.
        """

        def self_attention(y: Tensor) -> Tensor:
            nonlocal cache
            keys, values = self.self_attention.keys_values(y)  # [B, H, M, K]
            start = (0, 0, step, 0, 0)
            cache = cache._replace(
                keys=ops.slice_update(cache.keys, start, keys[:, :, None]),
                values=ops.slice_update(cache.values, start, values[:, :, None]),
            )
            return self.self_attention.attend(y, _merge_slots(cache.keys), _merge_slots(cache.values), bias)

        def cross_attention(y: Tensor) -> Tensor:
            return self.cross_attention.attend(y, cache.memory_keys, cache.memory_values, memory_bias)

        x = self.self_attention_residual(x, sublayer=self_attention)
        x = self.cross_attention_residual(x, sublayer=cross_attention)
        return self.feed_forward_residual(x, sublayer=self.feed_forward), cache

    def get_config(self) -> Config:
        return {**super().get_config(), "hparams": dataclasses.asdict(self.hparams)}

    @classmethod
    def from_config(cls, config: Config) -> DecoderLayer:
        return super().from_config({**config, "hparams": HParams(**config["hparams"])})


def _attention(hparams: HParams, name: str, dtype: keras.DTypePolicy) -> MultiHeadAttention:
    return MultiHeadAttention(
        hparams.hidden_size,
        hparams.num_heads,
        hparams.key_channels,
        hparams.value_channels,
        hparams.attention_dropout,
        name=name,
        dtype=dtype,
    )


def _feed_forward(hparams: HParams, dtype: keras.DTypePolicy) -> FeedForward:
    return FeedForward(hparams.hidden_size, hparams.filter_size, hparams.relu_dropout, name="feed_forward", dtype=dtype)


def _residual(hparams: HParams, name: str, dtype: keras.DTypePolicy) -> Residual:
    return Residual(
        hparams.layer_prepostprocess_dropout, hparams.pre_norm, hparams.norm_epsilon, name=name, dtype=dtype
    )


def _merge_slots(cache: Tensor) -> Tensor:
    """[B, H, L, M, K] -> [B, H, L * M, K]."""
    batch, heads, size = ops.shape(cache)[0], cache.shape[1], cache.shape[4]
    return ops.reshape(cache, (batch, heads, -1, size))
