"""From a batch to the loss, the gradients and an update of the weights, on every
replica.
"""

# A micro-batches, R rows, S source length, T target length, B batch, V vocabulary

import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import keras
import tensorflow as tf

from t2tlite.data.input_pipeline import Part, distribute_shape
from t2tlite.types import PAD, Seq2SeqModel, Tensor, Variable

# greater than the number of tensors and functions that a process makes before it trains
FIRST_NUMBER = 100_000

Gradients = Callable[[Part], tuple[Tensor, list[Tensor]]]


class StepResult(NamedTuple):
    """What a step reports; float32 scalars, over all replicas."""

    # mean over the target tokens of the global batch, label smoothing included
    loss: Tensor
    tokens: Tensor  # source and target tokens
    stops: Tensor = 0.0  # replicas that were asked to stop
    # of the gradient of all weights together, before Adam makes an update of it
    gradient_norm: Tensor = 0.0


def make_gradients(
    model: Seq2SeqModel,
    optimizer: keras.optimizers.Optimizer,
) -> Gradients:
    """A function that computes the share of a replica's part of a batch in the loss and
    in each weight's gradient.

    The sum of the losses is divided by the target tokens of the global batch. So the
    shares of any number of replicas add up to the loss and the gradients of the batch.
    """
    hparams = model.hparams

    @tf.function(reduce_retracing=True, autograph=False, jit_compile=hparams.uses_xla)
    def gradients(
        inputs: Tensor,
        targets: Tensor,
        tokens: Tensor,
        seed: Tensor,
    ) -> tuple[Tensor, list[Tensor]]:
        with tf.GradientTape() as tape:
            logits = model(inputs, targets, seed=seed)
            total, _ = smoothed_cross_entropy(logits, targets, hparams.label_smoothing)
            loss = total / tokens
            scaled = optimizer.scale_loss(loss)
        values = tape.gradient(scaled, model.trainable_variables)
        return loss, [tf.convert_to_tensor(value) for value in values]  # dense

    def of_part(part: Part) -> tuple[Tensor, list[Tensor]]:
        inputs = tf.convert_to_tensor(part.inputs)
        targets = tf.convert_to_tensor(part.targets)
        seeds = tf.convert_to_tensor(part.seeds)
        if hparams.accumulate_steps == 1:
            return gradients(inputs[0], targets[0], part.tokens, seeds[0])

        def add(
            i: Tensor,
            loss: Tensor,
            sums: list[Tensor],
        ) -> tuple[Tensor, Tensor, list[Tensor]]:
            more_loss, more = gradients(inputs[i], targets[i], part.tokens, seeds[i])
            sums = [a + b for a, b in zip(sums, more, strict=True)]
            return i + 1, loss + more_loss, sums

        # One micro-batch after the other: in parallel, each would need memory.
        zeros = [tf.zeros(variable.shape) for variable in model.trainable_variables]
        _, loss, sums = tf.while_loop(
            lambda i, *_: i < hparams.accumulate_steps,
            add,
            (0, 0.0, zeros),
            parallel_iterations=1,
        )
        return loss, sums

    return of_part


def name_functions_alike() -> None:
    """Gives functions that are traced from now on the same names in each process that
    resumes a run: TensorFlow finds a program that XLA compiled by the function's name.

    A name ends with a number, that of the tensors and functions made before.
    """
    function = tf.function(lambda: 0.0, autograph=False).get_concrete_function()
    number = int(function.name.rpartition(b"_")[2])
    for _ in range(-number % FIRST_NUMBER):
        tf.constant(0.0)


def make_train_step(
    strategy: tf.distribute.Strategy,
    model: Seq2SeqModel,
    optimizer: keras.optimizers.Optimizer,
    gradients: Gradients | None = None,
) -> Callable[..., StepResult]:
    """A function that takes an iterator of distributed `Part`s, makes a step, and
    returns a StepResult.

    A second argument, a float32 scalar, is 1 on workers that were asked to stop; by
    default 0. `gradients` is what `make_gradients` returned for the same model, if
    others use it too.
    """
    gradients = gradients or make_gradients(model, optimizer)
    hparams = model.hparams

    def replica_step(part: Part, stop: Tensor) -> Tensor:
        loss, sums = gradients(part)
        # An overflow on one replica is then one on all, which skip the step together
        # (float16).
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
        tokens = tf.math.count_nonzero(part.inputs)
        tokens += tf.math.count_nonzero(part.targets)
        result = StepResult(
            loss=loss,
            tokens=tf.cast(tokens, tf.float32),
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
    gradients: list[Tensor],
    weights: Sequence[Variable],
    decay: Tensor,
) -> list[Tensor]:
    """The gradients of the loss plus decay / 2 x the sum of squares of all weights
    except biases, as in tensor2tensor.

    Biases are those of dense layers and the shift of layer normalisation, which Keras
    calls beta.
    """
    decayed = []
    for gradient, weight in zip(gradients, weights, strict=True):
        if not weight.path.endswith(("/bias", "/beta")):
            gradient = gradient + decay * tf.cast(weight, gradient.dtype)
        decayed.append(gradient)
    return decayed


def make_trial(
    strategy: tf.distribute.Strategy,
    gradients: Gradients,
    shape: tuple[int, int, int],
    micro_batches: int,
) -> Callable[[], float]:
    """A function that computes the gradients of a batch of this shape (R, S, T) in each
    of the micro-batches, discards them, and returns the loss.

    The loss is that of this process's first replica; workers need not call it together.
    It needs the memory of a training step, changes nothing, and shares what it compiles
    of `gradients` with the training step.
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

    def loss() -> float:
        iterator = iter(distribute_shape(strategy, shape, micro_batches))
        run = trial
        # Without its concrete function, TensorFlow would warn of retracing in a process
        # that trains often. If functions run eagerly, tracing one would take a second.
        if not tf.config.functions_run_eagerly():
            run = trial.get_concrete_function(iterator)
        return float(strategy.experimental_local_results(run(iterator))[0])

    return loss


def smoothed_cross_entropy(
    logits: Tensor,
    targets: Tensor,
    label_smoothing: float,
) -> tuple[Tensor, Tensor]:
    """Sums over tokens the distance to the smoothed target distribution, and counts the
    tokens.

    The target distribution gives the true token 1 - label_smoothing (epsilon_ls, in [0,
    1)), every other one label_smoothing / (V - 1). As in tensor2tensor, its entropy, a
    constant, is subtracted, so that a perfect model has loss 0. No smoothed one-hot
    rows are made: only the true token's logit and the sum of all logits matter.

    `logits` are float32 [B, T, V], `targets` int32 [B, T]; PAD does not count. Both
    results are float32 scalars: divide once, by the tokens of the whole batch.
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
    loss = tf.reshape(loss, tf.shape(targets)) * weights
    return tf.reduce_sum(loss), tf.reduce_sum(weights)


@tf.custom_gradient
def _cross_entropy(
    logits: Tensor,
    targets: Tensor,
    high: float,
    low: float,
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
    likeliest = tf.argmax(logits, axis=-1, output_type=targets.dtype)
    hits = tf.logical_and(likeliest == targets, targets != PAD)
    return tf.reduce_sum(tf.cast(hits, tf.float32))
