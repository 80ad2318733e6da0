"""Windows: the parts of an input that are decoded one after the other, each with its outputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.source_text import Origin
from t2tlite.tasks.task import Output


class WindowOptions(NamedTuple):
    """How an input is cut: with smaller windows the output comes sooner, but takes longer in all."""

    max_sentences: int  # in a window; batch_size if that is more
    is_ready: Callable[[], bool] = lambda: True  # whether the next sentence is available without waiting
    one_by_one: bool = False  # each sentence is a window where otherwise all sentences would be one


class Window(NamedTuple):
    """Consecutive lines of an input with their outputs."""

    origin: Origin  # of the first line
    sources: list[str]
    n_best: list[list[Output]]  # of each source, best first; of a line to score, its target alone

    @property
    def best(self) -> list[Output]:
        """The best output of each source."""
        return [outputs[0] for outputs in self.n_best]

    def counts(self) -> Counter[str]:
        """The sentences, and the target tokens of the best outputs, the EOS included."""
        return Counter(sentences=len(self.sources), tokens=sum(len(output.ids) + 1 for output in self.best))


def cut_windows(
    lines: Iterable[str], options: DecodeHParams, origin: Origin, window_options: WindowOptions
) -> Iterator[tuple[list[str], Origin]]:
    """The lines of each window to decode, with their origin.

    Windows are independent of each other, so any of them can be decoded by itself, elsewhere or later. Under
    tensor2tensor's rules a translation depends on what is decoded together, but not on what has arrived: all lines are
    one window, or each is.
    """
    if rules_of(options).depends_on_batch:
        return cut(lines, 1 if window_options.one_by_one else None, origin)
    return cut(lines, max(window_options.max_sentences, options.batch_size), origin, window_options.is_ready)


def cut(
    lines: Iterable[str], size: int | None, origin: Origin, is_ready: Callable[[], bool] = lambda: True
) -> Iterator[tuple[list[str], Origin]]:
    """Lists of `size` lines, or all if that is None, or fewer where no more are ready; each with its origin."""
    window: list[str] = []
    for line in lines:
        window.append(line)
        if len(window) == size or not is_ready():
            yield window, origin
            origin, window = origin.after(len(window)), []
    if window:
        yield window, origin
