"""The training loss: cross-entropy with label smoothing, section 5.4."""

# B batch, T target length, V vocabulary

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

from t2tlite.tokens import PAD


def smoothed_cross_entropy(logits: Any, targets: Any, label_smoothing: float) -> tuple[Any, Any]:
    """Sum over tokens of the distance to the smoothed target distribution, and the number of tokens.

    The target distribution gives the true token 1 - label_smoothing and every other token label_smoothing / (V - 1).
    As in tensor2tensor its entropy, a constant, is subtracted, so that a perfect model has loss 0. Smoothed
    one-hot rows are never made: only the true token's logit and the sum of all logits matter.

    Args:
        logits: float32 [B, T, V].
        targets: int32 [B, T], padded with 0; padding does not count.
        label_smoothing: epsilon_ls, in [0, 1).

    Returns:
        (sum of losses, number of tokens), both float32 scalars. Divide once, by the tokens of the whole batch.
    """
    size = logits.shape[-1]
    low = label_smoothing / (size - 1)
    weights = tf.cast(tf.not_equal(targets, PAD), tf.float32)  # [B, T]
    loss = _cross_entropy(tf.reshape(logits, (-1, size)), tf.reshape(targets, (-1,)), 1.0 - label_smoothing, low)
    if label_smoothing > 0.0:
        high = 1.0 - label_smoothing
        loss += high * math.log(high) + (size - 1) * low * math.log(low)
    return tf.reduce_sum(tf.reshape(loss, tf.shape(targets)) * weights), tf.reduce_sum(weights)


@tf.custom_gradient
def _cross_entropy(logits: Any, targets: Any, high: float, low: float) -> tuple[Any, Any]:
    """-sum_v p_v log q_v = log Z - high z_true - low (sum of the other z), for [N, V] and [N]: [N].

    The gradient q - p is written out because TensorFlow's own would pass over the logits three times as often.
    """
    plain, q_minus_one_hot = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=targets)
    true_logits = tf.gather(logits, targets, axis=1, batch_dims=1)  # [N]
    loss = plain + (1.0 - high + low) * true_logits - low * tf.reduce_sum(logits, axis=1)

    def gradient(upstream: Any) -> tuple[Any, None, None, None]:
        rows = tf.range(tf.shape(targets)[0])
        q_minus_low = upstream[:, None] * (q_minus_one_hot - low)
        at_true = tf.stack([rows, tf.cast(targets, rows.dtype)], axis=1)
        return tf.tensor_scatter_nd_add(q_minus_low, at_true, upstream * (1.0 - high + low)), None, None, None

    return loss, gradient


def correct_tokens(logits: Any, targets: Any) -> Any:
    """The number of target tokens to which the model gives the highest logit: float32 scalar."""
    hits = tf.equal(tf.argmax(logits, axis=-1, output_type=targets.dtype), targets)
    return tf.reduce_sum(tf.cast(tf.logical_and(hits, tf.not_equal(targets, PAD)), tf.float32))
