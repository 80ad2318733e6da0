"""Multi-head attention, section 3.2.

`MultiHeadAttention.call` is the layer of training and of the encoder, whose queries are
the T positions of a sequence. In beam search the queries of `attend_hypotheses` are the
M hypotheses of a sentence at one position, which share the keys and values of the
source. Its tensors have the heads first: one matrix product per head yields this
layout, where splitting a joint product would need a transpose.

Restricted self-attention (section 4) calls it with blocks of r positions in place of
sentences, each with the keys of the blocks beside it.
"""

# B batch, T query length, S key length, H heads, K and U size of a key and of a value
# in one head, D hidden size M hypotheses of a sentence (beam size)

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import ops

from t2tlite.layers.sublayer import Dense, Dropout
from t2tlite.types import PAD, Config, Seed, Tensor

Record = Callable[[Tensor], None]  # receives attention weights, float32 [B, H, T, S]

# Added to the scores of masked positions, whose weights become exactly zero. If a whole
# row is masked, its weights are uniform, where minus infinity would give not-a-number.
MASKED = -1e9

# Added to the scores of positions beyond the radius. Lower than MASKED: a query whose
# window is all padding attends to it uniformly, whatever the block size.
TOO_FAR = 2 * MASKED


@keras.saving.register_keras_serializable("t2tlite")
class MultiHeadAttention(keras.layers.Layer):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O; no projection has a bias,
    as in tensor2tensor.

    Args:
        hidden_size: D, width of input and output.
        num_heads: H.
        key_channels: H * K.
        value_channels: H * U.
        dropout: rate on the attention weights; the paper has none.
        radius: r of restricted self-attention: attends at distances below r; 0: to all
            positions.
        causal: whether restricted self-attention leaves out later positions, as in the
            decoder.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        key_channels: int,
        value_channels: int,
        dropout: float,
        radius: int = 0,
        causal: bool = False,
        **kwargs: object,
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.radius = radius
        self.causal = causal
        self.key_size = key_channels // num_heads

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
        memory: Tensor,
        bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """Attends from `x` to `memory`; returns [B, T, D].

        Args:
            x: [B, T, D].
            memory: [B, S, D]; `x` itself for self-attention.
            bias: float32, broadcast to [B, H, T, S]; MASKED at masked positions, 0 at
                the others. With a radius [B, 1, 1, S]; what is too far away, and with
                `causal` what comes later, is masked here.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights, float32 [B, H, T, S], before
                dropout; or None. With a radius, the scores of all positions are then
                computed.
        """
        if self.radius and record is None:
            return self._attend_in_blocks(x, memory, bias, seed)
        if self.radius:
            positions = ops.arange(ops.shape(x)[1])
            bias = bias + self._distance_mask(positions, positions)
        return self.attend(x, *self.keys_values(memory), bias, seed, record)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[B, S, D] -> keys [B, H, S, K], values [B, H, S, U]."""
        return self._split_heads(self.key(memory)), self._split_heads(
            self.value(memory)
        )

    def attend(
        self,
        x: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """Attends from `x` [B, T, D] to keys [B, H, S, K] and values [B, H, S, U];
        returns [B, T, D].
        """
        # Scaled before the split: TensorFlow 2.21 on a CPU mis-optimises the other
        # order inside a loop.
        queries = self._split_heads(self.query(x) * self.key_size**-0.5)  # [B, H, T, K]
        weights = attention_weights(queries, keys, bias)  # [B, H, T, S]
        if record is not None:
            record(weights)
        weights = self.weight_dropout(ops.cast(weights, queries.dtype), seed=seed)
        heads = ops.transpose(ops.matmul(weights, values), (0, 2, 1, 3))  # [B, T, H, U]
        return self.output_transform(
            ops.reshape(heads, (-1, ops.shape(heads)[1], self.value.units))
        )

    def query_kernel(self) -> Tensor:
        """The kernel of each head's query, scaled by 1/sqrt(d_k): [H, D, K]. Computed
        once a search.
        """
        return self._by_head(self.query.kernel * self.key_size**-0.5)

    def joint_kernel(self) -> Tensor:
        """The kernels of query (scaled), key and value side by side: [H, D, 2 K + U],
        for one product.
        """
        kernels = (
            self.query_kernel(),
            self._by_head(self.key.kernel),
            self._by_head(self.value.kernel),
        )
        return ops.concatenate(kernels, axis=2)

    def project_hypotheses(self, x: Tensor, beam_size: int, kernel: Tensor) -> Tensor:
        """The product of each head: rows [B * M, D], kernel [H, D, N] -> [H, B, M,
        N].
        """
        return ops.reshape(
            ops.matmul(x[None], kernel),
            (self.num_heads, -1, beam_size, kernel.shape[2]),
        )

    def attend_hypotheses(
        self, queries: Tensor, keys: Tensor, values: Tensor, bias: Tensor
    ) -> Tensor:
        """Scaled queries [H, B, M, K], keys [H, B, S, K], values [H, B, S, U] to rows
        [B * M, D].

        `bias` is float32, broadcast to [H, B, M, S].
        """
        # [H, B, M, S]
        weights = ops.cast(attention_weights(queries, keys, bias), queries.dtype)
        heads = ops.einsum("hbms,hbsu->bmhu", weights, values)
        return self.output_transform(ops.reshape(heads, (-1, self.value.units)))

    def get_config(self) -> Config:
        sizes = {
            "hidden_size": self.output_transform.units,
            "num_heads": self.num_heads,
        }
        channels = {"key_channels": self.key.units, "value_channels": self.value.units}
        restriction = {"radius": self.radius, "causal": self.causal}
        return (
            super().get_config()
            | sizes
            | channels
            | restriction
            | {"dropout": self.weight_dropout.rate}
        )

    def _attend_in_blocks(
        self, x: Tensor, memory: Tensor, bias: Tensor, seed: Seed
    ) -> Tensor:
        """`call` with a radius, whose cost grows with T times the radius.

        Each of N blocks of r queries has the keys of its own block, the one before and,
        unless `causal`, the next.
        """
        batch, length = ops.shape(x)[:2]
        # r, or T if that is less; a number wherever T is one
        size = ops.shape(x[:, : self.radius])[1]
        after = 0 if self.causal else 1
        keys, values = (
            self._split_heads(in_blocks(part(memory), size, 1, after))
            for part in (self.key, self.value)
        )  # [B * N, H, 3r, K], [B * N, H, 3r, U]
        # [B * N, 3r, 1]
        bias = in_blocks(bias[:, 0, 0, :, None], size, 1, after, fill=TOO_FAR)
        # [r, 3r]
        near = self._distance_mask(
            ops.arange(size, 2 * size), ops.arange((2 + after) * size)
        )
        bias = ops.swapaxes(bias, 1, 2)[:, None] + near  # [B * N, 1, r, 3r]
        x = self.attend(in_blocks(x, size), keys, values, bias, seed)  # [B * N, r, D]
        return ops.reshape(x, (batch, -1, self.output_transform.units))[:, :length]

    def _distance_mask(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions int32 [T] and [S] -> a bias on scores, float32 [T, S], TOO_FAR
        beyond the radius.
        """
        distance = keys[None, :] - queries[:, None]
        near = ops.logical_and(
            distance > -self.radius, distance < (1 if self.causal else self.radius)
        )
        return ops.cast(ops.logical_not(near), "float32") * TOO_FAR

    def _by_head(self, kernel: Tensor) -> Tensor:
        """[D, H * K] -> [H, D, K], in the compute dtype."""
        kernel = ops.cast(kernel, self.compute_dtype)
        return ops.transpose(
            ops.reshape(kernel, (kernel.shape[0], self.num_heads, -1)), (1, 0, 2)
        )

    def _split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        x = ops.reshape(
            x, (-1, ops.shape(x)[1], self.num_heads, x.shape[2] // self.num_heads)
        )
        return ops.transpose(x, (0, 2, 1, 3))


def attention_weights(queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """softmax(Q K^T + bias), equation (1), float32 [..., T, S]; queries already have
    the scale 1/sqrt(d_k).

    Args:
        queries: [..., T, K].
        keys: [..., S, K].
        bias: float32, broadcast to [..., T, S].
    """
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))  # [..., T, S]
    return ops.softmax(ops.cast(scores, "float32") + bias, axis=-1)


