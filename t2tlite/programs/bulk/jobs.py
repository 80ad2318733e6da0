"""The input of bulk decoding, and what is done with its lines: decoding or scoring, window by window."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.source_text import Origin
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.files.text_files import STANDARD_INPUT, read_lines, shown
from t2tlite.programs.bulk.line_format import PLAIN, LineFormat, Window, split_lines
from t2tlite.programs.runs.translator import Translator
from t2tlite.trees.raw_text import penn_words

Provenance = dict[str, object]  # values of JSON


@dataclasses.dataclass(frozen=True)
class DecodeJob:
    """Sentences, or lines "source TAB prefix", are decoded, wherever they come from and the output goes."""

    model: Translator
    options: DecodeHParams
    line_format: LineFormat = PLAIN
    name: ClassVar[str] = "decode"

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        """Raises ValueError where a line does not have its format or is too long; the message names it."""
        if self.line_format.raw_text:
            self.model.task.parser(self.model.manifest.name)  # raises for another model
            lines = map(penn_words, lines)
        if self.line_format.prefixes:
            self.model.check_pair_lengths(split_lines(lines, origin, "prefix", is_optional=True), origin)
        else:
            self.model.check_lengths(lines, origin)

    def cut(
        self,
        lines: Iterable[str],
        origin: Origin,
        max_sentences: int,
        is_ready: Callable[[], bool] = lambda: True,
        one_by_one: bool = False,
    ) -> Iterator[tuple[list[str], Origin]]:
        """The lines of each window, which are read when it is cut, and their origin.

        A window has `max_sentences`, or as many as batch_size if that is more, or fewer where no more are ready. It can
        be decoded by itself, elsewhere or later. If outputs depend on what is decoded together, all lines are one
        window, whatever has arrived, or with `one_by_one` each is.
        """
        size: int | None = max(max_sentences, self.options.batch_size)
        if self.depends_on_batch:
            size, is_ready = 1 if one_by_one else None, lambda: True
        window: list[str] = []
        for line in lines:
            window.append(line)
            if len(window) == size or not is_ready():
                yield window, origin
                origin, window = origin.after(len(window)), []
        if window:
            yield window, origin

    def decode(self, lines: list[str], origin: Origin, done: Done = lambda count: None) -> Window:
        """A window with its outputs; `done` is called as by `TextDecoder.decode`. Raises as `check`."""
        sources, prefixes = lines, None
        if self.line_format.prefixes:
            sources, prefixes = map(list, zip(*split_lines(lines, origin, "prefix", is_optional=True), strict=True))
        elif self.line_format.raw_text:
            sources = list(map(penn_words, lines))
        return Window(origin, sources, self.model.decode(sources, self.options, done, origin, prefixes))

    def lines(self, window: Window) -> list[str]:
        """What is written for a window."""
        return self.line_format.lines(self.model, window, self.options)

    def counts(self, window: Window) -> Counter[str]:
        """The sentences of a window, its target tokens and the task's tally; `summary` takes their sums."""
        tokens = sum(len(output.ids) + 1 for output in window.best)  # the EOS included
        counts = Counter(sentences=len(window.sources), tokens=tokens)
        return counts + self.model.task_under(self.options).tally(window.best)

    def provenance(self, work: str = "") -> Provenance:
        """Everything but the input that the output depends on."""
        return {
            "work": work or self.name,
            "t2tlite": t2tlite.__version__,
            "checkpoint": checkpoint_identity(self.model.checkpoint),
            "engine": self.model.engine.name,
            "quantization": self.model.engine.quantization,
            **dataclasses.asdict(self.options),
            **dataclasses.asdict(self.line_format),
        }

    def summary(self, counts: Mapping[str, int], seconds: float) -> str:
        """Sentences and tokens per second, and what the task had to do to make the outputs."""
        sentences, tokens = counts.get("sentences", 0), counts.get("tokens", 0)
        divisor = max(seconds, 1e-9)
        rates = f"{sentences / divisor:,.1f} sentences/s, {tokens / divisor:,.0f} target tokens/s"
        repairs = self.model.task_under(self.options).summary(counts)
        return f"{sentences:,} sentences in {seconds:.1f} s, {rates}\n{repairs}".rstrip()

    @property
    def depends_on_batch(self) -> bool:
        """Whether the output of a line also depends on what is decoded with it."""
        return rules_of(self.options).depends_on_batch


class ScoreJob(DecodeJob):
    """Lines "source TAB target" are scored."""

    name = "score"
    depends_on_batch = False

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        self.model.check_pair_lengths(split_lines(lines, origin, "target"), origin)

    def decode(self, lines: list[str], origin: Origin, done: Done = lambda count: None) -> Window:
        sources, targets = map(list, zip(*split_lines(lines, origin, "target"), strict=True))
        outputs = self.model.score_hypotheses(sources, targets, self.options, done, origin)
        return Window(origin, sources, [[output] for output in outputs])

    def lines(self, window: Window) -> list[str]:
        return self.line_format.score_lines(window, self.options)


@dataclasses.dataclass(frozen=True)
class Input:
    """Lines, one sentence each."""

    name: str  # in messages
    lines: Callable[[], Iterator[str]]  # from the first on; of a pipe only once
    is_pipe: bool = False
    is_standard_input: bool = False

    @property
    def origin(self) -> Origin:
        """That of the first line."""
        return Origin(self.name)

    @property
    def is_piped(self) -> bool:
        """Whether this is standard input and nobody types it: a program in a pipe reports nothing."""
        return self.is_standard_input and not sys.stdin.isatty()

    def check(self, job: DecodeJob) -> int | None:
        """The number of lines, after checking all; None for a pipe, whose lines are checked in their turn.

        Raises ValueError as `DecodeJob.check`.
        """
        if self.is_pipe:
            return None
        job.check(self.lines(), self.origin)
        return sum(1 for _ in self.lines())


def text_input(path: str | Path) -> Input:
    """A text file, a pipe or standard input."""
    is_standard_input = Path(path) == STANDARD_INPUT
    is_pipe = is_standard_input or not Path(path).is_file()
    return Input(shown(path), functools.partial(read_lines, path), is_pipe, is_standard_input)


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    signal_number = signal.SIGTERM


@contextlib.contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raises Terminated at SIGTERM, so that files are closed and it is said what is done."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    raise Terminated("Stopped by SIGTERM.")
