"""The windows of an input: consecutive lines, which are decoded by themselves."""

from __future__ import annotations

import contextlib
import dataclasses
import pickle
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, NamedTuple

from t2tlite.decoding.source_text import NO_FILE, Origin
from t2tlite.files.read_ahead import ReadAhead
from t2tlite.tasks.task import Output

IsFull = Callable[[Sequence[str]], bool]  # whether these lines are a whole window


@dataclasses.dataclass(frozen=True)
class Input:
    """Lines, one sentence each, which are read once."""

    lines: Iterable[str]
    origin: Origin  # of the first line
    is_pipe: bool = False


@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive lines of an input, which are decoded by themselves, elsewhere or
    later.
    """

    lines: list[str]
    origin: Origin = NO_FILE  # of the first line


class WindowOutput(NamedTuple):
    """What was decoded for a window, or a whole input."""

    sources: list[str]
    n_best: list[list[Output]]  # of each source, best first
    counts: dict[str, int]  # sentences, tokens, milliseconds, repairs


def cut(text: Input, is_full: IsFull) -> Iterator[Window]:
    """Yields the windows of an input, whose lines are read when their window is cut."""
    origin = text.origin
    window: list[str] = []
    for line in text.lines:
        window.append(line)
        if is_full(window):
            yield Window(window, origin)
            origin = origin.after(len(window))
            window = []
    if window:
        yield Window(window, origin)


def cut_at_marked_lines(text: Input, size: int) -> Iterator[Window]:
    """Yields windows of `size` lines to a quarter more, which end at the first line
    whose CRC-32 is a multiple of an eighth of `size`.

    So where a line was inserted or deleted, the window ends at the same line as before,
    nearly always, and later windows are the same.
    """
    slack = size // 4
    modulus = max(1, slack // 2)

    def is_full(window: Sequence[str]) -> bool:
        if len(window) < size:
            return False
        is_marked = zlib.crc32(window[-1].encode()) % modulus == 0
        return is_marked or len(window) >= size + slack

    return cut(text, is_full)


def cut_as_they_arrive(text: Input, size: int) -> Iterator[Window]:
    """Yields windows of `size` lines, of a pipe also of fewer: those that have
    arrived.
    """
    if not text.is_pipe:
        return cut(text, lambda window: len(window) >= size)
    ahead = ReadAhead(iter(text.lines))
    text = dataclasses.replace(text, lines=ahead)
    return cut(text, lambda window: len(window) >= size or not ahead.ready())


@contextlib.contextmanager
def read_first(
    windows: Iterable[Window], folder: Path | None = None
) -> Iterator[tuple[int, Iterator[Window]]]:
    """Reads windows to their end, so that a bad line is found before anything is
    decoded. Yields the number of their lines, and the windows.

    They wait in a temporary file in `folder`.
    """
    with tempfile.TemporaryFile(dir=folder) as spool:
        count = 0
        for window in windows:
            pickle.dump(window, spool)
            count += len(window.lines)
        spool.seek(0)
        yield count, _windows(spool)


def _windows(spool: BinaryIO) -> Iterator[Window]:
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(spool)
