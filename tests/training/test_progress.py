"""What a run shows on a terminal, and in a file."""

import io
import re
import sys
import time

import keras
import pytest
import tensorflow as tf

from t2tlite.console import progress_bar
from t2tlite.run_folder import RunFolder
from t2tlite.training import progress
from t2tlite.training.train_step import StepResult

NOWHERE = RunFolder("absent", writes=False)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def shown(monkeypatch, stderr: io.StringIO, line_seconds: float) -> str:
    """What two steps of three show, and an evaluation."""
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(progress, "LINE_SECONDS", line_seconds)
    with progress.Progress(NOWHERE, keras.optimizers.Adam(0.25), 0, 3) as bar:
        bar.step(1, StepResult(tf.constant(2.5), tf.constant(75.0)))
        bar.step(2, StepResult(tf.constant(1.5), tf.constant(75.0)))
        bar.flush()
        bar.doing("evaluating dev")
    return stderr.getvalue()


def test_bar_says_what_is_done_instead_of_training(monkeypatch):
    text = shown(monkeypatch, Terminal(), 30.0)
    assert "2/3 [" in text
    assert "loss 1.500, " in text
    assert " tokens/s, learning rate 2.50e-01" in text
    assert "evaluating dev:  67%|" in text.split("\r")[-1]


def test_file_gets_lines_and_no_bar(monkeypatch):
    text = shown(monkeypatch, io.StringIO(), -1.0)
    assert text.startswith("step 2 of 3: loss 1.500, ")
    assert text.endswith(" tokens/s, learning rate 2.50e-01\n")
    assert text.count("\n") == 1
    assert shown(monkeypatch, io.StringIO(), 30.0) == ""


class Clock:
    """A clock that a test sets."""

    now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.mark.parametrize("stderr", [io.StringIO, Terminal])
def test_tokens_per_second_without_evaluation_and_saving(monkeypatch, stderr):
    """100 tokens in 4 seconds; evaluating, decoding and saving take 200."""
    monkeypatch.setattr(sys, "stderr", stderr())
    monkeypatch.setattr(progress, "LINE_SECONDS", -1.0)
    clock = Clock()
    monkeypatch.setattr(time, "monotonic", clock)
    monkeypatch.setattr("tqdm.std.time", clock)
    result = StepResult(tf.constant(2.5), tf.constant(100.0))
    with progress.Progress(NOWHERE, keras.optimizers.Adam(0.25), 0, 9) as bar:
        clock.now += 4
        bar.step(1, result)
        bar.doing("saving")
        clock.now += 100
        bar.record(1, "dev", {"loss": 1.0})
        bar.doing("decoding dev")
        clock.now += 100
        bar.doing("")
        clock.now += 4
        bar.step(2, result)
        text = sys.stderr.getvalue()
    rates = re.findall(r"([\d,]+) tokens/s", text)
    assert set(rates) == {"25"}
    if stderr is Terminal:
        assert re.findall(r"2/9 \[00:08<", text)


def test_other_bars_are_one_line_in_a_file(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert list(progress_bar([1, 2], desc="reading train")) == [1, 2]
    assert sys.stderr.getvalue() == "reading train ...\n"
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert list(progress_bar([1, 2], desc="reading train")) == [1, 2]
    assert "reading train: 100%|" in sys.stderr.getvalue()
