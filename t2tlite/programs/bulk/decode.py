"""Decodes or scores any number of sentences in windows: the lines to write for each."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from t2tlite.config import DecodeHParams
from t2tlite.decoding.rules import rules_of
from t2tlite.programs.bulk.line_format import PLAIN, LineFormat
from t2tlite.programs.runs.translator import NO_FILE, Done, Origin, Translator
from t2tlite.tasks.task import Output

T = TypeVar("T")

# Sentences that are sorted by length together, or as many as batch_size if that is more: 2 % more padding than if all
# are (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
WINDOW = 2048
PROMPT_WINDOW = 256  # as many where somebody may wait for the output


class Pace(NamedTuple):
    """How windows are cut: these may be smaller than is best for speed, so that output comes sooner."""

    most: int = WINDOW  # sentences in a window
    ready: Callable[[], bool] = lambda: True  # whether another sentence is there without waiting
    alone: bool = False  # each sentence by itself where otherwise all sentences would be one window


FULL = Pace()


@dataclasses.dataclass(frozen=True)
class WindowOutput:
    """The output of a window."""

    lines: list[str]
    counts: dict[str, int]  # for `summary`, which takes their sums over the windows


def decode_lines(
    model: Translator,
    sentences: Iterable[str],
    options: DecodeHParams,
    origin: Origin = NO_FILE,
    done: Done = lambda count: None,
    form: LineFormat = PLAIN,
    pace: Pace = FULL,
) -> Iterator[WindowOutput]:
    """Decodes any number of lines of the given format in windows, and yields the output of each, in order.

    Windows are independent of each other, so any of them can be decoded by itself, elsewhere or later: `origin.before`
    is the number of sentences before. Under tensor2tensor's rules a translation depends on what is decoded together, so
    all sentences are one window. A sentence over the limit raises a ValueError that names its line.
    """
    for window, start in windows(sentences, options, origin, pace):
        sources, prefix = form.split(window, start)
        n_best = model.decode(sources, options, done, start, prefix)
        lines = form.lines(model, sources, n_best, options, start.before)
        yield WindowOutput(lines, dict(_counts(model, n_best, options)))


def windows(
    sentences: Iterable[T], options: DecodeHParams, origin: Origin, pace: Pace = FULL
) -> Iterator[tuple[list[T], Origin]]:
    """The windows in which `decode_lines` decodes sentences, each with its origin."""
    if rules_of(options).depends_on_batch:
        size = 1 if pace.alone else None
        pace = FULL  # what is decoded together must not depend on what has arrived
    else:
        size = max(min(WINDOW, pace.most), options.batch_size)
    return _windows(sentences, size, origin, pace.ready)


def score_lines(
    model: Translator,
    pairs: Iterable[tuple[str, str]],
    options: DecodeHParams,
    origin: Origin = NO_FILE,
    done: Done = lambda count: None,
    form: LineFormat = PLAIN,
    pace: Pace = FULL,
) -> Iterator[WindowOutput]:
    """Scores any number of pairs as `decode_lines` decodes sentences: a line has log_prob and score."""
    for window, start in _windows(pairs, max(min(WINDOW, pace.most), options.batch_size), origin, pace.ready):
        sources, targets = zip(*window, strict=True)
        scores = model.score(sources, targets, options, done, start)
        lines = list(form.score_lines(model, sources, targets, options, scores))
        yield WindowOutput(lines, {"sentences": len(window), "tokens": _tokens(model, targets)})


def summary(model: Translator, counts: Mapping[str, int], options: DecodeHParams, seconds: float) -> str:
    """Sentences and tokens per second, and what the task had to do to make the outputs."""
    sentences, tokens, seconds = counts.get("sentences", 0), counts.get("tokens", 0), max(seconds, 1e-9)
    rates = f"{sentences / seconds:,.1f} sentences/s, {tokens / seconds:,.0f} target tokens/s"
    return "\n".join(
        filter(
            None, [f"{sentences:,} sentences in {seconds:.1f} s, {rates}", model.task_under(options).summary(counts)]
        )
    )


def _windows(
    items: Iterable[T], size: int | None, origin: Origin, ready: Callable[[], bool]
) -> Iterator[tuple[list[T], Origin]]:
    """Lists of `size` items, or of all if that is None; fewer where no more are ready; and the origin of each."""
    window: list[T] = []
    for item in items:
        window.append(item)
        if len(window) == size or not ready():
            yield window, origin
            origin, window = origin.after(len(window)), []
    if window:
        yield window, origin


def _counts(model: Translator, n_best: Sequence[Sequence[Output]], options: DecodeHParams) -> Counter[str]:
    """The sentences, the target tokens, and the task's tally of the best outputs."""
    best = [outputs[0] for outputs in n_best]
    tokens = _tokens(model, [output.sequence for output in best])
    return Counter(sentences=len(best), tokens=tokens) + model.task_under(options).tally(best)


def _tokens(model: Translator, targets: Sequence[str]) -> int:
    """Target tokens, EOS included."""
    return sum(len(ids) + 1 for ids in model.target_encoder.encode_batch(targets))
