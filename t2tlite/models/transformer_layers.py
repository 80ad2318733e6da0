"""The two layers that the Transformer stacks (Figure 1): EncoderLayer and
DecoderLayer.
"""

# B batch, S source length, T target length, D hidden size
# H heads, M hypotheses of a sentence, C capacity of the cache in positions

from typing import NamedTuple

import keras

from t2tlite.config import HParams
from t2tlite.layers.attention import AttentionCache, MultiHeadAttention, Record
from t2tlite.layers.kv_cache import CacheSlot
from t2tlite.layers.restricted_attention import RestrictedAttention
from t2tlite.layers.sublayer import FeedForward, Residual, fold
from t2tlite.types import Config, Seed, Tensor


class LayerCache(NamedTuple):
    """What a decoder layer keeps between the steps of decoding."""

    self_attention: AttentionCache
    cross_attention: AttentionCache
    feed_forward: tuple[tuple[Tensor, ...], ...]  # `FeedForward.step_kernels`


class TransformerLayer(keras.layers.Layer):
    """The base class: sublayers, each with a residual connection. The sublayer
    `self_attention` has the residual connection `self_attention_residual`.
    """

    sublayers: tuple[str, ...] = ()

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(autocast=False, **kwargs)
        self.hparams = hparams

    def add(
        self,
        name: str,
        layer: type[keras.layers.Layer],
        **options: object,
    ) -> None:
        """Adds a sublayer with these options."""
        common = {"name": name, "dtype": self.dtype_policy}
        setattr(self, name, layer(self.hparams.hidden_size, **options, **common))
        residual = Residual(
            dropout=self.hparams.layer_prepostprocess_dropout,
            pre_norm=self.hparams.pre_norm,
            epsilon=self.hparams.norm_epsilon,
            name=f"{name}_residual",
            dtype=self.dtype_policy,
        )
        setattr(self, residual.name, residual)
        self.sublayers += (name,)

    def add_attention(self, name: str, radius: int = 0, causal: bool = False) -> None:
        """Adds attention, restricted to the radius unless it is 0."""
        options: Config = {
            "num_heads": self.hparams.num_heads,
            "key_channels": self.hparams.key_channels,
            "value_channels": self.hparams.value_channels,
            "dropout": self.hparams.attention_dropout,
            "causal": causal,
        }
        if radius:
            self.add(name, RestrictedAttention, radius=radius, **options)
        else:
            self.add(name, MultiHeadAttention, **options)

    def add_feed_forward(self) -> None:
        self.add(
            "feed_forward",
            FeedForward,
            filter_size=self.hparams.filter_size,
            dropout=self.hparams.relu_dropout,
        )

    def build(self, input_shape: object = None) -> None:
        """Creates all weights. In checkpoints the name of a sublayer's weight includes
        its residual connection.
        """
        for name in self.sublayers:
            residual = getattr(self, f"{name}_residual")
            residual.build((None, self.hparams.hidden_size))
            with keras.name_scope(residual.name):
                getattr(self, name).build()


class EncoderLayer(TransformerLayer):
    """Self-attention, then feed-forward (Figure 1, left)."""

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        self.add_attention("self_attention", hparams.self_attention_radius)
        self.add_feed_forward()

    def call(
        self,
        x: Tensor,
        bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
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


class DecoderLayer(TransformerLayer):
    """Causal self-attention, attention to the encoder's output, then feed-forward
    (Figure 1, right).
    """

    def __init__(self, hparams: HParams, **kwargs: object) -> None:
        super().__init__(hparams, **kwargs)
        radius = hparams.self_attention_radius
        self.add_attention("self_attention", radius, causal=True)
        self.add_attention("cross_attention")
        self.add_feed_forward()

    def call(
        self,
        x: Tensor,
        memory: Tensor,
        memory_bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """All positions of a target at once (teacher forcing): [B, T, D] -> [B, T, D].

        Args:
            x: [B, T, D].
            memory: [B, S, D], the encoder's output.
            memory_bias: [B, 1, 1, S], the padding mask of the source.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights of self-attention [B, H, T, T],
                then with those of cross-attention [B, H, T, S]; or None.
        """
        y = self.self_attention_residual.enter(x)
        y = self.self_attention(y, seed=fold(seed, 1), record=record)
        x = self.self_attention_residual.leave(x, y, seed=fold(seed, 4))
        y = self.cross_attention_residual.enter(x)
        y = self.cross_attention(
            y, memory, memory_bias, seed=fold(seed, 2), record=record
        )
        x = self.cross_attention_residual.leave(x, y, seed=fold(seed, 5))
        y = self.feed_forward_residual.enter(x)
        y = self.feed_forward(y, seed=fold(seed, 3))
        return self.feed_forward_residual.leave(x, y, seed=fold(seed, 6))

    def start(
        self,
        memory: Tensor,
        capacity: int | Tensor,
        beam_size: int,
    ) -> LayerCache:
        """The cache to decode from the encoder's output [B, S, D], with room for
        `capacity` positions.
        """
        batch = keras.ops.shape(memory)[0]
        rows = batch * beam_size if isinstance(batch, int) else None
        return LayerCache(
            self.self_attention.start_self(batch, capacity, beam_size),
            self.cross_attention.start_cross(memory, rows),
            self.feed_forward.step_kernels(rows),
        )

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
        y, filled = self.self_attention.self_step(y, cache.self_attention, slot, bias)
        x = self.self_attention_residual.leave(x, y)
        y = self.cross_attention_residual.enter(x)
        memory = cache.cross_attention
        y = self.cross_attention.cross_step(y, memory, bias.shape[1], memory_bias)
        x = self.cross_attention_residual.leave(x, y)
        y = self.feed_forward_residual.enter(x)
        y = self.feed_forward.step(y, cache.feed_forward)
        x = self.feed_forward_residual.leave(x, y)
        return x, cache._replace(self_attention=filled)

    def resize(
        self,
        cache: LayerCache,
        sentences: Tensor,
        capacity: int | Tensor,
    ) -> LayerCache:
        """Keeps some sentences, int32 [N], and makes room for more positions."""
        before, memory, _ = cache
        return cache._replace(
            self_attention=self.self_attention.resize_self(before, sentences, capacity),
            cross_attention=self.cross_attention.resize_cross(memory, sentences),
        )
