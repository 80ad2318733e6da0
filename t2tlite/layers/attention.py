"""Multi-head attention, section 3.2.

One function, `attend`, serves training and decoding. In training its queries are the T positions of a sequence; in
beam search they are the M hypotheses of a sentence at one position, so that keys and values of the source are used
by all hypotheses without a copy for each.
"""

# B batch, T query length, S key length, H heads, K and U size of a key and of a value in one head, D hidden size

from __future__ import annotations

from collections.abc import Callable

import keras
from keras import ops

from t2tlite.layers.sublayer import Composite, Dropout
from t2tlite.tokens import PAD
from t2tlite.types import Config, Seed, Tensor

Record = Callable[[Tensor], None]  # receives attention weights, float32 [B, H, T, S]

# Added to the scores of masked positions, whose weights become exactly zero. If every position of a row is masked, its
# weights are uniform instead: finite, where minus infinity would give not-a-number.
MASKED = -1e9


@keras.saving.register_keras_serializable("t2tlite")
class MultiHeadAttention(Composite):
    """MultiHead(Q, K, V) = Concat(head_1, ..., head_h) W^O; the four projections have no bias, as in tensor2tensor.

    Args:
        hidden_size: D, width of input and output.
        num_heads: H.
        key_channels: H * K.
        value_channels: H * U.
        dropout: rate on the attention weights; the paper has none.
    """

    def __init__(
        self, hidden_size: int, num_heads: int, key_channels: int, value_channels: int, dropout: float, **kwargs: object
    ) -> None:
        super().__init__(autocast=False, **kwargs)
        self.num_heads = num_heads
        self.key_size = key_channels // num_heads

        def projection(channels: int, name: str) -> keras.layers.Dense:
            return keras.layers.Dense(channels, use_bias=False, name=name, dtype=self.dtype_policy)

        self.query = projection(key_channels, "query")
        self.key = projection(key_channels, "key")
        self.value = projection(value_channels, "value")
        self.output_transform = projection(hidden_size, "output_transform")
        self.weight_dropout = Dropout(dropout, name="weight_dropout", dtype=self.dtype_policy)

    def call(self, x: Tensor, memory: Tensor, bias: Tensor, seed: Seed = None, record: Record | None = None) -> Tensor:
        """Attends from `x` to `memory`; returns [B, T, D].

        Args:
            x: [B, T, D].
            memory: [B, S, D]; `x` itself for self-attention.
            bias: float32, broadcast to [B, H, T, S]; MASKED at masked positions, 0 at the others.
            seed: int32 [2] for dropout, or None.
            record: called with the attention weights, float32 [B, H, T, S], before dropout; or None.
        """
        return self.attend(x, *self.keys_values(memory), bias, seed, record)

    def keys_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """[B, S, D] -> keys [B, H, S, K], values [B, H, S, U]."""
        return self._split_heads(self.key(memory)), self._split_heads(self.value(memory))

    def attend(
        self, x: Tensor, keys: Tensor, values: Tensor, bias: Tensor, seed: Seed = None, record: Record | None = None
    ) -> Tensor:
        """Attends from `x` [B, T, D] to given keys [B, H, S, K] and values [B, H, S, U]; returns [B, T, D]."""
        # Scaled before the split: TensorFlow 2.21 on a CPU mis-optimises the other order inside a loop.
        queries = self._split_heads(self.query(x) * self.key_size**-0.5)  # [B, H, T, K]
        return self.combine(queries, keys, values, bias, seed, record)

    def combine(
        self,
        queries: Tensor,
        keys: Tensor,
        values: Tensor,
        bias: Tensor,
        seed: Seed = None,
        record: Record | None = None,
    ) -> Tensor:
        """`attend` for given queries [B, H, T, K], on which the scale 1/sqrt(d_k) already is; returns [B, T, D]."""
        weights = attention_weights(queries, keys, bias)  # [B, H, T, S]
        if record is not None:
            record(weights)
        weights = self.weight_dropout(ops.cast(weights, queries.dtype), seed=seed)
        heads = ops.transpose(ops.matmul(weights, values), (0, 2, 1, 3))  # [B, T, H, U]
        return self.output_transform(ops.reshape(heads, (-1, ops.shape(heads)[1], self.value.units)))

    def joint_kernel(self) -> Tensor:
        """The kernels of query (scaled), key and value side by side in each head: [D, H * (2 K + U)].

        Decoding computes it once a search, and then makes one matrix product for each position instead of three.
        """
        kernels = (self.query.kernel * self.key_size**-0.5, self.key.kernel, self.value.kernel)
        size = self.query.kernel.shape[0]
        heads = [ops.reshape(ops.cast(kernel, self.compute_dtype), (size, self.num_heads, -1)) for kernel in kernels]
        return ops.reshape(ops.concatenate(heads, axis=2), (size, -1))

    def project(self, x: Tensor, joint_kernel: Tensor) -> list[Tensor]:
        """[B, T, D] -> scaled queries [B, H, T, K], keys [B, H, T, K], values [B, H, T, U] of self-attention."""
        joint = ops.matmul(x, joint_kernel)
        joint = ops.reshape(joint, (-1, ops.shape(x)[1], self.num_heads, joint.shape[2] // self.num_heads))
        return ops.split(ops.transpose(joint, (0, 2, 1, 3)), (self.key_size, 2 * self.key_size), axis=3)

    def get_config(self) -> Config:
        sizes = {"hidden_size": self.output_transform.units, "num_heads": self.num_heads}
        channels = {"key_channels": self.key.units, "value_channels": self.value.units}
        return super().get_config() | sizes | channels | {"dropout": self.weight_dropout.rate}

    def _split_heads(self, x: Tensor) -> Tensor:
        """[B, T, H * K] -> [B, H, T, K]."""
        x = ops.reshape(x, (-1, ops.shape(x)[1], self.num_heads, x.shape[2] // self.num_heads))
        return ops.transpose(x, (0, 2, 1, 3))


def attention_weights(queries: Tensor, keys: Tensor, bias: Tensor) -> Tensor:
    """softmax(Q K^T + bias), equation (1), float32 [B, H, T, S]; the scale 1/sqrt(d_k) is already on the queries.

    Args:
        queries: [B, H, T, K].
        keys: [B, H, S, K].
        bias: float32, broadcast to [B, H, T, S].
    """
    scores = ops.matmul(queries, ops.swapaxes(keys, -1, -2))  # [B, H, T, S]
    return ops.softmax(ops.cast(scores, "float32") + bias, axis=-1)


def padding_mask(ids: Tensor, pad: int = PAD) -> Tensor:
    """The padding mask as a bias on scores, so that no query attends to padding: int [B, S] -> float32 [B, 1, 1, S]."""
    return ops.cast(ops.equal(ids, pad), "float32")[:, None, None, :] * MASKED


def causal_mask(length: int | Tensor) -> Tensor:
    """The causal mask as a bias on scores, float32 [1, 1, T, T]: no query attends to later positions (3.2.3)."""
    positions = ops.arange(length)
    return ops.cast(positions[None, :] > positions[:, None], "float32")[None, None] * MASKED
