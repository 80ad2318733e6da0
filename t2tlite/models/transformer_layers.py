"""The two layers that the Transformer stacks (Figure 1): EncoderLayer and
DecoderLayer.
"""

# B batch, S source length, T target length, D hidden size
# H heads, K size of a key and U size of a value in one head
# M hypotheses of a sentence, C capacity of the cache in positions

from __future__ import annotations

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MultiHeadAttention, Record
from t2tlite.layers.kv_cache import CacheSlot, merge_slots, write
from t2tlite.layers.restricted_attention import RestrictedAttention
from t2tlite.layers.sublayer import FeedForward, Residual, fold
from t2tlite.types import Config, LayerCache, Seed, Tensor


class TransformerLayer(keras.layers.Layer):
    """The base class: a layer of sublayers, each with a residual connection."""

    sublayers: ClassVar[tuple[str, ...]]

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams

    def build(self, input_shape: object = None) -> None:
        """Creates all weights. In checkpoints the name of a sublayer's weight includes
        its residual connection.
        """
        for name in self.sublayers:
            residual = getattr(self, f"{name}_residual")
            residual.build((None, self.hparams.hidden_size))
            with keras.name_scope(residual.name):
                getattr(self, name).build()

    def _attention(self, name: str) -> tuple[MultiHeadAttention, Residual]:
        attention = MultiHeadAttention(**self._sizes(), name=name)
        return attention, self._residual(name)

    def _self_attention(self, causal: bool) -> tuple[MultiHeadAttention, Residual]:
        """Restricted if the hparams have a radius, and then with a mask of its own."""
        name = "self_attention"
        radius = self.hparams.self_attention_radius
        if not radius:
            return self._attention(name)
        attention = RestrictedAttention(
            **self._sizes(), radius=radius, causal=causal, name=name
        )
        return attention, self._residual(name)

    def _sizes(self) -> Config:
        """Arguments of all attention."""
        return {
            "hidden_size": self.hparams.hidden_size,
            "num_heads": self.hparams.num_heads,
            "key_channels": self.hparams.key_channels,
            "value_channels": self.hparams.value_channels,
            "dropout": self.hparams.attention_dropout,
            "dtype": self.dtype_policy,
        }

    def _feed_forward(self, name: str) -> tuple[FeedForward, Residual]:
        feed_forward = FeedForward(
            hidden_size=self.hparams.hidden_size,
            filter_size=self.hparams.filter_size,
            dropout=self.hparams.relu_dropout,
            name=name,
            dtype=self.dtype_policy,
        )
        return feed_forward, self._residual(name)

    def _residual(self, sublayer: str) -> Residual:
        return Residual(
            dropout=self.hparams.layer_prepostprocess_dropout,
            pre_norm=self.hparams.pre_norm,
            epsilon=self.hparams.norm_epsilon,
            name=f"{sublayer}_residual",
            dtype=self.dtype_policy,
        )

    def get_config(self) -> Config:
        return super().get_config() | {"hparams": dataclasses.asdict(self.hparams)}

    @classmethod
    def from_config(cls, config: Config) -> TransformerLayer:
        return super().from_config({**config, "hparams": HParams(**config["hparams"])})


