"""Restricted self-attention, which the end of section 4 proposes for long sentences.

It cuts a sentence into blocks of r positions. Each block attends to itself and to its
neighbours.
"""

# B batch, T query length, S key length, D hidden size
# H heads, K size of a key and U size of a value in one head
# r radius, N blocks of r positions

from typing import Any

import keras
from keras import ops

from t2tlite.layers.attention import MASKED, MultiHeadAttention, Record
from t2tlite.types import Seed, Tensor

# Added to the scores of positions beyond the radius. It is lower than MASKED, so a
# query near padding only attends uniformly to the padding, whatever the block size.
TOO_FAR = 2 * MASKED


@keras.saving.register_keras_serializable("t2tlite")
class RestrictedAttention(MultiHeadAttention):
    """Self-attention at distances below a radius, at a cost in proportion to T times
    the radius.

    `bias` is the padding mask, [B, 1, 1, S]. With `record`, the scores of all positions
    are computed.

    Args:
        radius: r.
        others: those of MultiHeadAttention.

    Raises:
        ValueError: the radius is less than 1.
    """

    def __init__(
        self,
        hidden_size: int,
        num_heads: int,
        *,
        radius: int,
        **kwargs: Any,
    ) -> None:
        super().__init__(hidden_size, num_heads, **kwargs)
        if radius < 1:
            raise ValueError(f"radius must be at least 1. Received: {radius}.")
        self.radius = radius

    def attend_to(
        self,
        x: Tensor,
        memory: Tensor,
        bias: Tensor | None,
        seed: Seed,
        record: Record | None,
    ) -> Tensor:
        if bias is None:
            bias = ops.zeros_like(memory[:, None, None, :, 0], dtype="float32")
        if record is None:
            return self._attend_in_blocks(x, memory, bias, seed)
        positions = ops.arange(ops.shape(x)[1], dtype="int32")
        bias = bias + self._distance_mask(positions, positions)
        return self.attend(x, *self.keys_values(memory), bias, seed, record)

    def _attend_in_blocks(
        self,
        x: Tensor,
        memory: Tensor,
        bias: Tensor,
        seed: Seed,
    ) -> Tensor:
        """The r queries of a block attend to the keys of their own block and of the one
        before it; unless `causal`, also of the one after it. The shapes below are those
        of three blocks.
        """
        batch, length = ops.shape(x)[:2]
        # r, or T if it is less: an int if T is an int
        size = ops.shape(x[:, : self.radius])[1]
        after = 0 if self.causal else 1
        keys = in_blocks(self.key(memory), size, 1, after)
        values = in_blocks(self.value(memory), size, 1, after)
        keys = self.split_heads(keys)  # [B * N, H, 3r, K]
        values = self.split_heads(values)  # [B * N, H, 3r, U]
        bias = bias[:, 0, 0, :, None]  # [B, S, 1]
        bias = in_blocks(bias, size, 1, after, fill=TOO_FAR)  # [B * N, 3r, 1]
        query_positions = ops.arange(size, 2 * size, dtype="int32")
        key_positions = ops.arange((2 + after) * size, dtype="int32")
        near = self._distance_mask(query_positions, key_positions)  # [r, 3r]
        bias = ops.swapaxes(bias, 1, 2)[:, None] + near  # [B * N, 1, r, 3r]
        x = self.attend(in_blocks(x, size), keys, values, bias, seed)  # [B * N, r, D]
        return ops.reshape(x, (batch, -1, self.output_transform.units))[:, :length]

    def _distance_mask(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Positions int32 [T] and [S] -> a bias on scores, float32 [T, S], TOO_FAR
        beyond the radius.
        """
        distance = keys[None, :] - queries[:, None]
        end = 1 if self.causal else self.radius
        near = ops.logical_and(distance > -self.radius, distance < end)
        return ops.cast(ops.logical_not(near), "float32") * TOO_FAR


def in_blocks(
    x: Tensor,
    size: int | Tensor,
    before: int = 0,
    after: int = 0,
    fill: float = 0.0,
) -> Tensor:
    """Cuts a sequence into N blocks of `size` positions, each joined with the given
    numbers of blocks before and after it.

    [B, T, C] -> [B * N, (before + 1 + after) * size, C]; positions outside the sequence
    are `fill`.
    """
    length = ops.shape(x)[1]
    covered = -(-length // size) * size  # N * size
    padding = (before * size, covered - length + after * size)
    x = ops.pad(x, ((0, 0), padding, (0, 0)), constant_values=fill)
    parts = []
    for i in range(before + 1 + after):
        shifted = x[:, i * size : i * size + covered]  # [B, N * size, C]
        parts.append(ops.reshape(shifted, (-1, size, x.shape[2])))
    return ops.concatenate(parts, axis=1)
