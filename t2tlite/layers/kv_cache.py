"""The cache of keys and values, which decoding fills one position at a time.

In a TensorFlow graph that XLA does not compile, every functional update
(`keras.ops.slice_update`, `scatter_update`) copies the whole cache. On CPUs this took a
sixth of the time of beam search. There TensorFlow's own operations write the cache in
place; the rest of the model is in keras.ops. Writing in place is safe in a decoding
loop: each step depends on the result of the step before, so nothing reads the cache of
an earlier step. The capacity of the cache is unknown in such a graph, which is how it
is recognised. XLA and JAX need static shapes, and update in place by themselves.
"""

# B batch, N sentences that remain in it, H heads, C capacity in positions
# M hypotheses of a sentence, K size of a key (or value) in one head

from typing import NamedTuple

from keras import ops

from t2tlite.types import Tensor


def empty_cache(shape: tuple[int | Tensor, ...], dtype: str) -> Tensor:
    """Zeros of the shape [H, B, C, M, K]."""
    heads, batch, capacity, slots, size = shape
    if isinstance(capacity, int):
        return ops.zeros(shape, dtype=dtype)
    import tensorflow as tf  # also runs with JAX alone

    # `Empty` is stateful: TensorFlow never merges two of them into one buffer, as it
    # does with equal constants
    cache = tf.raw_ops.Empty(shape=tf.stack(shape), dtype=tf.as_dtype(dtype), init=True)
    known_batch = batch if isinstance(batch, int) else None
    return tf.ensure_shape(cache, (heads, known_batch, None, slots, size))


def resize(cache: Tensor, sentences: Tensor, capacity: int | Tensor) -> Tensor:
    """Keeps some sentences, int32 [N], and adds positions, which are zeros: [H, B, C,
    M, K] -> [H, N, capacity, M, K].
    """
    kept = ops.take(cache, sentences, axis=1)
    added = (0, capacity - ops.shape(cache)[2])
    return ops.pad(kept, ((0, 0), (0, 0), added, (0, 0), (0, 0)))


class CacheSlot(NamedTuple):
    """The place of a position in the caches. Each step computes it once, for all
    layers.
    """

    batch: int | Tensor  # B
    capacity: int | Tensor  # C
    position: int | Tensor  # of the C positions
    rows: Tensor  # int32 [H * B], of a cache as [H * B * C, M * K]


def cache_slot(cache: Tensor, step: int | Tensor) -> CacheSlot:
    """The slot of position `step`, counted from 0. It replaces position step - C, if
    there is one.
    """
    heads, batch, capacity = ops.shape(cache)[:3]
    position = step % capacity
    rows = ops.arange(heads * batch, dtype="int32") * capacity + position
    return CacheSlot(batch, capacity, position, rows)


def write(cache: Tensor, slot: CacheSlot, new: Tensor) -> Tensor:
    """Writes `new` [H, B, M, K] into a slot of the cache [H, B, C, M, K], and returns
    the new cache. The old one must not be used again.
    """
    heads, _, capacity, hypotheses, size = cache.shape
    if capacity is not None:
        return ops.slice_update(cache, (0, 0, slot.position, 0, 0), new[:, :, None])
    import tensorflow as tf

    rows = (-1, hypotheses * size)
    written = tf.raw_ops.InplaceUpdate(
        x=tf.reshape(cache, rows), i=slot.rows, v=tf.reshape(new, rows)
    )
    shape = heads, slot.batch, slot.capacity, hypotheses, size
    return tf.ensure_shape(tf.reshape(written, shape), cache.shape)


def merge_slots(cache: Tensor, slot: CacheSlot) -> Tensor:
    """[H, B, C, M, K] -> [H, B, C * M, K]: one axis of all keys (or values) to which a
    hypothesis may attend.
    """
    return ops.reshape(cache, (cache.shape[0], slot.batch, -1, cache.shape[4]))
