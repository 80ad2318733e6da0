"""The cache of keys and values that decoding fills a position at a time.

In a TensorFlow graph that XLA does not compile, every functional update (`keras.ops.slice_update`, `scatter_update`)
copies the whole cache, which took a sixth of the time of beam search on CPUs. There the cache is written in place. That
is safe in a decoding loop, because each step depends on the result of the step before, so nothing reads old positions
any more. Such a graph is recognised by the unknown length of the cache; XLA and JAX need static shapes, and update in
place by themselves.
"""

# B batch, H heads, L positions, M hypotheses of a sentence, K size of a key (or value) in one head

from __future__ import annotations

from keras import ops

from t2tlite.types import Tensor


def empty_cache(batch: Tensor, heads: int, length: int | Tensor, slots: int, size: int, dtype: str) -> Tensor:
    """Zeros [B, H, L, M, K]."""
    shape = (batch, heads, length, slots, size)
    if isinstance(length, int):
        return ops.zeros(shape, dtype=dtype)
    import tensorflow as tf

    # `Empty` is stateful: TensorFlow never merges two of them into one buffer, as it does with equal constants
    cache = tf.raw_ops.Empty(shape=tf.stack(shape), dtype=tf.as_dtype(dtype), init=True)
    return tf.ensure_shape(cache, (None, heads, None, slots, size))


def write_position(cache: Tensor, position: int | Tensor, new: Tensor) -> Tensor:
    """The cache [B, H, L, M, K] with `new` [B, H, M, K] at a position; the cache given must not be used any more."""
    if cache.shape[2] is not None:
        return ops.slice_update(cache, (0, 0, position, 0, 0), new[:, :, None])
    import tensorflow as tf

    shape = tf.shape(cache)
    rows = tf.range(shape[0] * shape[1]) * shape[2] + position  # of the position in each head of each sentence
    width = cache.shape[3] * cache.shape[4]
    written = tf.raw_ops.InplaceUpdate(x=tf.reshape(cache, (-1, width)), i=rows, v=tf.reshape(new, (-1, width)))
    return tf.ensure_shape(tf.reshape(written, shape), cache.shape)
