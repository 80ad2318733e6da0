"""From a batch to the loss, the gradients and an update of the weights, on every
replica.
"""

# A micro-batches, R rows, S source length, T target length, B batch, V vocabulary

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from t2tlite.data.input_pipeline import Part
from t2tlite.training.learning_rates import LearningRate
from t2tlite.types import PAD, Seq2SeqModel, Tensor, Variable

Gradients = Callable[[Part], tuple[Tensor, list[Tensor]]]


class StepResult(NamedTuple):
    """What a step reports; float32 scalars, over all replicas."""

    # mean over the target tokens of the global batch, label smoothing included
    loss: Tensor
    tokens: Tensor  # source and target tokens
    positions: Tensor  # the same, padding counted
    stops: Tensor = 0.0  # replicas that were asked to stop
    # of the gradient of all weights together, before Adam makes an update of it
    gradient_norm: Tensor = 0.0


class FusedAdam(keras.optimizers.Adam):
    """Adam with one TensorFlow operation for each weight matrix, which passes over it
    once.

    Keras's own update passes over weights, gradient and moments a dozen times in all.
    Gradients must have been added up over the replicas (`make_train_step`), which Keras
    would do here.
    """

    def _all_reduce_sum_gradients(
        self, grads_and_vars: Iterable[tuple[Tensor, tf.Variable]]
    ) -> list[Any]:
        return list(grads_and_vars)

    def update_step(
        self, gradient: Tensor, variable: tf.Variable, learning_rate: Tensor
    ) -> None:
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


def make_optimizer(model: Seq2SeqModel) -> keras.optimizers.Optimizer:
    """Adam with the paper's betas, epsilon and learning rate (5.3) for the weights of a
    built model.

    With float16 it adds dynamic loss scaling.
    """
    hparams = model.hparams
    optimizer: keras.optimizers.Optimizer = FusedAdam(
        LearningRate.of(hparams),
        beta_1=hparams.optimizer_adam_beta1,
        beta_2=hparams.optimizer_adam_beta2,
        epsilon=hparams.optimizer_adam_epsilon,
        name="adam",
    )
    if hparams.dtype_policy == "mixed_float16":
        optimizer = keras.optimizers.LossScaleOptimizer(optimizer, name="loss_scale")
    optimizer.build(model.trainable_variables)
    return optimizer


def make_gradients(
    model: Seq2SeqModel, optimizer: keras.optimizers.Optimizer
) -> Gradients:
    """A function of a replica's part of a batch: its share of the loss and of each
    weight's gradient.

    The sum of the losses is divided by the target tokens of the global batch, so the
    shares of any number of replicas add up to the loss and the gradients of the batch.
    """
    hparams = model.hparams

    @tf.function(
        reduce_retracing=True, autograph=False, jit_compile=hparams.jit_compile
    )
    def gradients(
        inputs: Tensor, targets: Tensor, tokens: Tensor, seed: Tensor
    ) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(inputs, targets, seed=seed)
            total, _ = smoothed_cross_entropy(logits, targets, hparams.label_smoothing)
            loss = total / tokens
            scaled = optimizer.scale_loss(loss)
        dense = [
            tf.convert_to_tensor(g)
            for g in tape.gradient(scaled, model.trainable_variables)
        ]
        return loss, dense

    def of_part(part: Part) -> tuple[Tensor, list[Tensor]]:
        inputs, targets, seeds = (
            tf.convert_to_tensor(x) for x in (part.inputs, part.targets, part.seeds)
        )
        if hparams.accumulate_steps == 1:
            return gradients(inputs[0], targets[0], part.tokens, seeds[0])

        def add(
            i: Tensor, loss: Tensor, sums: list[Tensor]
        ) -> tuple[Tensor, Tensor, list[Tensor]]:
            more_loss, more = gradients(inputs[i], targets[i], part.tokens, seeds[i])
            return (
                i + 1,
                loss + more_loss,
                [a + b for a, b in zip(sums, more, strict=True)],
            )

        # A loop, one micro-batch after the other: side by side, they would need more
        # memory the more there are.
        start = (
            0,
            0.0,
            [tf.zeros(variable.shape) for variable in model.trainable_variables],
        )
        _, loss, sums = tf.while_loop(
            lambda i, *_: i < hparams.accumulate_steps,
            add,
            start,
            parallel_iterations=1,
        )
        return loss, sums

    return of_part


