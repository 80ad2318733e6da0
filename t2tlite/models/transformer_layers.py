"""The two layers that the Transformer stacks (Figure 1): EncoderLayer and
DecoderLayer.
"""

# B batch, S source length, T target length, D hidden size, H heads, K head size
# M hypotheses of a sentence, C capacity of the cache

from __future__ import annotations

import dataclasses
from typing import ClassVar

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MultiHeadAttention, Record
from t2tlite.layers.kv_cache import CacheSlot, merge_slots, write
from t2tlite.layers.sublayer import FeedForward, Residual, fold
from t2tlite.types import Config, LayerCache, Seed, Tensor


class TransformerLayer(keras.layers.Layer):
    """A layer made from HParams, with a residual connection for each sublayer."""

    sublayers: ClassVar[tuple[str, ...]]

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams

    def build(self, input_shape: object = None) -> None:
        """Makes all weights; checkpoints name a sublayer's after its residual
        connection, too.
        """
        for name in self.sublayers:
            residual = getattr(self, f"{name}_residual")
            residual.build((None, self.hparams.hidden_size))
            with keras.name_scope(residual.name):
                getattr(self, name).build()

    def _attention(
        self, name: str, radius: int = 0, causal: bool = False
    ) -> tuple[MultiHeadAttention, Residual]:
        attention = MultiHeadAttention(
            hidden_size=self.hparams.hidden_size,
            num_heads=self.hparams.num_heads,
            key_channels=self.hparams.key_channels,
            value_channels=self.hparams.value_channels,
            dropout=self.hparams.attention_dropout,
            radius=radius,
            causal=causal,
            name=name,
            dtype=self.dtype_policy,
        )
        return attention, self._residual(name)

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
        radius = hparams.self_attention_radius
        self.self_attention, self.self_attention_residual = self._attention(
            "self_attention", radius
        )
        self.feed_forward, self.feed_forward_residual = self._feed_forward(
            "feed_forward"
        )

    def call(
        self, x: Tensor, bias: Tensor, seed: Seed = None, record: Record | None = None
    ) -> Tensor:
        """[B, S, D] -> [B, S, D]; `bias` [B, 1, 1, S] is the padding mask, `record`
        gets the weights.
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
        radius = hparams.self_attention_radius
        self.self_attention, self.self_attention_residual = self._attention(
            "self_attention", radius, causal=True
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
            record: called with the weights of self-attention, then with those of
                cross-attention; or None.
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
        """`call` for one position of M hypotheses, which take the place of the T
        positions.

        Args:
            x: rows [B * M, D]; with two axes TensorFlow fuses the products with what
                follows them.
            cache: what this layer keeps.
            slot: where the position's keys and values go.
            bias: [B, M, C * M]: which slots, at which positions, belong to a
                hypothesis.
            memory_bias: [B, 1, S].

        Returns:
            [B * M, D], and the cache with this position filled.
        """
        beam_size = cache.keys.shape[3]
        y = self.self_attention_residual.enter(x)
        y, cache = self._self_attention_step(y, cache, slot, bias)
        x = self.self_attention_residual.leave(x, y)
        y = self.cross_attention_residual.enter(x)
        layer = self.cross_attention
        # [H, B, M, K]
        queries = layer.project_hypotheses(y, beam_size, cache.query_kernel)
        y = layer.attend_hypotheses(
            queries, cache.memory_keys, cache.memory_values, memory_bias
        )
        x = self.cross_attention_residual.leave(x, y)
        y = self.feed_forward_residual.enter(x)
        return (
            self.feed_forward_residual.leave(
                x, self.feed_forward.step(y, cache.feed_forward)
            ),
            cache,
        )

    def _self_attention_step(
        self, y: Tensor, cache: LayerCache, slot: CacheSlot, bias: Tensor
    ) -> tuple[Tensor, LayerCache]:
        layer = self.self_attention
        # [H, B, M, 2 K + U]
        joint = layer.project_hypotheses(y, cache.keys.shape[3], cache.joint_kernel)
        queries, keys, values = ops.split(
            joint, (layer.key_size, 2 * layer.key_size), axis=3
        )
        cache = cache._replace(
            keys=write(cache.keys, slot, keys), values=write(cache.values, slot, values)
        )
        # [H, B, C * M, K or U]
        keys, values = merge_slots(cache.keys, slot), merge_slots(cache.values, slot)
        return layer.attend_hypotheses(queries, keys, values, bias), cache
