"""The learning-rate schedules: the values of the hparam learning_rate_schedule.

A new schedule is a class with the methods of `InverseSquareRoot` and an entry of
SCHEDULES. Training computes `rate` for each update, and a warm start asks
`continued_from`.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

# tensor2tensor's name of its schedule
T2T_SCHEDULE = "constant*linear_warmup*rsqrt_decay*rsqrt_hidden_size"


@dataclasses.dataclass(frozen=True)
class InverseSquareRoot:
    """Formula (3) of section 5.3: constant * d_model^-0.5 * min(step^-0.5, step *
    warmup_steps^-1.5), d_model being `hidden_size`.

    The rate grows for `warmup_steps` updates, and then falls with the inverse square
    root of their number.
    """

    first_step: int  # the step of the first update; with 0 its rate is 0

    def rate(
        self,
        step: Any,
        hidden_size: int,
        warmup_steps: int,
        constant: float,
        maximum: Callable[[Any, Any], Any] = max,
    ) -> Any:
        """The rate of the update that follows `step` completed ones.

        `step` is a number, or a tensor of floats with the `maximum` of its library.
        """
        step = step + self.first_step
        # step^-0.5 is step * step^-1.5
        decay = step * maximum(step, warmup_steps) ** -1.5
        return constant * hidden_size**-0.5 * decay

    def continued_from(self, step: int, warmup_steps: int, constant: float) -> float:
        """The constant with which the highest rate of a new run is the rate of this
        run's last update, after `step` completed ones.
        """
        last = step - 1 + self.first_step
        if last <= warmup_steps:
            return constant
        return constant * (warmup_steps / last) ** 0.5


SCHEDULES = {
    "noam": InverseSquareRoot(first_step=1),
    T2T_SCHEDULE: InverseSquareRoot(first_step=0),
}
