"""The cost of training a run, in time and in floating-point operations, the two ways of Table 2.

A resumed run adds to the cost of the checkpoint that it resumes from. So work that was lost because the run was killed,
or because newer checkpoints were deleted, is not counted, and none is counted twice. `RunCost` explains the fields.
"""

from __future__ import annotations

import functools
import re
import time

import numpy as np
import tensorflow as tf

from t2tlite.files.checkpoint_paths import step_of
from t2tlite.run_folder import NO_COST, RunCost, RunFolder
from t2tlite.training.strategy import gpu_name
from t2tlite.types import Tensor

PAPER_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}  # the paper's footnote 5: sustained, single precision
PROBE_SECONDS = 0.1  # of matrix products, on a device that the paper does not name


class CostMeter:
    """Measures the cost of training on this number of `devices`, from the checkpoint of `step`; 0 at the start.

    `flops_per_token` is the floating-point operations for one token, forward and backward. Without a run directory,
    on workers other than the chief, nothing is written. A damaged cost.json raises a ValueError.
    """

    def __init__(self, run: RunFolder | None, step: int, devices: int, flops_per_token: float) -> None:
        self._run = run
        self._devices = devices
        self._flops_per_token = flops_per_token
        self._records = [] if run is None else [record for record in run.costs() if record.step <= step]
        self._cost = self._records[-1] if self._records else NO_COST
        self._tokens: list[Tensor] = []  # of each step since the last record; still on the device
        self._since = time.monotonic()

    def step(self, tokens: Tensor) -> None:
        """Counts a step with this number of tokens, a float32 scalar that need not have been computed yet."""
        self._tokens.append(tokens)

    def save(self, step: int) -> None:
        """Writes the cost so far. Call it before saving a checkpoint, so that every checkpoint has a record."""
        now = time.monotonic()
        seconds, tokens = now - self._since, sum(int(tokens) for tokens in self._tokens)
        self._cost = RunCost(
            step=step,
            steps=self._cost.steps + len(self._tokens),
            seconds=self._cost.seconds + seconds,
            device_seconds=self._cost.device_seconds + seconds * self._devices,
            tokens=self._cost.tokens + tokens,
            flops=self._cost.flops + tokens * self._flops_per_token,
        )
        self._tokens, self._since = [], now
        if self._run is not None:
            kept = {step_of(path) for path in self._run.checkpoints()} - {step}
            self._records = [record for record in self._records if record.step in kept] + [self._cost]
            self._run.write_costs(self._records)

    def resume(self) -> None:
        """Leaves out the time since `save`: it was spent evaluating."""
        self._since = time.monotonic()


def cost_line(cost: RunCost, device: str) -> str:
    """The cost in a readable line: counted, and as the paper estimates it for Table 2.

    The paper multiplies training time, number of devices and the sustained single-precision capacity of each
    (footnote 5). That capacity is used for any dtype of the run. `device` is TensorFlow's name of one of them.
    """
    tflops, source = device_tflops(device)
    devices = cost.device_seconds / cost.seconds if cost.seconds else 0.0
    count = "1 device" if devices == 1 else f"{devices:.3g} devices"
    line = (
        f"Training cost: {cost.flops:.2e} FLOPs counted; the paper's way {cost.device_seconds * tflops * 1e12:.2e} "
        f"({_duration(cost.seconds)} x {count} x {tflops:.3g} TFLOPS, {source})"
    )
    return line + ("." if cost.steps == cost.step else f", for {cost.steps:,} of {cost.step:,} steps.")


@functools.cache
def device_tflops(device: str) -> tuple[float, str]:
    """Sustained float32 capacity of a device, in 10^12 operations per second, and the source of the number.

    The paper's numbers for its four GPUs. Any other device is measured with square matrix products for a fraction of a
    second: more than a Transformer reaches, less than the data sheet, and even less if the device is shared.
    """
    is_gpu = "GPU" in device
    if is_gpu:
        name = gpu_name()
        for model, tflops in PAPER_TFLOPS.items():
            if re.search(rf"\b{model}[a-z]?\b", name):
                return tflops, f"the paper's number for {model}"
    return _measured_tflops(device, size=4096 if is_gpu else 1024), "measured with float32 matrix products"


def _measured_tflops(device: str, size: int) -> float:
    tensor_float_32 = tf.config.experimental.tensor_float_32_execution_enabled()
    tf.config.experimental.enable_tensor_float_32_execution(False)  # rounds to 10 bits: not single precision
    try:
        with tf.device(device):
            matrix = tf.constant(np.ones((size, size), np.float32))
            product, count, seconds = tf.matmul(matrix, matrix), 1, 0.0
            float(product[0, 0])  # waits for the device, which is warm now
            while seconds < PROBE_SECONDS:
                started, count = time.perf_counter(), 2 * count
                for _ in range(count):
                    product = tf.matmul(matrix, matrix)
                float(product[0, 0])
                seconds = time.perf_counter() - started
    finally:
        tf.config.experimental.enable_tensor_float_32_execution(tensor_float_32)
    return 2 * size**3 * count / seconds / 1e12


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
