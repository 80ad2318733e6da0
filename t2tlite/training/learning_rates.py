"""The learning rate of training as a Keras schedule (section 5.3), without TensorFlow,
so that it also runs with `KERAS_BACKEND=jax`.
"""

from __future__ import annotations

import dataclasses

import keras
from keras import ops

from t2tlite.config import HParams
from t2tlite.schedules import SCHEDULES
from t2tlite.types import Config, Tensor


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
    def of(cls, hparams: HParams) -> LearningRate:
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
            ops.cast(step, "float32"),
            self.hidden_size,
            self.warmup_steps,
            self.constant,
            maximum=ops.maximum,
        )

    def get_config(self) -> Config:
        return dataclasses.asdict(self)
