"""Multi-head attention, section 3.2, and its masks.

Training and the encoder use `MultiHeadAttention.call`: the queries are the T positions
of a sequence. Decoding uses `self_step` and `cross_step`: the queries are the M
hypotheses of a sentence at one position, which share the keys and values of the source.
Their tensors have the heads as their first axis. One matrix product per head computes
this layout; one product for all heads would need a transpose afterwards.
"""

# B batch, T query length, S key length, D hidden size
# H heads, K size of a key and U size of a value in one head
# M hypotheses of a sentence (beam size), C capacity of the cache in positions

from collections.abc import Callable
from typing import NamedTuple

import keras
from keras import ops

from t2tlite.layers.few_rows import prepare_kernel, side_by_side
from t2tlite.layers.kv_cache import CacheSlot, empty_cache, merge_slots, resize, write
from t2tlite.layers.sublayer import Dense, Dropout
from t2tlite.types import PAD, Seed, Tensor

Record = Callable[[Tensor], None]  # receives attention weights, float32 [B, H, T, S]

# Added to the scores of masked positions, so that their weights are exactly zero. The
# weights of a row that is masked as a whole are uniform; minus infinity would give
# not-a-number.
MASKED = -1e9


class AttentionCache(NamedTuple):
    """What attention keeps between the steps of decoding: in self-attention the keys
    and values of the positions decoded so far, in cross-attention those of the source.
    """

    keys: Tensor  # [H, B, C, M, K], those of slot m at each position; or [H, B, S, K]
    values: Tensor  # likewise, with U
    # of query (scaled), key and value side by side, [H, D, 2 K + U]; or of query alone
    kernel: Tensor
    output: tuple[Tensor, ...]  # `Dense.step_kernel` of W^O


