"""The two layers that the Transformer stacks (Figure 1): EncoderLayer and DecoderLayer."""

# B batch, S source length, T target length, D hidden size, H heads, K head size
# M hypotheses of a sentence, C positions in the cache

from __future__ import annotations

import dataclasses

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.layers.attention import MultiHeadAttention, Record
from t2tlite.layers.kv_cache import Place, merge_slots, write
from t2tlite.layers.sublayer import Composite, FeedForward, Residual, fold
from t2tlite.types import Config, LayerCache, Seed, Tensor


class TransformerLayer(Composite):
    """What both layers share: they are made from HParams, the model's shape, and have a residual for each sublayer."""

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams

    def _attention(self, name: str, radius: int = 0, causal: bool = False) -> tuple[MultiHeadAttention, Residual]:
        arguments = {**self.hparams.attention_arguments, "radius": radius, "causal": causal}
        attention = MultiHeadAttention(**arguments, name=name, dtype=self.dtype_policy)
        return attention, self._residual(name)

    def _feed_forward(self, name: str) -> tuple[FeedForward, Residual]:
        feed_forward = FeedForward(**self.hparams.feed_forward_arguments, name=name, dtype=self.dtype_policy)
        return feed_forward, self._residual(name)

    def _residual(self, sublayer: str) -> Residual:
        return Residual(**self.hparams.residual_arguments, name=f"{sublayer}_residual", dtype=self.dtype_policy)

    def get_config(self) -> Config:
        return super().get_config() | {"hparams": dataclasses.asdict(self.hparams)}

    @classmethod
    def from_config(cls, config: Config) -> TransformerLayer:
        return super().from_config({**config, "hparams": HParams(**config["hparams"])})


@keras.saving.register_keras_serializable("t2tlite")
class EncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward (Figure 1, left)."""

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        radius = hparams.self_attention_radius
        self.self_attention, self.self_attention_residual = self._attention("self_attention", radius)
        self.feed_forward, self.feed_forward_residual = self._feed_forward("feed_forward")

    def call(self, x: Tensor, bias: Tensor, seed: Seed = None, record: Record | None = None) -> Tensor:
        """[B, S, D] -> [B, S, D]; `bias` [B, 1, 1, S] is the padding mask, `record` receives the attention weights."""

        def self_attention(y: Tensor) -> Tensor:
            return self.self_attention(y, y, bias, seed=fold(seed, 1), record=record)

        def feed_forward(y: Tensor) -> Tensor:
            return self.feed_forward(y, seed=fold(seed, 2))

        x = self.self_attention_residual(x, sublayer=self_attention, seed=fold(seed, 3))
        return self.feed_forward_residual(x, sublayer=feed_forward, seed=fold(seed, 4))


@keras.saving.register_keras_serializable("t2tlite")
class DecoderLayer(TransformerLayer):
    """Causal self-attention, attention to the encoder's output, then feed-forward (Figure 1, right)."""

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        radius = hparams.self_attention_radius
        self.self_attention, self.self_attention_residual = self._attention("self_attention", radius, causal=True)
        self.cross_attention, self.cross_attention_residual = self._attention("cross_attention")
        self.feed_forward, self.feed_forward_residual = self._feed_forward("feed_forward")

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
            bias: [1, 1, T, T], the causal mask; with a self_attention_radius zeros [B, 1, 1, T].
            memory: [B, S, D], the encoder's output.
            memory_bias: [B, 1, 1, S], the padding mask of the source.
            seed: int32 [2] for dropout, or None.
            record: called with the weights of self-attention, then with those of cross-attention; or None.
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
        self, x: Tensor, cache: LayerCache, place: Place, bias: Tensor, memory_bias: Tensor
    ) -> tuple[Tensor, LayerCache]:
        """`call` for one position of M hypotheses, which take the place of the T positions.

        Args:
            x: rows [B * M, D]; with two axes TensorFlow fuses the products with what follows them.
            cache: what this layer keeps.
            place: where the position's keys and values go.
            bias: [B, M, C * M]: which slots, at which positions, belong to a hypothesis.
            memory_bias: [B, 1, S].

        Returns:
            [B * M, D], and the cache with this position filled.
        """
        beam_size = cache.keys.shape[3]

        def self_attention(y: Tensor) -> Tensor:
            nonlocal cache
            layer = self.self_attention
            joint = layer.project_hypotheses(y, beam_size, cache.joint_kernel)  # [H, B, M, 2 K + U]
            queries, keys, values = ops.split(joint, (layer.key_size, 2 * layer.key_size), axis=3)
            cache = cache._replace(keys=write(cache.keys, place, keys), values=write(cache.values, place, values))
            keys, values = merge_slots(cache.keys, place), merge_slots(cache.values, place)
            return layer.attend_hypotheses(queries, keys, values, bias)

        def cross_attention(y: Tensor) -> Tensor:
            queries = self.cross_attention.project_hypotheses(y, beam_size, cache.query_kernel)
            return self.cross_attention.attend_hypotheses(queries, cache.memory_keys, cache.memory_values, memory_bias)

        x = self.self_attention_residual(x, sublayer=self_attention)
        x = self.cross_attention_residual(x, sublayer=cross_attention)
        return self.feed_forward_residual(x, sublayer=self.feed_forward), cache