def make_train_step(
    strategy: tf.distribute.Strategy,
    model: Seq2SeqModel,
    optimizer: keras.optimizers.Optimizer,
    gradients: Gradients | None = None,
) -> Callable[..., StepResult]:
    """A function that takes an iterator of distributed `Part`s, makes a step, and
    returns a StepResult.

    A second argument, a float32 scalar, is 1 on workers that were asked to stop; by
    default 0. `gradients` is what `make_gradients` returned for the same model, where
    that is used elsewhere, too.
    """
    gradients, hparams = gradients or make_gradients(model, optimizer), model.hparams

    def replica_step(part: Part, stop: Tensor) -> Tensor:
        loss, sums = gradients(part)
        # Also an overflow on one replica is then one on all, which skip the step
        # together (float16).
        sums = tf.distribute.get_replica_context().all_reduce(
            tf.distribute.ReduceOp.SUM, sums
        )
        scale = getattr(optimizer, "dynamic_scale", 1.0)
        if hparams.weight_decay:
            sums = _add_weight_decay(
                sums, model.trainable_variables, hparams.weight_decay * scale
            )
        norm = tf.linalg.global_norm(sums) / scale
        if hparams.clip_grad_norm:
            factor = tf.minimum(1.0, hparams.clip_grad_norm / norm)
            sums = [gradient * factor for gradient in sums]
        optimizer.apply(sums, model.trainable_variables)
        sources, targets = part.inputs, part.targets
        tokens = tf.math.count_nonzero(sources) + tf.math.count_nonzero(targets)
        positions = tf.size(sources) + tf.size(targets)
        result = StepResult(
            loss=loss,
            tokens=tf.cast(tokens, tf.float32),
            positions=tf.cast(positions, tf.float32),
            stops=stop,
            # equal on all replicas, and summed below
            gradient_norm=norm / strategy.num_replicas_in_sync,
        )
        return tf.stack(result)  # added up over the replicas at once

    @tf.function(reduce_retracing=True, autograph=False)
    def train_step(iterator: Iterator[Part], stop: Tensor) -> StepResult:
        results = strategy.run(replica_step, args=(next(iterator), stop))
        return StepResult(
            *tf.unstack(strategy.reduce(tf.distribute.ReduceOp.SUM, results, axis=None))
        )

    no_stop = tf.constant(0.0)
    return lambda iterator, stop=no_stop: train_step(iterator, stop)


def _add_weight_decay(
    gradients: list[Tensor], weights: Sequence[Variable], decay: Tensor
) -> list[Tensor]:
    """The gradients of the loss plus decay / 2 x the sum of squares of all weights but
    biases, as in tensor2tensor.

    Its biases are those of dense layers and the shift of layer normalisation, which
    Keras calls beta.
    """
    decayed = []
    for gradient, weight in zip(gradients, weights, strict=True):
        if not weight.path.endswith(("/bias", "/beta")):
            gradient = gradient + decay * tf.cast(weight, gradient.dtype)
        decayed.append(gradient)
    return decayed


