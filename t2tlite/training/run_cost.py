"""What training a run has cost, in time and in floating-point operations: RUN/cost.json, and Table 2's two ways.

The file says what the newest checkpoint cost, and under "earlier" what older ones did that are still there:

    step             the checkpoint's
    steps            optimizer steps counted: `step`, unless the run was begun by a version that did not count
    seconds          spent in the training loop, compilation and saving included, evaluation left out
    device_seconds   the same, times the number of devices
    tokens           source and target tokens trained on, padding left out
    flops            floating-point operations: tokens times the cost of one by formula (t2tlite/training/cost.py)

A resumed run adds to the figures of the checkpoint it goes on from. So work that was lost because the run was killed,
or because newer checkpoints were deleted, is not counted, and none is counted twice.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import time
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from t2tlite.files.atomic_file import write_text
from t2tlite.training.checkpoints import list_checkpoints, step_of

COST = "cost.json"
PAPER_TFLOPS = {"K80": 2.8, "K40": 3.7, "M40": 6.0, "P100": 9.5}  # the paper's footnote 5: sustained, single precision
PROBE_SECONDS = 0.1  # of matrix products, on a device that the paper does not name


@dataclasses.dataclass(frozen=True)
class RunCost:
    """What a checkpoint has cost; the fields are explained at the head of this file."""

    step: int = 0
    steps: int = 0
    seconds: float = 0.0
    device_seconds: float = 0.0
    tokens: int = 0
    flops: float = 0.0


class CostMeter:
    """Counts while training.

    Args:
        folder: the run's folder; None counts without writing, on workers other than the first.
        step: of the checkpoint that training goes on from; 0 at the start.
        devices: how many train.
        flops_per_token: floating-point operations for one token, forward and backward.

    Raises:
        ValueError: the folder's cost.json is damaged.
    """

    def __init__(self, folder: Path | None, step: int, devices: int, flops_per_token: float) -> None:
        self._folder = folder
        self._devices = devices
        self._flops_per_token = flops_per_token
        self._records = [] if folder is None else [record for record in _read(folder) if record.step <= step]
        self._cost = self._records[-1] if self._records else RunCost()
        self._tokens: list[Any] = []  # of each step since the last record; still on the device
        self._since = time.monotonic()

    def step(self, tokens: Any) -> None:
        """Notes a step on so many tokens, a float32 scalar that need not have been computed yet."""
        self._tokens.append(tokens)

    def save(self, step: int) -> None:
        """Writes what training has cost so far. Comes before the checkpoint, so that none is without its record."""
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
        if self._folder is not None:
            kept = {step_of(path) for path in list_checkpoints(self._folder)} - {step}
            self._records = [record for record in self._records if record.step in kept] + [self._cost]
            *earlier, newest = map(dataclasses.asdict, self._records)
            write_text(self._folder / COST, json.dumps({**newest, "earlier": earlier}, indent=2) + "\n")

    def resume(self) -> None:
        """Leaves out the time since `save`: it was spent evaluating."""
        self._since = time.monotonic()


def read_cost(folder: Path) -> RunCost | None:
    """What the run in a folder has cost so far; None where nothing was counted.

    Raises:
        ValueError: its cost.json is damaged.
    """
    records = _read(folder)
    return records[-1] if records else None


def _read(folder: Path) -> list[RunCost]:
    """The records of a run, oldest first."""
    path = folder / COST
    if not path.is_file():
        return []
    try:
        newest = json.loads(path.read_text(encoding="utf-8"))
        earlier = newest.pop("earlier")
        return [RunCost(**record) for record in (*earlier, newest)]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ValueError(
            f"{path} must hold what training has cost so far. Received: {error!r}. Delete it to count from here on."
        ) from error


def cost_line(cost: RunCost, device: str) -> str:
    """The cost in a line for people: counted, and as the paper estimates it for Table 2.

    The paper multiplies training time, number of devices and the sustained single-precision capacity of each
    (footnote 5). That capacity is taken whatever the run's own arithmetic is.

    Args:
        cost: of the run.
        device: TensorFlow's name of one of the devices that trained.
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
    """Sustained float32 capacity of a device, in 10^12 operations a second, and where the figure is from.

    The paper's figure for its four GPUs. For any other device, square matrix products for a fraction of a second:
    more than a Transformer reaches, less than a data sheet says, and less again where the device is shared.
    """
    is_gpu = "GPU" in device
    if is_gpu:
        details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
        name = details.get("device_name", "")
        for model, tflops in PAPER_TFLOPS.items():
            if re.search(rf"\b{model}[a-z]?\b", name):
                return tflops, f"the paper's figure for {model}"
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