def in_blocks(
    x: Tensor, size: int | Tensor, before: int = 0, after: int = 0, fill: float = 0.0
) -> Tensor:
    """Cuts a sequence into N blocks of `size` positions, each with the given numbers of
    neighbouring blocks.

    [B, T, C] -> [B * N, (before + 1 + after) * size, C]; positions outside the sequence
    are `fill`.
    """
    length = ops.shape(x)[1]
    covered = -(-length // size) * size  # N * size
    x = ops.pad(
        x,
        ((0, 0), (before * size, covered - length + after * size), (0, 0)),
        constant_values=fill,
    )
    starts = [i * size for i in range(before + 1 + after)]
    return ops.concatenate(
        [ops.reshape(x[:, i : i + covered], (-1, size, x.shape[2])) for i in starts],
        axis=1,
    )


def padding_mask(ids: Tensor) -> Tensor:
    """The padding mask as a bias on scores, that hides padding: int [B, S] -> float32
    [B, 1, 1, S].
    """
    return ops.cast(ops.equal(ids, PAD), "float32")[:, None, None, :] * MASKED


def causal_mask(length: int | Tensor) -> Tensor:
    """The causal mask as a bias on scores, that hides later positions (3.2.3): float32
    [1, 1, T, T].
    """
    positions = ops.arange(length)
    return (
        ops.cast(positions[None, :] > positions[:, None], "float32")[None, None]
        * MASKED
    )
