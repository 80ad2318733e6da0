"""What a run shows in training, a bar and TensorBoard events. It stops training if a
loss is not finite.
"""

from __future__ import annotations

import contextlib
import math
import sys
import time
from collections.abc import Iterator, Mapping

import keras
import tensorflow as tf
from tensorboard.plugins.hparams import summary_v2 as hparams_plugin
from tqdm import tqdm

from t2tlite.console import say
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import diverged, writing
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.train_step import StepResult

REPORT_SECONDS = 2.0  # between readings of the losses from the devices
LINE_SECONDS = 30.0  # between lines that show them if stderr is not a terminal


class Progress:
    """The progress bar of a run, from the `start` steps already done to `stop` in all,
    and its TensorBoard events.

    Losses stay on the device until they are shown, every REPORT_SECONDS, so that a GPU
    never waits for Python.
    """

    def __init__(
        self,
        run: RunFolder,
        optimizer: keras.optimizers.Optimizer,
        start: int,
        stop: int,
    ) -> None:
        self._run = run
        self._optimizer = optimizer
        self._events = tf.summary.create_noop_writer()
        if run.writes:
            self._events = tf.summary.create_file_writer(str(run))
        self._bar = tqdm(
            total=stop,
            initial=start,
            unit="step",
            dynamic_ncols=True,
            smoothing=0.1,
            mininterval=REPORT_SECONDS / 20,
            maxinterval=REPORT_SECONDS / 20,
            disable=not sys.stderr.isatty(),
        )
        self._line_at = time.monotonic()  # when the last line was shown
        self._results: list[tuple[int, StepResult]] = []  # by step, not yet read back
        self._since = time.monotonic()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.close()
        with self._recording():
            self._events.close()

    @contextlib.contextmanager
    def _recording(self) -> Iterator[None]:
        folder = self._run.path
        with writing("TensorBoard events", folder), self._events.as_default():
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
        tokens = positions = 0.0
        for step, result in self._results:
            loss = float(result.loss)
            if not math.isfinite(loss):
                raise diverged(f"the loss is {loss}", step)
            losses.append((step, loss, float(result.gradient_norm)))
            tokens += float(result.tokens)
            positions += float(result.positions)
        self._results = []
        rate = tokens / max(time.monotonic() - self._since, 1e-9)
        waste = 1.0 - tokens / positions
        learning_rate = float(self._optimizer.learning_rate)
        shown = (
            f"loss {loss:.3f}, {rate:,.0f} tokens/s, padding {waste:.0%}, learning rate"
            f" {learning_rate:.2e}"
        )
        self._bar.set_postfix_str(shown)
        if self._bar.disable and time.monotonic() - self._line_at > LINE_SECONDS:
            say(f"step {step:,} of {self._bar.total:,}: {shown}")
            self._line_at = time.monotonic()
        with self._recording():
            for done, value, norm in losses:
                tf.summary.scalar("train/loss", value, step=done)
                tf.summary.scalar("train/gradient_norm", norm, step=done)
            tf.summary.scalar("train/learning_rate", learning_rate, step=step)
            tf.summary.scalar("train/tokens_per_second", rate, step=step)
            tf.summary.scalar("train/padding_waste", waste, step=step)
        self._since = time.monotonic()

    def doing(self, what: str) -> None:
        """Shows on the bar what the run does instead of training, which does not count
        as training time. An empty text means that training continues.
        """
        self._bar.set_description_str(what)
        if not what:
            self._since = time.monotonic()
            self._bar.unpause()

    def hparams(self, values: Mapping[str, bool | int | float | str]) -> None:
        """Records hparams for TensorBoard's table of runs, HPARAMS."""
        with self._recording():
            hparams_plugin.hparams(dict(values))

    def evaluated(
        self, step: int, dev: Evaluation, better: bool, others: Mapping[str, Evaluation]
    ) -> None:
        """Shows and records the metrics on the dev set that decides, and on others by
        name.
        """
        say(f"step {step:,}: dev {dev}" + (" (best so far)" if better else ""))
        if not math.isfinite(dev.perplexity):
            say(
                "Training has diverged, or is about to. Delete the checkpoints since"
                " then, and resume with a lower learning_rate_constant or a longer"
                " warm-up."
            )
        for name, result in others.items():
            say(f"  {name}: {result}")
        with self._recording():
            for name, result in {"dev": dev, **others}.items():
                for metric, value in result.metrics.items():
                    tf.summary.scalar(f"{name}/{metric}", value, step=step)
            self._events.flush()
