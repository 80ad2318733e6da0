"""What a run shows in training, a bar and TensorBoard events. It stops training if a
loss is not finite.
"""

import contextlib
import dataclasses
import math
import sys
import time
from collections.abc import Iterator, Mapping
from typing import Self

import keras
import tensorflow as tf
from tqdm import tqdm

from t2tlite.console import say
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import diverged, writing
from t2tlite.training.train_step import StepResult

EVENTS = "TensorBoard events"  # in an error
REPORT_SECONDS = 2.0  # between readings of the losses from the devices
LINE_SECONDS = 30.0  # between lines that show them if stderr is not a terminal


@dataclasses.dataclass
class Progress:
    """The progress bar of a run, from the `start` steps already done to `stop` in all,
    and its TensorBoard events.

    Losses stay on the device until they are shown, every REPORT_SECONDS, so that a GPU
    never waits for Python.
    """

    run: RunFolder
    optimizer: keras.optimizers.Optimizer
    start: dataclasses.InitVar[int]
    stop: dataclasses.InitVar[int]

    def __post_init__(self, start: int, stop: int) -> None:
        self._events = tf.summary.create_noop_writer()
        if self.run.writes:
            with writing(EVENTS, self.run):
                self._events = tf.summary.create_file_writer(str(self.run))
        self._bar = tqdm(
            total=stop,
            initial=start,
            unit="step",
            dynamic_ncols=True,
            mininterval=REPORT_SECONDS / 20,
            maxinterval=REPORT_SECONDS / 20,
            disable=not sys.stderr.isatty(),
        )
        self._line_at = time.monotonic()  # when the last line was shown
        self._results: list[tuple[int, StepResult]] = []  # by step, not yet read back
        self._since = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        with self._recording():
            self._events.close()

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        with writing(EVENTS, self.run), self._events.as_default():
            yield

    def step(self, step: int, result: StepResult) -> None:
        """Records the result of the update that completed this step."""
        self._results.append((step, result))
        self._bar.update(1)
        if time.monotonic() - self._since > REPORT_SECONDS:
            self.flush()

    def flush(self) -> None:
        """Reads back, shows and records the results since the last call.

        A loss that is infinite or not a number raises a FloatingPointError.
        """
        if not self._results:
            return
        losses = []
        tokens = 0.0
        for step, result in self._results:
            loss = float(result.loss)
            if not math.isfinite(loss):
                raise diverged(f"the loss is {loss}", step)
            losses.append((step, loss, float(result.gradient_norm)))
            tokens += float(result.tokens)
        self._results = []
        speed = tokens / max(time.monotonic() - self._since, 1e-9)
        rate = float(self.optimizer.learning_rate)
        with self._recording():
            for done, value, norm in losses:
                tf.summary.scalar("train/loss", value, step=done)
                tf.summary.scalar("train/gradient_norm", norm, step=done)
            tf.summary.scalar("train/learning_rate", rate, step=step)
            tf.summary.scalar("train/tokens_per_second", speed, step=step)
        shown = f"loss {loss:.3f}, {speed:,.0f} tokens/s, learning rate {rate:.2e}"
        self._bar.set_postfix_str(shown)
        if self._bar.disable and time.monotonic() - self._line_at > LINE_SECONDS:
            say(f"step {step:,} of {self._bar.total:,}: {shown}")
            self._line_at = time.monotonic()
        self._since = time.monotonic()

    def doing(self, what: str) -> None:
        """Shows on the bar what the run does instead of training, which does not count
        as training time. An empty text means that training continues.
        """
        self._bar.set_description_str(what)
        if not what:
            self._since = time.monotonic()
            self._bar.unpause()

    def record(self, step: int, dev_set: str, metrics: Mapping[str, float]) -> None:
        """Records the metrics of an evaluation."""
        with self._recording():
            for metric, value in metrics.items():
                tf.summary.scalar(f"{dev_set}/{metric}", value, step=step)
            self._events.flush()
