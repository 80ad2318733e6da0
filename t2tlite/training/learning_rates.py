"""The learning rate, formula (3) of section 5.3."""

from __future__ import annotations

import dataclasses

import keras
from keras import ops

from t2tlite.types import Config, Tensor


@keras.saving.register_keras_serializable("t2tlite")
@dataclasses.dataclass(frozen=True)
class PaperSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """constant * d_model^-0.5 * min(step^-0.5, step * warmup_steps^-1.5), d_model being
    `hidden_size`.

    The rate grows for `warmup_steps` optimizer steps. The first update is step
    `first_step`; tensor2tensor's is step 0 and has rate 0.
    """

    hidden_size: int
    warmup_steps: int
    constant: float = 1.0
    first_step: int = 1

    def __call__(self, step: Tensor) -> Tensor:
        """The rate of the update that follows `step` completed ones."""
        step = ops.cast(step, "float32") + self.first_step
        rate = ops.minimum(ops.rsqrt(step), step * self.warmup_steps**-1.5)
        return self.constant * self.hidden_size**-0.5 * rate

    def get_config(self) -> Config:
        return dataclasses.asdict(self)
