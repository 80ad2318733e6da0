"""From a batch to the loss, the gradients and an update of the weights, on every replica."""

# A micro-batches, R rows, S source length, T target length, B batch, V vocabulary

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

import keras
import tensorflow as tf

from t2tlite.config import T2T_SCHEDULE, HParams
from t2tlite.data.input_pipeline import Part
from t2tlite.tokens import PAD
from t2tlite.training.learning_rates import PaperSchedule
from t2tlite.types import Seq2SeqModel, Tensor


class StepResult(NamedTuple):
    """What a step reports; float32 scalars, over all replicas."""

    loss: Tensor  # mean over the target tokens of the global batch, label smoothing included
    tokens: Tensor  # source and target tokens
    positions: Tensor  # the same, padding counted


class FusedAdam(keras.optimizers.Adam):
    """Adam with one TensorFlow operation for each weight matrix, which passes over it once.

    Keras's own update passes over weights, gradient and moments a dozen times in all.
    """

    def update_step(self, gradient: Tensor, variable: tf.Variable, learning_rate: Tensor) -> None:
        """Updates a weight and its moments; the formula is Keras's."""
        at = self._get_variable_index(variable)
        step = tf.cast(self.iterations.value + 1, variable.dtype)
        tf.raw_ops.ResourceApplyAdam(
            var=variable.handle,
            m=self._momentums[at].value.handle,
            v=self._velocities[at].value.handle,
            beta1_power=self.beta_1**step,
            beta2_power=self.beta_2**step,
            lr=tf.cast(learning_rate, variable.dtype),
            beta1=self.beta_1,
            beta2=self.beta_2,
            epsilon=self.epsilon,
            grad=tf.cast(gradient, variable.dtype),
        )


def make_optimizer(hparams: HParams) -> keras.optimizers.Optimizer:
    """Adam with the paper's betas, epsilon and learning rate (section 5.3); float16 adds dynamic loss scaling."""
    schedule = PaperSchedule(
        hparams.hidden_size,
        hparams.learning_rate_warmup_steps,
        hparams.learning_rate_constant,
        first_step=0 if hparams.learning_rate_schedule == T2T_SCHEDULE else 1,
    )
    adam = FusedAdam(
        schedule,
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        name="adam",
    )
    if hparams.dtype_policy == "mixed_float16":
        return keras.optimizers.LossScaleOptimizer(adam, name="loss_scale")
    return adam


def make_train_step(
    strategy: tf.distribute.Strategy, model: Seq2SeqModel, optimizer: keras.optimizers.Optimizer, hparams: HParams
) -> Callable[[Iterator[Part]], StepResult]:
    """A function that takes an iterator of distributed `Part`s, makes one step, and returns a StepResult.

    Each replica divides the sum of its losses by the target tokens of the global batch, and gradients are added up. So
    it does not matter how many replicas there are.
    """

    @tf.function(reduce_retracing=True, autograph=False, jit_compile=hparams.jit_compile)
    def gradients(inputs: Tensor, targets: Tensor, tokens: Tensor, seed: Tensor) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(inputs, targets, seed=seed)
            total, _ = smoothed_cross_entropy(logits, targets, hparams.label_smoothing)
            loss = total / tokens
            scaled = optimizer.scale_loss(loss)
        dense = [tf.convert_to_tensor(g) for g in tape.gradient(scaled, model.trainable_variables)]
        return loss, dense

    def replica_step(part: Part) -> StepResult:
        loss, sums = gradients(part.inputs[0], part.targets[0], part.tokens, part.seeds[0])
        for i in range(1, hparams.accumulate_steps):
            more_loss, more = gradients(part.inputs[i], part.targets[i], part.tokens, part.seeds[i])
            loss, sums = loss + more_loss, [a + b for a, b in zip(sums, more, strict=True)]
        if hparams.dtype_policy == "mixed_float16":  # an overflow on one replica must skip the step on all
            spoilt = tf.add_n([tf.reduce_sum(0.0 * gradient) for gradient in sums])  # 0, or not a number
            spoilt = tf.distribute.get_replica_context().all_reduce(tf.distribute.ReduceOp.SUM, spoilt)
            sums = [gradient + spoilt for gradient in sums]
        optimizer.apply(sums, model.trainable_variables)
        ids = (part.inputs, part.targets)
        return StepResult(
            loss=loss,
            tokens=tf.cast(sum(tf.math.count_nonzero(x) for x in ids), tf.float32),
            positions=tf.cast(sum(tf.size(x) for x in ids), tf.float32),
        )

    @tf.function(reduce_retracing=True, autograph=False)
    def train_step(iterator: Iterator[Part]) -> StepResult:
        results = strategy.run(replica_step, args=(next(iterator),))
        return StepResult(*[strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None) for value in results])

    return train_step


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, label_smoothing: float) -> tuple[Tensor, Tensor]:
    """Sum over tokens of the distance to the smoothed target distribution, and the number of tokens.

    The target distribution gives the true token 1 - label_smoothing and every other token label_smoothing / (V - 1).
    As in tensor2tensor its entropy, a constant, is subtracted, so that a perfect model has loss 0. Smoothed
    one-hot rows are never made: only the true token's logit and the sum of all logits matter.

    `logits` are float32 [B, T, V], `targets` int32 [B, T], padded with 0 (padding does not count), `label_smoothing` is
    epsilon_ls, in [0, 1). Both results are float32 scalars. Divide once, by the tokens of the whole batch.
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
def _cross_entropy(logits: Tensor, targets: Tensor, high: float, low: float) -> tuple[Tensor, Tensor]:
    """-sum_v p_v log q_v = log Z - high z_true - low (sum of the other z), for [N, V] and [N]: [N].

    The gradient q - p is written out because TensorFlow's own would pass over the logits three times as often.
    """
    plain, q_minus_one_hot = tf.raw_ops.SparseSoftmaxCrossEntropyWithLogits(features=logits, labels=targets)
    true_logits = tf.gather(logits, targets, axis=1, batch_dims=1)  # [N]
    loss = plain + (1.0 - high + low) * true_logits - low * tf.reduce_sum(logits, axis=1)

    def gradient(upstream: Tensor) -> tuple[Tensor, None, None, None]:
        rows = tf.range(tf.shape(targets)[0])
        q_minus_low = upstream[:, None] * (q_minus_one_hot - low)
        at_true = tf.stack([rows, tf.cast(targets, rows.dtype)], axis=1)
        return tf.tensor_scatter_nd_add(q_minus_low, at_true, upstream * (1.0 - high + low)), None, None, None

    return loss, gradient


def correct_tokens(logits: Tensor, targets: Tensor) -> Tensor:
    """The number of target tokens to which the model gives the highest logit: float32 scalar."""
    hits = tf.equal(tf.argmax(logits, axis=-1, output_type=targets.dtype), targets)
    return tf.reduce_sum(tf.cast(tf.logical_and(hits, tf.not_equal(targets, PAD)), tf.float32))
