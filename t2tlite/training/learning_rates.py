"""The learning rate of training as a Keras schedule, and Adam with it (section 5.3).

The schedule also runs with `KERAS_BACKEND=jax`, without TensorFlow.
"""

import dataclasses
from collections.abc import Iterable
from typing import Any, Self

import keras

from t2tlite.config import HParams
from t2tlite.schedules import SCHEDULES
from t2tlite.types import Config, Seq2SeqModel, Tensor, Variable


@keras.saving.register_keras_serializable("t2tlite")
@dataclasses.dataclass(frozen=True)
class LearningRate(keras.optimizers.schedules.LearningRateSchedule):
    """A learning-rate schedule for any Keras optimizer, computed from the number of
    completed updates: "noam" is that of section 5.3, the other values are those of the
    hparam learning_rate_schedule.
    """

    schedule: str  # its name
    hidden_size: int
    warmup_steps: int
    constant: float = 1.0

    @classmethod
    def of(cls, hparams: HParams) -> Self:
        """The schedule that trains a model of these hparams."""
        return cls(
            hparams.learning_rate_schedule,
            hparams.hidden_size,
            hparams.learning_rate_warmup_steps,
            hparams.learning_rate_constant,
        )

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of the update that follows `step` completed ones."""
        return SCHEDULES[self.schedule].rate(
            keras.ops.cast(step, "float32"),
            self.hidden_size,
            self.warmup_steps,
            self.constant,
            maximum=keras.ops.maximum,
        )

    def get_config(self) -> Config:
        return dataclasses.asdict(self)


class FusedAdam(keras.optimizers.Adam):
    """Adam with one TensorFlow operation for each weight matrix.

    It passes over the matrix once, while Keras's own update passes over weights,
    gradient and moments a dozen times in all. `make_train_step` adds up the gradients
    over the replicas, which Keras would do here.
    """

    def _all_reduce_sum_gradients(
        self,
        grads_and_vars: Iterable[tuple[Tensor, Variable]],
    ) -> list[Any]:
        return list(grads_and_vars)

    def update_step(
        self,
        gradient: Tensor,
        variable: Any,
        learning_rate: Tensor,
    ) -> None:
        """Updates a weight and its moments; the formula is Keras's."""
        import tensorflow as tf

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
