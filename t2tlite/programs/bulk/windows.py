"""The windows of an input: consecutive lines, which are decoded by themselves."""

import contextlib
import dataclasses
import pickle
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple

from t2tlite.decoding.source_text import NO_FILE, Origin
from t2tlite.files.text_files import ReadAhead
from t2tlite.tasks.task import Output

WHOLE = sys.maxsize  # the size of a window that has all lines of an input


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


def cut(text: Input, size: int, prompt: bool = False) -> Iterator[Window]:
    """Yields windows of `size` lines to a quarter more, which end at the first line
    whose CRC-32 is a multiple of an eighth of `size`. With `prompt`, those of a pipe
    end with the lines that have arrived. Lines are read when their window is cut.

    So where a line was inserted or deleted, the window ends at the same line as before,
    nearly always, and later windows are the same.
    """
    slack = size // 4
    modulus = max(1, slack // 2)
    ahead = ReadAhead(iter(text.lines)) if prompt and text.is_pipe else None
    origin = text.origin
    window: list[str] = []
    for line in ahead or text.lines:
        window.append(line)
        is_full = len(window) >= size + slack
        if len(window) >= size:
            is_full = is_full or zlib.crc32(line.encode()) % modulus == 0
        if ahead:
            is_full = is_full or not ahead.ready()
        if is_full:
            yield Window(window, origin)
            origin = origin.after(len(window))
            window = []
    if window:
        yield Window(window, origin)


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
