"""The cache of keys and values that decoding fills a position at a time.

In a TensorFlow graph that XLA does not compile, every functional update (`keras.ops.slice_update`, `scatter_update`)
copies the whole cache, which took a sixth of the time of beam search on CPUs. There the cache is written in place. That
is safe in a decoding loop, because each step depends on the result of the step before, so nothing reads old positions
any more. Such a graph is recognised by the unknown length of the cache; XLA and JAX need static shapes, and update in
place by themselves.
"""

# B batch, N sentences still in it, H heads, C positions that there is room for, M hypotheses of a sentence
# K size of a key (or value) in one head

from __future__ import annotations

from typing import NamedTuple

from keras import ops

from t2tlite.types import Tensor


def empty_cache(heads: int, batch: Tensor, length: int | Tensor, slots: int, size: int, dtype: str) -> Tensor:
    """Zeros [H, B, C, M, K], with C = length."""
    shape = (heads, batch, length, slots, size)
    if isinstance(length, int):
        return ops.zeros(shape, dtype=dtype)
    import tensorflow as tf

    # `Empty` is stateful: TensorFlow never merges two of them into one buffer, as it does with equal constants
    cache = tf.raw_ops.Empty(shape=tf.stack(shape), dtype=tf.as_dtype(dtype), init=True)
    return tf.ensure_shape(cache, (heads, None, None, slots, size))


def resize(cache: Tensor, sentences: Tensor, length: Tensor) -> Tensor:
    """[H, B, C, M, K] -> [H, N, length, M, K] of only some sentences, int32 [N]; positions from C on are zeros."""
    heads, _, held, slots, size = ops.shape(cache)
    taken = ops.take(cache, sentences, axis=1)
    return ops.reshape(
        ops.pad(taken, ((0, 0), (0, 0), (0, length - held), (0, 0), (0, 0))), (heads, -1, length, slots, size)
    )


class Place(NamedTuple):
    """Where a position is in the caches of all layers. It is computed once a step, not for each layer."""

    batch: int | Tensor  # B
    room: int | Tensor  # C
    position: int | Tensor  # of the C positions
    rows: Tensor  # int32 [H * B], of a cache as [H * B * C, M * K]


def place(cache: Tensor, step: int | Tensor) -> Place:
    """The place of position `step`, counted from 0: that of position step - C, if there was one."""
    heads, batch, room = ops.shape(cache)[:3]
    position = step % room
    return Place(batch, room, position, ops.arange(heads * batch, dtype="int32") * room + position)


def write(cache: Tensor, place: Place, new: Tensor) -> Tensor:
    """The cache [H, B, C, M, K] with `new` [H, B, M, K] at a place; the cache given must not be used any more."""
    heads, _, room, slots, size = cache.shape
    if room is not None:
        return ops.slice_update(cache, (0, 0, place.position, 0, 0), new[:, :, None])
    import tensorflow as tf

    rows = (-1, slots * size)
    written = tf.raw_ops.InplaceUpdate(x=tf.reshape(cache, rows), i=place.rows, v=tf.reshape(new, rows))
    shape = heads, place.batch, place.room, slots, size
    return tf.ensure_shape(tf.reshape(written, shape), cache.shape)


def merge_slots(cache: Tensor, place: Place) -> Tensor:
    """[H, B, C, M, K] -> [H, B, C * M, K], the keys (or values) that a hypothesis can attend to."""
    return ops.reshape(cache, (cache.shape[0], place.batch, -1, cache.shape[4]))
