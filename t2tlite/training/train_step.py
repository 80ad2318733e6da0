"""One optimizer step, on every replica."""

# A micro-batches, R rows, S source length, T target length

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from t2tlite.config import T2T_SCHEDULE, HParams
from t2tlite.data.input_pipeline import Part
from t2tlite.training.learning_rates import PaperSchedule
from t2tlite.training.losses import smoothed_cross_entropy


class StepResult(NamedTuple):
    """What a step tells of itself; float32 scalars, over all replicas."""

    loss: Any  # mean over the target tokens of the global batch, label smoothing included
    tokens: Any  # source and target tokens
    positions: Any  # the same, padding counted


def make_optimizer(hparams: HParams) -> keras.optimizers.Optimizer:
    """Adam with the paper's betas, epsilon and learning rate (section 5.3); float16 adds dynamic loss scaling."""
    schedule = PaperSchedule(
        hparams.hidden_size,
        hparams.learning_rate_warmup_steps,
        hparams.learning_rate_constant,
        first_step=0 if hparams.learning_rate_schedule == T2T_SCHEDULE else 1,
    )
    adam = keras.optimizers.Adam(
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
    strategy: tf.distribute.Strategy, model: Any, optimizer: keras.optimizers.Optimizer, hparams: HParams
) -> Callable[[Any], Any]:
    """A function that takes an iterator of distributed `Part`s, makes one step, and returns a StepResult.

    Each replica divides the sum of its losses by the target tokens of the global batch, and gradients are added up. So
    it does not matter how many replicas there are.
    """

    @tf.function(reduce_retracing=True, jit_compile=hparams.jit_compile)
    def gradients(inputs: Any, targets: Any, tokens: Any, seed: Any) -> tuple[Any, list[Any]]:
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

    @tf.function(reduce_retracing=True)
    def train_step(iterator: Any) -> StepResult:
        results = strategy.run(replica_step, args=(next(iterator),))
        return StepResult(*[strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None) for value in results])

    return train_step