@keras.saving.register_keras_serializable("t2tlite")
class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_H) W^O (section 3.2.2), where
    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V). No projection has a bias, as in
    tensor2tensor.

    Args:
        hidden_size: D, width of input and output; d_model in the paper.
        num_heads: H.
        key_channels: H * K, the width of all heads' keys, by default D; K is d_k in
            the paper.
        value_channels: H * U, the width of all heads' values, by default D; U is d_v in
            the paper.
        dropout: rate on the attention weights; the paper has none.
        causal: whether self-attention masks later positions, as in the decoder.

    Raises:
        ValueError: the heads do not divide the keys or the values.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        key_channels: int | None = None,
        value_channels: int | None = None,
        dropout: float = 0.0,
        causal: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(**kwargs)
        self.autocast = False  # the bias stays float32
        self.supports_masking = True
        key_channels = key_channels or hidden_size
        value_channels = value_channels or hidden_size
        if num_heads < 1 or key_channels % num_heads or value_channels % num_heads:
            raise ValueError(
                "num_heads must divide the channels of keys and values. Received:"
                f" {num_heads}, {key_channels} and {value_channels}."
            )
        self.num_heads = num_heads
        self.causal = causal
        self.key_size = key_channels // num_heads
        self.value_size = value_channels // num_heads

        common = {"use_bias": False, "dtype": self.dtype_policy}
        self.query = Dense(key_channels, name="query", **common)
        self.key = Dense(key_channels, name="key", **common)
        self.value = Dense(value_channels, name="value", **common)
        self.output_transform = Dense(hidden_size, name="output_transform", **common)
        self.weight_dropout = Dropout(
            dropout, name="weight_dropout", dtype=self.dtype_policy
        )

    def build(self, input_shape: object = None) -> None:
        for projection in (self.query, self.key, self.value):
            projection.build((None, self.output_transform.units))
        self.output_transform.build((None, self.value.units))

    def call(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        bias: Tensor | None = None,
        seed: Seed = None,
        record: Record | None = None,
        mask: Tensor | None = None,
        x_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """Attends from `x` to `memory`; returns [B, T, D].

        Args:
            x: [B, T, D], the queries.
            memory: [B, S, D], the keys and values; by default `x`, for self-attention.
            bias: float32, broadcast to [B, H, T, S]: MASKED at masked positions, 0 at
                the others; None masks nothing. A causal layer itself masks later
                positions.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights, float32 [B, H, T, S], before
                dropout; or None.
            mask: bool [B, S], False at further keys to mask. Keras passes its masks as
                `mask` (of a lone `x`), `x_mask` and `memory_mask`.
            x_mask: the mask of `x`, which holds for keys in self-attention.
            memory_mask: the mask of `memory`.
        """
        if mask is None:
            mask = x_mask if memory is None else memory_mask
        if memory is None:
            memory = x
        if mask is not None:
            masked = mask_bias(ops.logical_not(mask))
            bias = masked if bias is None else bias + masked
        return self.attend_to(x, memory, bias, seed, record)

    def attend_to(
        self,
        x: Tensor,
        memory: Tensor,
        bias: Tensor | None,
        seed: Seed,
        record: Record | None,
    ) -> Tensor:
        """`call` with all masks in `bias`, but the causal one."""
        if self.causal:
            later = causal_mask(ops.shape(x)[1])
            bias = later if bias is None else bias + later
        return self.attend(x, *self.keys_values(memory), bias, seed, record)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[B, S, D] -> keys [B, H, S, K], values [B, H, S, U]."""
        keys = self.split_heads(self.key(memory))
        values = self.split_heads(self.value(memory))
        return keys, values

    def attend(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor | None,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """Attends from `x` [B, T, D] to keys [B, H, S, K] and values [B, H, S, U];
        returns [B, T, D].
        """
        # Scaled before the split: TensorFlow 2.21 on a CPU mis-optimises the other
        # order inside a loop.
        queries = self.split_heads(self.query(x) * self.key_size**-0.5)  # [B, H, T, K]
        weights = attention_weights(queries, keys, bias)  # [B, H, T, S]
        if record is not None:
            record(weights)
        weights = self.weight_dropout(ops.cast(weights, queries.dtype), seed=seed)
        heads = ops.matmul(weights, values)  # [B, H, T, U]
        heads = ops.transpose(heads, (0, 2, 1, 3))  # [B, T, H, U]
        joined = ops.reshape(heads, (*ops.shape(heads)[:2], self.value.units))
        return self.output_transform(joined)

    def start_self(
        self,
        batch: int | Tensor,
        capacity: int | Tensor,
        beam_size: int,
    ) -> AttentionCache:
        """The empty cache of causal self-attention, for `self_step`."""
        shape = (self.num_heads, batch, capacity, beam_size)
        rows = batch * beam_size if isinstance(batch, int) else None
        dtype = self.compute_dtype
        return AttentionCache(
            keys=empty_cache((*shape, self.key_size), dtype),
            values=empty_cache((*shape, self.value_size), dtype),
            kernel=self._by_head(self.query, self.key, self.value),  # for one product
            output=self.output_transform.step_kernel(rows),
        )

    def start_cross(self, memory: Tensor, rows: int | None) -> AttentionCache:
        """The keys and values of `memory` [B, S, D], for `cross_step` with so many
        rows (None: any number).
        """
        keys, values = self.keys_values(memory)  # [B, H, S, K], [B, H, S, U]
        return AttentionCache(
            keys=ops.swapaxes(keys, 0, 1),
            values=ops.swapaxes(values, 0, 1),
            kernel=self._by_head(self.query),
            output=self.output_transform.step_kernel(rows),
        )

    def self_step(
        self,
        x: Tensor,
        cache: AttentionCache,
        slot: CacheSlot,
        bias: Tensor,
    ) -> tuple[Tensor, AttentionCache]:
        """Causal self-attention of one position: rows [B * M, D] -> [B * M, D], and the
        cache with this position filled. `bias` is [B, M, C * M].
        """
        joint = self._project(x, cache.keys.shape[3], cache.kernel)
        size = self.key_size
        queries, keys, values = ops.split(joint, (size, 2 * size), axis=3)
        cache = cache._replace(
            keys=write(cache.keys, slot, keys), values=write(cache.values, slot, values)
        )
        keys = merge_slots(cache.keys, slot)  # [H, B, C * M, K]
        values = merge_slots(cache.values, slot)  # [H, B, C * M, U]
        return self._attend_rows(queries, keys, values, bias, cache.output), cache

    def cross_step(
        self,
        x: Tensor,
        cache: AttentionCache,
        beam_size: int,
        bias: Tensor,
    ) -> Tensor:
        """Attention of one position to the source: rows [B * M, D] -> [B * M, D].
        `bias` is [B, 1, S].
        """
        queries = self._project(x, beam_size, cache.kernel)  # [H, B, M, K]
        return self._attend_rows(queries, *cache[:2], bias, cache.output)

    @staticmethod
    def resize_self(
        cache: AttentionCache,
        sentences: Tensor,
        capacity: int | Tensor,
    ) -> AttentionCache:
        """The cache of some sentences, int32 [N], with room for `capacity`
        positions.
        """
        keys = resize(cache.keys, sentences, capacity)
        values = resize(cache.values, sentences, capacity)
        return cache._replace(keys=keys, values=values)

    @staticmethod
    def resize_cross(cache: AttentionCache, sentences: Tensor) -> AttentionCache:
        """The keys and values of some sources, int32 [N]."""
        keys = ops.take(cache.keys, sentences, axis=1)
        values = ops.take(cache.values, sentences, axis=1)
        return cache._replace(keys=keys, values=values)

    def _project(self, x: Tensor, beam_size: int, kernel: Tensor) -> Tensor:
        """Multiplies rows [B * M, D] by the kernel of each head, [H, D, N]; returns [H,
        B, M, N].
        """
        projected = ops.matmul(x[None], kernel)  # [H, B * M, N]
        shape = (self.num_heads, -1, beam_size, kernel.shape[2])
        return ops.reshape(projected, shape)

    def _attend_rows(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor,
        output: tuple[Tensor, ...],
    ) -> Tensor:
        """Attends from scaled queries [H, B, M, K] to keys [H, B, S, K] and values [H,
        B, S, U]; returns rows [B * M, D].
        """
        weights = attention_weights(queries, keys, bias)  # [H, B, M, S]
        weights = ops.cast(weights, queries.dtype)
        heads = ops.matmul(weights, values)  # [H, B, M, U]
        rows = ops.reshape(heads, (self.num_heads, -1, self.value_size))
        return self.output_transform.step(side_by_side(rows), output)

    def _by_head(self, *projections: Dense) -> Tensor:
        """The kernels of each head side by side, [H, D, N], in the compute dtype; that
        of the query scaled by 1/sqrt(d_k).
        """
        return prepare_kernel(
            self.query.kernel, lambda: self._side_by_side(*projections)
        )

    def _side_by_side(self, *projections: Dense) -> Tensor:
        kernels = []
        for projection in projections:
            kernel = projection.kernel  # [D, H * K]
            if projection is self.query:
                kernel = kernel * self.key_size**-0.5
            kernel = ops.cast(kernel, self.compute_dtype)
            kernel = ops.reshape(kernel, (kernel.shape[0], self.num_heads, -1))
            kernels.append(kernel)  # [D, H, K]
        return ops.transpose(ops.concatenate(kernels, axis=2), (1, 0, 2))

    def split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        size = x.shape[2] // self.num_heads
        x = ops.reshape(x, (*ops.shape(x)[:2], self.num_heads, size))  # [B, T, H, K]
        return ops.transpose(x, (0, 2, 1, 3))


def attention_weights(
    queries: Tensor,
    keys: Tensor,
    bias: Tensor | None = None,
) -> Tensor:
    """softmax(Q K^T / sqrt(d_k) + bias) of equation (1), float32 [..., T, S].

    Args:
        queries: [..., T, K], already scaled by 1/sqrt(d_k).
        keys: [..., S, K].
        bias: float32, broadcast to [..., T, S]; or None.
    """
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))  # [..., T, S]
    scores = ops.cast(scores, "float32")
    return ops.softmax(scores if bias is None else scores + bias, axis=-1)


def padding_mask(ids: Tensor) -> Tensor:
    """The padding mask, a bias on scores: int [B, S] -> float32 [B, 1, 1, S], MASKED at
    padding.
    """
    return mask_bias(ops.equal(ids, PAD))


def mask_bias(masked: Tensor) -> Tensor:
    """bool [B, S], True at masked keys -> a bias on scores, float32 [B, 1, 1, S]."""
    # not a product with MASKED, which Keras takes for sparse in a functional model
    zeros = ops.zeros_like(masked, dtype="float32")
    return ops.where(masked, MASKED, zeros)[:, None, None, :]


def causal_mask(length: int | Tensor) -> Tensor:
    """The causal mask (section 3.2.3), a bias on scores: float32 [1, 1, T, T], MASKED
    at keys later than the query.
    """
    positions = ops.arange(length, dtype="int32")
    later = positions[None, :] > positions[:, None]  # [T, T]
    return ops.cast(later, "float32")[None, None] * MASKED