def make_trial(
    strategy: tf.distribute.Strategy, gradients: Gradients
) -> Callable[[Iterator[Part]], float]:
    """A function that takes an iterator as a training step does, computes the gradients
    and discards them.

    It returns the loss of this process's first replica; workers need not call it
    together. It needs a step's memory, changes nothing, and shares what it compiles of
    `gradients` with the training step.
    """

    def replica_trial(part: Part) -> Tensor:
        loss, sums = gradients(part)
        # keeps all gradients alive at once, as in a real step
        with tf.control_dependencies(sums):
            used = tf.add_n([tf.reduce_sum(gradient) for gradient in sums])
        with tf.control_dependencies([used]):
            return tf.identity(loss)

    @tf.function(reduce_retracing=True, autograph=False)
    def trial(iterator: Iterator[Part]) -> Tensor:
        return strategy.run(replica_trial, args=(next(iterator),))

    def loss_of(iterator: Iterator[Part]) -> float:
        # Without its concrete function, TensorFlow would warn of retracing in a process
        # that trains often; that one is traced even where functions run eagerly, which
        # takes a second.
        run = (
            trial
            if tf.config.functions_run_eagerly()
            else trial.get_concrete_function(iterator)
        )
        losses = run(iterator)
        return float(strategy.experimental_local_results(losses)[0])

    return loss_of


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, label_smoothing: float
) -> tuple[Tensor, Tensor]:
    """Sum over tokens of the distance to the smoothed target distribution, and the
    number of tokens.

    The target distribution gives the true token 1 - label_smoothing (epsilon_ls, in [0,
    1)), every other one label_smoothing / (V - 1). As in tensor2tensor its entropy, a
    constant, is subtracted, so that a perfect model has loss 0. Smoothed one-hot rows
    are never made: only the true token's logit and the sum of all matter.

    `logits` are float32 [B, T, V], `targets` int32 [B, T], padded with PAD, which does
    not count. Both results are float32 scalars: divide once, by the tokens of the whole
    batch.
    """
    size = logits.shape[-1]
    low = label_smoothing / (size - 1)
    weights = tf.cast(tf.not_equal(targets, PAD), tf.float32)  # [B, T]
    loss = _cross_entropy(
        tf.reshape(logits, (-1, size)),
        tf.reshape(targets, (-1,)),
        1.0 - label_smoothing,
        low,
    )
    if label_smoothing > 0.0:
        high = 1.0 - label_smoothing
        loss += high * math.log(high) + (size - 1) * low * math.log(low)
    return tf.reduce_sum(tf.reshape(loss, tf.shape(targets)) * weights), tf.reduce_sum(
        weights
    )


@tf.custom_gradient
def _cross_entropy(
    logits: Tensor, targets: Tensor, high: float, low: float
) -> tuple[Tensor, Tensor]:
    """-sum_v p_v log q_v = log Z - high z_true - low (sum of the other z), for [N, V]
    and [N]: [N].

    log q = z - log Z for the largest z of a row gives log Z without a second pass of
    exponentials. With it, and with the gradient q - p written out, a vocabulary of
    8,000 takes two thirds of the time of TensorFlow's cross-entropy.
    """
    q = tf.nn.softmax(logits)
    # oneDNN's rows sum to 1 only within 1e-5
    largest_q = tf.reduce_max(q, axis=1) / tf.reduce_sum(q, axis=1)
    log_z = tf.reduce_max(logits, axis=1) - tf.math.log(largest_q)  # [N]
    true_logits = tf.gather(logits, targets, axis=1, batch_dims=1)  # [N]
    loss = log_z - (high - low) * true_logits - low * tf.reduce_sum(logits, axis=1)

    def gradient(upstream: Tensor) -> tuple[Tensor, None, None, None]:
        rows = tf.range(tf.shape(targets)[0])
        at_true = tf.stack([rows, tf.cast(targets, rows.dtype)], axis=1)
        q_minus_p = tf.tensor_scatter_nd_sub(
            upstream[:, None] * (q - low), at_true, upstream * (high - low)
        )
        return q_minus_p, None, None, None

    return loss, gradient


def correct_tokens(logits: Tensor, targets: Tensor) -> Tensor:
    """The number of target tokens to which the model gives the highest logit: float32
    scalar.
    """
    hits = tf.equal(tf.argmax(logits, axis=-1, output_type=targets.dtype), targets)
    return tf.reduce_sum(
        tf.cast(tf.logical_and(hits, tf.not_equal(targets, PAD)), tf.float32)
    )