@keras.saving.register_keras_serializable("t2tlite")
class EncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward (Figure 1, left)."""

    sublayers = "self_attention", "feed_forward"

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        self.self_attention, self.self_attention_residual = self._self_attention(
            causal=False
        )
        self.feed_forward, self.feed_forward_residual = self._feed_forward(
            "feed_forward"
        )

    def call(
        self, x: Tensor, bias: Tensor, seed: Seed = None, record: Record | None = None
    ) -> Tensor:
        """[B, S, D] -> [B, S, D].

        Args:
            x: [B, S, D].
            bias: [B, 1, 1, S], the padding mask of the source.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights [B, H, S, S]; or None.
        """
        y = self.self_attention_residual.enter(x)
        y = self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)
        x = self.self_attention_residual.leave(x, y, seed=fold(seed, 3))
        y = self.feed_forward_residual.enter(x)
        y = self.feed_forward(y, seed=fold(seed, 2))
        return self.feed_forward_residual.leave(x, y, seed=fold(seed, 4))


@keras.saving.register_keras_serializable("t2tlite")
class DecoderLayer(TransformerLayer):
    """Causal self-attention, attention to the encoder's output, then feed-forward
    (Figure 1, right).
    """

    sublayers = "self_attention", "cross_attention", "feed_forward"

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        self.self_attention, self.self_attention_residual = self._self_attention(
            causal=True
        )
        self.cross_attention, self.cross_attention_residual = self._attention(
            "cross_attention"
        )
        self.feed_forward, self.feed_forward_residual = self._feed_forward(
            "feed_forward"
        )

    def call(
        self,
        x: Tensor,
        bias: Tensor,
        memory: Tensor,
        memory_bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """All positions of a target at once (teacher forcing): [B, T, D] -> [B, T, D].

        Args:
            x: [B, T, D].
            bias: [1, 1, T, T], the causal mask; with a self_attention_radius zeros [B,
                1, 1, T].
            memory: [B, S, D], the encoder's output.
            memory_bias: [B, 1, 1, S], the padding mask of the source.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights of self-attention [B, H, T, T],
                then with those of cross-attention [B, H, T, S]; or None.
        """
        y = self.self_attention_residual.enter(x)
        y = self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)
        x = self.self_attention_residual.leave(x, y, seed=fold(seed, 4))
        y = self.cross_attention_residual.enter(x)
        y = self.cross_attention(
            y, memory, memory_bias, seed=fold(seed, 2), record=record
        )
        x = self.cross_attention_residual.leave(x, y, seed=fold(seed, 5))
        y = self.feed_forward_residual.enter(x)
        y = self.feed_forward(y, seed=fold(seed, 3))
        return self.feed_forward_residual.leave(x, y, seed=fold(seed, 6))

    def step(
        self,
        x: Tensor,
        cache: LayerCache,
        slot: CacheSlot,
        bias: Tensor,
        memory_bias: Tensor,
    ) -> tuple[Tensor, LayerCache]:
        """`call` for one position of M hypotheses instead of T positions.

        Args:
            x: rows [B * M, D]; with two axes TensorFlow fuses each product with the
                operation after it.
            cache: the keys and values of this layer.
            slot: the place of this position's keys and values.
            bias: [B, M, C * M], 0 at the slots and positions of the hypothesis, MASKED
                at the others.
            memory_bias: [B, 1, S], the padding mask of the source.

        Returns:
            [B * M, D], and the cache with this position filled.
        """
        y = self.self_attention_residual.enter(x)
        y, cache = self._self_attention_step(y, cache, slot, bias)
        x = self.self_attention_residual.leave(x, y)
        y = self.cross_attention_residual.enter(x)
        y = self._cross_attention_step(y, cache, memory_bias)
        x = self.cross_attention_residual.leave(x, y)
        y = self.feed_forward_residual.enter(x)
        y = self.feed_forward.step(y, cache.feed_forward)
        return self.feed_forward_residual.leave(x, y), cache

    def _self_attention_step(
        self, y: Tensor, cache: LayerCache, slot: CacheSlot, bias: Tensor
    ) -> tuple[Tensor, LayerCache]:
        """Rows [B * M, D] -> [B * M, D], and the cache with this position filled."""
        layer = self.self_attention
        beam_size = cache.keys.shape[3]
        # [H, B, M, 2 K + U]
        joint = layer.project_hypotheses(y, beam_size, cache.joint_kernel)
        size = layer.key_size
        queries, keys, values = ops.split(joint, (size, 2 * size), axis=3)
        cache = cache._replace(
            keys=write(cache.keys, slot, keys), values=write(cache.values, slot, values)
        )
        keys = merge_slots(cache.keys, slot)  # [H, B, C * M, K]
        values = merge_slots(cache.values, slot)  # [H, B, C * M, U]
        return layer.attend_hypotheses(queries, keys, values, bias), cache

    def _cross_attention_step(
        self, y: Tensor, cache: LayerCache, memory_bias: Tensor
    ) -> Tensor:
        """Rows [B * M, D] -> [B * M, D]."""
        layer = self.cross_attention
        beam_size = cache.keys.shape[3]
        # [H, B, M, K]
        queries = layer.project_hypotheses(y, beam_size, cache.query_kernel)
        return layer.attend_hypotheses(
            queries, cache.memory_keys, cache.memory_values, memory_bias
        )
