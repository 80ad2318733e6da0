"""The loop that decodes or scores an input, a file or a split, window by window, and that resumes after a kill.

`decode.py` makes the lines of a window, and `partial_output.py` keeps them.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import signal
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

from tqdm import tqdm

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.programs.bulk.decode import WindowOutput
from t2tlite.programs.bulk.line_format import LineFormat
from t2tlite.programs.bulk.partial_output import DirectOutput
from t2tlite.programs.runs.translator import Translator

T = TypeVar("T")

BAR = {"unit": "sentence", "desc": "decoding", "dynamic_ncols": True, "leave": False}


class Interrupted(KeyboardInterrupt):
    """SIGTERM came."""

    signal_number = signal.SIGTERM


class CountedLines(Iterator[T], Generic[T]):
    """The lines of an input, counted and hashed as they are read."""

    def __init__(self, lines: Iterator[T]) -> None:
        self.count, self._lines, self._digest = 0, lines, hashlib.sha256()

    def __next__(self) -> T:
        line = next(self._lines)
        self.count += 1
        self._digest.update(f"{line!r}\n".encode())
        return line

    @property
    def sha256(self) -> str:
        """Of the lines read so far."""
        return self._digest.hexdigest()


def made_with(work: str, model: Translator, options: DecodeHParams, form: LineFormat) -> dict[str, Any]:
    """What an output depends on in addition to its input; `work` is what is done with that."""
    return {
        "work": work,
        "t2tlite": t2tlite.__version__,
        "checkpoint": checkpoint_identity(model.checkpoint),
        "engine": model.engine.name,
        "quantization": model.engine.quantization,
        **dataclasses.asdict(options),
        **dataclasses.asdict(form),
    }


def remaining(output: DirectOutput, lines: Iterator[T], again: Callable[[], Iterator[T]]) -> CountedLines[T]:
    """An input without the lines whose output is there already.

    If those lines are not the ones that the output was made of, it starts anew, with the lines that `again` returns.
    """
    counted = CountedLines(lines)
    deque(itertools.islice(counted, output.progress.lines), maxlen=0)
    if counted.sha256 != output.progress.lines_sha256:
        counted = CountedLines(again())
        output.restart("the input has changed")
    return counted


def write_windows(
    output: DirectOutput,
    lines: CountedLines[Any],
    decode: Callable[..., Iterator[WindowOutput]],
    total: int | None,
    disable: bool | None = None,
) -> None:
    """Writes what `decode` yields for the windows that it reads from `lines`, and records each as done.

    `decode` is called with `done`, as `decode_lines` is. The progress bar counts to `total` and is disabled
    as tqdm's: by default, unless standard error is a terminal.
    """
    counts, started = Counter(output.progress.counts), time.monotonic() - output.progress.seconds
    with tqdm(total=total, initial=lines.count, disable=disable, **BAR) as bar:
        for found in decode(done=bar.update):
            counts.update(found.counts)
            output.write(found.lines, lines.count, lines.sha256, counts, time.monotonic() - started)
            bar.n = lines.count  # blank lines too


@contextlib.contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raises Interrupted at SIGTERM, so that files are closed and it is said what is done."""

    def stop(number: int, frame: object) -> None:
        raise Interrupted("Stopped by SIGTERM.")

    before = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
