"""The training loss: cross-entropy with label smoothing, section 5.4."""

# B batch, T target length, V vocabulary

from __future__ import annotations

import math
from typing import Any

import tensorflow as tf

PAD = 0


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
    weights = tf.cast(tf.not_equal(targets, PAD), tf.float32)  # [B, T]
    loss = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=targets, logits=logits)  # [B, T]
    if label_smoothing > 0.0:
        size = logits.shape[-1]
        high, low = 1.0 - label_smoothing, label_smoothing / (size - 1)
        # -sum_v p_v log q_v = log Z - high * z_true - low * (sum of the others)
        log_z = tf.reduce_logsumexp(logits, axis=-1)  # [B, T]
        loss = (high - low) * loss + low * (size * log_z - tf.reduce_sum(logits, axis=-1))
        loss += high * math.log(high) + (size - 1) * low * math.log(low)
    return tf.reduce_sum(loss * weights), tf.reduce_sum(weights)


def correct_tokens(logits: Any, targets: Any) -> Any:
    """The number of target tokens to which the model gives the highest logit: float32 scalar."""
    hits = tf.equal(tf.argmax(logits, axis=-1, output_type=targets.dtype), targets)
    return tf.reduce_sum(tf.cast(tf.logical_and(hits, tf.not_equal(targets, PAD)), tf.float32))
