"""Adam with the learning rate of section 5.3."""

from collections.abc import Iterable
from typing import Any

import keras
import tensorflow as tf

from t2tlite.training.learning_rates import LearningRate
from t2tlite.types import Seq2SeqModel, Tensor


class FusedAdam(keras.optimizers.Adam):
    """Adam with one TensorFlow operation for each weight matrix.

    It passes over the matrix once, while Keras's own update passes over weights,
    gradient and moments a dozen times in all. `make_train_step` adds up the gradients
    over the replicas, which Keras would do here.
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
