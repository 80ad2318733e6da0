"""The windows of an input: consecutive lines, which are decoded by themselves."""

from __future__ import annotations

import dataclasses
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from t2tlite.decoding.source_text import NO_FILE, Origin

IsFull = Callable[[Sequence[str]], bool]  # whether these lines are a whole window


@dataclasses.dataclass(frozen=True)
class Input:
    """Lines, one sentence each."""

    origin: Origin  # of the first line, with the name in messages
    lines: Callable[[], Iterable[str]]  # from the first on; of a pipe only once
    is_pipe: bool = False


@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive lines of an input, which are decoded by themselves, elsewhere or
    later.
    """

    lines: list[str]
    origin: Origin = NO_FILE  # of the first line


class WindowOutput(NamedTuple):
    """The lines that are written for a window, and what the summary counts."""

    lines: list[str]
    counts: dict[str, int]  # sentences, tokens, milliseconds, repairs


def cut(text: Input, is_full: IsFull) -> Iterator[Window]:
    """Yields the windows of an input, whose lines are read when their window is cut."""
    origin = text.origin
    window: list[str] = []
    for line in text.lines():
        window.append(line)
        if is_full(window):
            yield Window(window, origin)
            origin = origin.after(len(window))
            window = []
    if window:
        yield Window(window, origin)


def ends_at_marked_line(size: int) -> IsFull:
    """Windows of `size` lines to a quarter more, which end at the first line whose
    CRC-32 is a multiple of an eighth of `size`.

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

    return is_full
