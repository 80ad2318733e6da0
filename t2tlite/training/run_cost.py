"""The cost of training a run, in time and in floating-point operations, as in Table 2.

A resumed run adds to the cost of its checkpoint. So no work is counted twice, and work
that was lost, by a kill or with deleted checkpoints, is not counted. `RunCost` explains
the fields.
"""

import contextlib
import time
from collections.abc import Iterator

from t2tlite.files.checkpoint_paths import step_of
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import NO_COST, RunCost
from t2tlite.types import Tensor


class CostMeter:
    """Measures the cost of training on so many `devices` from the checkpoint of `step`
    on; 0 at the start.

    `flops_per_token` is the floating-point operations for one token, forward and
    backward. A damaged cost.json raises a ValueError.
    """

    def __init__(
        self, run: RunFolder, step: int, devices: int, flops_per_token: float
    ) -> None:
        self._run = run
        self._devices = devices
        self._flops_per_token = flops_per_token
        self._records = [r for r in run.costs() if r.step <= step]
        self._cost = self._records[-1] if self._records else NO_COST
        # of each step since the last record; still on the device
        self._tokens: list[Tensor] = []
        self._since = time.monotonic()

    def step(self, tokens: Tensor) -> None:
        """Counts a step with this number of tokens, a float32 scalar that may still be
        computed.
        """
        self._tokens.append(tokens)

    def save(self, step: int) -> None:
        """Writes the cost so far. Call it before a checkpoint is saved, so that each
        checkpoint has a record.
        """
        now = time.monotonic()
        seconds = now - self._since
        tokens = sum(int(tokens) for tokens in self._tokens)
        self._cost = RunCost(
            step=step,
            steps=self._cost.steps + len(self._tokens),
            seconds=self._cost.seconds + seconds,
            device_seconds=self._cost.device_seconds + seconds * self._devices,
            tokens=self._cost.tokens + tokens,
            flops=self._cost.flops + tokens * self._flops_per_token,
        )
        self._tokens = []
        self._since = now
        kept = {step_of(path) for path in self._run.checkpoints()} - {step}
        self._records = [r for r in self._records if r.step in kept]
        self._records.append(self._cost)
        self._run.write_costs(self._records)

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Leaves out the time of the block, which evaluates."""
        paused_at = time.monotonic()
        yield
        self._since += time.monotonic() - paused_at


def cost_line(cost: RunCost) -> str:
    """The counted cost in a line."""
    devices = cost.device_seconds / cost.seconds if cost.seconds else 0.0
    count = "1 device" if devices == 1 else f"{devices:.3g} devices"
    return (
        f"Training cost: {cost.flops:.2e} FLOPs counted, in {_duration(cost.seconds)}"
        f" on {count}."
    )


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
