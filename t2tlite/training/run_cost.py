"""The cost of training a run, in time and in floating-point operations, the two ways of
Table 2.

A resumed run adds to the cost of its checkpoint. So no work is counted twice, and work
that was lost, by a kill or with deleted checkpoints, is not counted. `RunCost` explains
the fields.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterator

from t2tlite.files.checkpoint_paths import step_of
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import NO_COST, RunCost
from t2tlite.types import Tensor

# footnote 5: sustained, single precision
PAPER_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}


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


def cost_line(cost: RunCost, gpu: str) -> str:
    """The counted cost in a line; on a GPU that the paper names, also the paper's
    estimate for Table 2.

    The paper multiplies training time, number of devices and the sustained
    single-precision capacity of each (footnote 5), which is used here for any dtype.
    `gpu` is the name of the device, empty for a CPU.
    """
    devices = cost.device_seconds / cost.seconds if cost.seconds else 0.0
    count = "1 device" if devices == 1 else f"{devices:.3g} devices"
    line = (
        f"Training cost: {cost.flops:.2e} FLOPs counted, in {_duration(cost.seconds)}"
        f" on {count}"
    )
    for model, tflops in PAPER_TFLOPS.items():
        if re.search(rf"\b{model}[a-z]?\b", gpu):
            estimate = cost.device_seconds * tflops * 1e12
            line += (
                f"; the paper's way {estimate:.2e}, at {tflops:.3g} TFLOPS, its number"
                f" for {model}"
            )
    if cost.steps < cost.step:
        line += f", for {cost.steps:,} of {cost.step:,} steps"
    return f"{line}."


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
