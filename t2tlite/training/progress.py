"""What a run shows in training: a bar and TensorBoard events; and a stop at a loss that
is not finite.
"""

from __future__ import annotations

import contextlib
import math
import re
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import keras
import tensorflow as tf
from tensorboard.plugins.hparams import api as hparams_plugin
from tqdm import tqdm

from t2tlite.console import say
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import diverged, writing
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.train_step import StepResult

REPORT_SECONDS = 2.0  # how often losses are read back from the devices, and shown
# how often they are shown, as a line, if standard error is not a terminal
LINE_SECONDS = 30.0


class Progress:
    """The bar of a run, from the `start` steps already done to `stop` in all, and its
    events, which go to `folder`.

    Without a folder, on workers other than the chief, there are no events.

    Losses stay on the device until they are shown, every REPORT_SECONDS, so that a GPU
    never waits for Python.
    """

    def __init__(
        self,
        folder: Path | None,
        optimizer: keras.optimizers.Optimizer,
        start: int,
        stop: int,
    ) -> None:
        self._optimizer, self._folder = optimizer, folder or Path()
        self._events = (
            tf.summary.create_file_writer(str(folder))
            if folder
            else tf.summary.create_noop_writer()
        )
        self._terminal = sys.stderr.isatty()
        seconds = REPORT_SECONDS / 20
        pace = {
            "smoothing": 0.1,
            "mininterval": seconds,
            "maxinterval": seconds,
            "disable": not self._terminal,
        }
        self._bar = tqdm(
            total=stop, initial=start, unit="step", dynamic_ncols=True, **pace
        )
        self._stop = stop
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
        with writing("TensorBoard events", self._folder), self._events.as_default():
            yield

    def step(self, step: int, result: StepResult) -> None:
        """Records the result of update number `step`, counted from 0."""
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
        losses = [(step, float(result.loss)) for step, result in self._results]
        norms = [float(result.gradient_norm) for _, result in self._results]
        for step, loss in losses:
            if not math.isfinite(loss):
                raise diverged(f"the loss is {loss}", step + 1)
        tokens = sum(float(result.tokens) for _, result in self._results)
        positions = sum(float(result.positions) for _, result in self._results)
        self._results = []
        step, loss = losses[-1]
        rate = tokens / max(time.monotonic() - self._since, 1e-9)
        waste = 1.0 - tokens / positions
        learning_rate = float(self._optimizer.learning_rate)
        shown = (
            f"loss {loss:.3f}, {rate:,.0f} tokens/s, padding {waste:.0%}, learning rate"
            f" {learning_rate:.2e}"
        )
        self._bar.set_postfix_str(shown)
        if not self._terminal and time.monotonic() - self._line_at > LINE_SECONDS:
            say(f"step {step + 1:,} of {self._stop:,}: {shown}")
            self._line_at = time.monotonic()
        with self._recording():
            for (done, value), norm in zip(losses, norms, strict=True):
                tf.summary.scalar("train/loss", value, step=done + 1)
                tf.summary.scalar("train/gradient_norm", norm, step=done + 1)
            tf.summary.scalar("train/learning_rate", learning_rate, step=step + 1)
            tf.summary.scalar("train/tokens_per_second", rate, step=step + 1)
            tf.summary.scalar("train/padding_waste", waste, step=step + 1)
        self._since = time.monotonic()

    def doing(self, what: str) -> None:
        """Shows on the bar what is done instead of training, which does not count as
        training time; empty when training continues.
        """
        self._bar.set_description_str(what)
        if not what:
            self._since = time.monotonic()
            self._bar.unpause()

    def hparams(self, values: Mapping[str, bool | int | float | str]) -> None:
        """Records hparams for TensorBoard's table of runs, HPARAMS."""
        with self._recording():
            hparams_plugin.hparams(dict(values))

    def samples(self, step: int, rows: Sequence[tuple[str, str, str]]) -> None:
        """Records (source, output, reference) of some sentences for a table of
        TensorBoard's.
        """
        table = [["source", "output", "reference"]]
        for row in rows:
            table.append(list(map(_as_markdown, row)))
        with self._recording():
            tf.summary.text("samples", table, step=step)

    def evaluated_also(
        self, name: str, step: int, evaluation: Evaluation, score: Score | None
    ) -> None:
        """Shows the metrics on another dev set, or on all together, below the line on
        dev.
        """
        say(f"  {name}: {_line(evaluation, score)}")
        self._record(name, step, evaluation, score)

    def _record(
        self, name: str, step: int, evaluation: Evaluation, score: Score | None
    ) -> None:
        with self._recording():
            for metric, value in (
                evaluation.metrics | ({} if score is None else score.metrics)
            ).items():
                tf.summary.scalar(f"{name}/{metric}", value, step=step)
            self._events.flush()

    def evaluated(
        self, step: int, evaluation: Evaluation, score: Score | None, better: bool
    ) -> None:
        """Shows an evaluation on dev."""
        say(
            f"step {step:,}: dev {_line(evaluation, score)}"
            + (" (best so far)" if better else "")
        )
        if not math.isfinite(evaluation.perplexity):
            say(
                "Training has diverged, or is about to. Delete the checkpoints since"
                " then, and resume with a lower learning_rate_constant or a longer"
                " warm-up."
            )
        self._record("dev", step, evaluation, score)


def _line(evaluation: Evaluation, score: Score | None) -> str:
    return str(evaluation) if score is None else f"{evaluation}, {score}"


def _as_markdown(text: str) -> str:
    """Plain text for TensorBoard, which reads markdown: punctuation becomes the codes
    of its characters.
    """
    return re.sub(r"[!-/:-@\[-`{-~]", lambda mark: f"&#{ord(mark[0])};", text.strip())
