"""What is done with the lines of an input: decoding or scoring in windows, and formatting the output."""

from __future__ import annotations

import abc
import contextlib
import dataclasses
import signal
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding.source_text import Origin
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.programs.bulk.line_format import PLAIN, LineFormat, split_lines
from t2tlite.programs.bulk.windows import Window, WindowOptions, cut, cut_windows
from t2tlite.programs.runs.translator import Translator

Provenance = dict[str, Any]  # values of JSON

BAR = {"unit": "sentence", "desc": "decoding", "dynamic_ncols": True, "leave": False}  # of tqdm


@dataclasses.dataclass(frozen=True)
class FileJob(abc.ABC):
    """What is done with the lines of an input, whatever it is and wherever the output goes."""

    model: Translator
    options: DecodeHParams
    line_format: LineFormat = PLAIN
    name: ClassVar[str]

    @abc.abstractmethod
    def check(self, lines: Iterable[str], origin: Origin) -> None:
        """Raises ValueError where a line does not have its format or is too long; the message names it."""

    @abc.abstractmethod
    def windows(
        self, lines: Iterable[str], origin: Origin, window_options: WindowOptions, done: Done = lambda count: None
    ) -> Iterator[Window]:
        """The windows of the lines with their outputs, in order; `done` is called as by `TextDecoder.decode`.

        Lines are read when their window is decoded. Raises ValueError as `check`.
        """

    @abc.abstractmethod
    def lines(self, window: Window) -> list[str]:
        """What is written for a window."""

    def counts(self, window: Window) -> Counter[str]:
        """The sentences and the target tokens of a window, for `summary`, which takes their sums."""
        return window.counts()

    def provenance(self, name: str = "") -> Provenance:
        """Everything but the input that the output depends on."""
        return {
            "work": name or self.name,
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
        speed = f"{sentences:,} sentences in {seconds:.1f} s, {rates}"
        repairs = self.model.task_under(self.options).summary(counts)
        return f"{speed}\n{repairs}" if repairs else speed


class DecodeJob(FileJob):
    """Sentences, or lines "source TAB prefix", are decoded."""

    name = "decode"

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        if self.line_format.prefixes:
            self.model.check_pair_lengths(split_lines(lines, origin, "prefix", is_optional=True), origin)
        else:
            self.model.check_lengths(lines, origin)

    def windows(
        self, lines: Iterable[str], origin: Origin, window_options: WindowOptions, done: Done = lambda count: None
    ) -> Iterator[Window]:
        for sources, start in cut_windows(lines, self.options, origin, window_options):
            prefixes = None
            if self.line_format.prefixes:
                pairs = list(split_lines(sources, start, "prefix", is_optional=True))
                sources, prefixes = [source for source, _ in pairs], [prefix for _, prefix in pairs]
            yield Window(start, sources, self.model.decode(sources, self.options, done, start, prefixes))

    def lines(self, window: Window) -> list[str]:
        return self.line_format.lines(self.model, window, self.options)

    def counts(self, window: Window) -> Counter[str]:
        """Also the task's tally of the best outputs."""
        return window.counts() + self.model.task_under(self.options).tally(window.best)


class ScoreJob(FileJob):
    """Lines "source TAB target" are scored."""

    name = "score"

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        self.model.check_pair_lengths(split_lines(lines, origin, "target"), origin)

    def windows(
        self, lines: Iterable[str], origin: Origin, window_options: WindowOptions, done: Done = lambda count: None
    ) -> Iterator[Window]:
        size = max(window_options.max_sentences, self.options.batch_size)
        for window, start in cut(lines, size, origin, window_options.is_ready):
            pairs = list(split_lines(window, start, "target"))
            sources, targets = [source for source, _ in pairs], [target for _, target in pairs]
            outputs = self.model.score_hypotheses(sources, targets, self.options, done, start)
            yield Window(start, sources, [[output] for output in outputs])

    def lines(self, window: Window) -> list[str]:
        return self.line_format.score_lines(window, self.options)


class Interrupted(KeyboardInterrupt):
    """SIGTERM came."""

    signal_number = signal.SIGTERM


@contextlib.contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raises Interrupted at SIGTERM, so that files are closed and it is said what is done."""
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    raise Interrupted("Stopped by SIGTERM.")
