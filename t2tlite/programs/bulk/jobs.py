"""The input of bulk decoding, and what is done with its lines: decoding or scoring,
window by window.
"""

from __future__ import annotations

import dataclasses
import functools
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import ClassVar

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.source_text import NO_FILE, Origin
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.files.text_files import STANDARD_INPUT, read_lines, shown
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.task import Output
from t2tlite.trees.words import penn_words

Provenance = dict[str, object]  # values of JSON
# of each source, best first; of a line to score, its target alone
NBest = list[list[Output]]
TEXT, NBEST, JSONL = FORMATS = ("text", "nbest", "jsonl")
# forms of input lines
PREFIXED, PAIR = "source TAB prefix, or a source", "source TAB target"
DIGITS = 6  # of log-probabilities and scores after the point


@dataclasses.dataclass(frozen=True)
class LineFormat:
    """The format of input and output; ValueError for an unknown one, or alignments
    outside JSON.
    """

    # one of FORMATS; "" is text, or nbest if return_beams is above 1
    output_format: str = ""
    alignments: bool = False  # word alignments in JSON
    prefixes: bool = False  # an input line is "source TAB prefix", or a source alone
    raw_text: bool = False  # of a parser: punctuation is separated from words first

    def __post_init__(self) -> None:
        if self.output_format not in ("", *FORMATS):
            raise ValueError(
                f"--output_format must be one of {', '.join(FORMATS)}. Received:"
                f" {self.output_format!r}."
            )
        if self.alignments and self.output_format != JSONL:
            received = (
                f"--output_format={self.output_format}"
                if self.output_format
                else "no --output_format"
            )
            raise ValueError(
                f"--alignments goes with --output_format=jsonl. Received: {received}."
            )


PLAIN = LineFormat()


@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive lines of an input, which are decoded by themselves, elsewhere or
    later.
    """

    lines: list[str]
    origin: Origin = NO_FILE  # of the first line


@dataclasses.dataclass(frozen=True)
class WindowOutput:
    """What is written for a window, and its counts for the summary."""

    lines: list[str]
    counts: dict[str, int]


@dataclasses.dataclass(frozen=True)
class DecodeJob:
    """Sentences, or lines "source TAB prefix", are decoded, wherever they come from and
    the output goes.
    """

    model: Translator
    options: DecodeHParams
    line_format: LineFormat = PLAIN
    name: ClassVar[str] = "decode"

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        """Raises ValueError where a line does not have its format or is too long; the
        message names it.
        """
        if self.line_format.raw_text:
            self.model.task.parser(self.model.manifest.name)  # raises for another model
            lines = map(penn_words, lines)
        if self.line_format.prefixes:
            self.model.check_pair_lengths(_split_lines(lines, origin, PREFIXED), origin)
        else:
            self.model.check_lengths(lines, origin)

    def cut(
        self,
        lines: Iterable[str],
        origin: Origin,
        max_sentences: int,
        is_ready: Callable[[], bool] | None = None,
        one_by_one: bool = False,
    ) -> Iterator[Window]:
        """The windows of lines, which are read when their window is cut.

        A window has `max_sentences`, or as many as batch_size if that is more, or fewer
        where no more are ready. If outputs depend on what is decoded together, all
        lines are one window, whatever has arrived, or with `one_by_one` each is.
        """
        size: int | None = max(max_sentences, self.options.batch_size)
        is_ready = is_ready or _always
        if self.depends_on_batch:
            size = 1 if one_by_one else None
            is_ready = _always
        window: list[str] = []
        for line in lines:
            window.append(line)
            if len(window) == size or not is_ready():
                yield Window(window, origin)
                origin = origin.after(len(window))
                window = []
        if window:
            yield Window(window, origin)

    def run(self, window: Window, done: Done = lambda count: None) -> WindowOutput:
        """Decodes a window; `done` is called as by `TextDecoder.decode`. Raises as
        `check`.
        """
        sources, n_best = self.decode(window, done)
        best = [outputs[0] for outputs in n_best]
        tokens = sum(len(output.ids) + 1 for output in best)  # the EOS included
        counts = Counter(sentences=len(sources), tokens=tokens)
        counts += self.model.task_under(self.options).tally(best)
        return WindowOutput(
            self.lines(sources, n_best, window.origin.before), dict(counts)
        )

    def decode(
        self, window: Window, done: Done = lambda count: None
    ) -> tuple[list[str], NBest]:
        """The sources of a window and their outputs, before these are formatted."""
        sources, prefixes = window.lines, None
        if self.line_format.prefixes:
            sources, prefixes = map(
                list,
                zip(*_split_lines(window.lines, window.origin, PREFIXED), strict=True),
            )
        elif self.line_format.raw_text:
            sources = list(map(penn_words, window.lines))
        return sources, self.model.decode(
            sources, self.options, done, window.origin, prefixes
        )

    def lines(
        self, sources: list[str], n_best: NBest, first_number: int = 0
    ) -> list[str]:
        """What is written for sources, which are numbered from `first_number`, and
        their outputs.
        """
        output_format = self.line_format.output_format or (
            NBEST if self.options.return_beams > 1 else TEXT
        )
        if output_format == TEXT:
            return [outputs[0].text for outputs in n_best]
        if output_format == NBEST:
            numbered = enumerate(n_best, first_number)
            return [
                _nbest_line(number, output)
                for number, outputs in numbered
                for output in outputs
            ]
        in_json = [list(map(self._json, outputs)) for outputs in n_best]
        if self.line_format.alignments:
            for hypotheses, alignments in zip(
                in_json, self.model.align(sources, n_best), strict=True
            ):
                for hypothesis, alignment in zip(hypotheses, alignments, strict=True):
                    hypothesis["alignment"] = pharaoh(alignment)
        pairs = zip(sources, in_json, strict=True)
        return [
            _json_line({"source": source, "hypotheses": hypotheses})
            for source, hypotheses in pairs
        ]

    def provenance(self) -> Provenance:
        """Everything but the input that the output depends on."""
        return {
            "work": self.name,
            "t2tlite": t2tlite.__version__,
            "checkpoint": checkpoint_identity(self.model.checkpoint),
            "engine": self.model.engine.name,
            "quantization": self.model.engine.quantization,
            **dataclasses.asdict(self.options),
            **dataclasses.asdict(self.line_format),
        }

    def summary(self, counts: Mapping[str, int], seconds: float) -> str:
        """Sentences and tokens per second, and what the task had to do to make the
        outputs.
        """
        sentences, tokens = counts.get("sentences", 0), counts.get("tokens", 0)
        divisor = max(seconds, 1e-9)
        rates = (
            f"{sentences / divisor:,.1f} sentences/s, {tokens / divisor:,.0f} target"
            " tokens/s"
        )
        repairs = self.model.task_under(self.options).summary(counts)
        return (
            f"{sentences:,} sentences in {seconds:.1f} s, {rates}\n{repairs}".rstrip()
        )

    @property
    def depends_on_batch(self) -> bool:
        """Whether the output of a line also depends on what is decoded with it."""
        return rules_of(self.options).depends_on_batch

    def _json(self, output: Output) -> dict[str, object]:
        return {
            "text": output.text,
            "log_prob": round(output.log_prob, DIGITS),
            "score": round(output.score, DIGITS),
            "tokens": self.model.target_encoder.pieces(output.ids),
        }


class ScoreJob(DecodeJob):
    """Lines "source TAB target" are scored."""

    name = "score"
    depends_on_batch = False

    def check(self, lines: Iterable[str], origin: Origin) -> None:
        self.model.check_pair_lengths(_split_lines(lines, origin, PAIR), origin)

    def decode(
        self, window: Window, done: Done = lambda count: None
    ) -> tuple[list[str], NBest]:
        sources, targets = map(
            list, zip(*_split_lines(window.lines, window.origin, PAIR), strict=True)
        )
        outputs = self.model.score_hypotheses(
            sources, targets, self.options, done, window.origin
        )
        return sources, [[output] for output in outputs]

    def lines(
        self, sources: list[str], n_best: NBest, first_number: int = 0
    ) -> list[str]:
        """The log_prob and score of each pair; under tensor2tensor's rules the score
        alone.
        """
        lines = []
        for source, (output,) in zip(sources, n_best, strict=True):
            if rules_of(self.options).scores_per_token:
                values = {"negative_log_prob_per_token": output.score}
            else:
                values = {"log_prob": output.log_prob, "score": output.score}
            if self.line_format.output_format == JSONL:
                rounded = {name: round(value, DIGITS) for name, value in values.items()}
                lines.append(
                    _json_line({"source": source, "target": output.text, **rounded})
                )
            else:
                lines.append(
                    "\t".join(f"{value:.{DIGITS}f}" for value in values.values())
                )
        return lines


@dataclasses.dataclass(frozen=True)
class Input:
    """Lines, one sentence each."""

    origin: Origin  # of the first line, with the name in messages
    lines: Callable[[], Iterator[str]]  # from the first on; of a pipe only once
    is_pipe: bool = False
    is_standard_input: bool = False

    def check(self, job: DecodeJob) -> int | None:
        """The number of lines, after checking all; None for a pipe, whose lines are
        checked in their turn.

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
    return Input(
        Origin(shown(path)),
        functools.partial(read_lines, path),
        is_pipe,
        is_standard_input,
    )


def _split_lines(
    lines: Iterable[str], origin: Origin, form: str
) -> Iterator[tuple[str, str]]:
    """The source of each line and the text after the TAB, "" where a line of PREFIXED
    has none.

    Raises ValueError, which names the line, if it does not have the form.
    """
    for i, line in enumerate(lines):
        source, tab, text = line.partition("\t")
        if "\t" in text or not (tab or form == PREFIXED):
            raise ValueError(
                f"Each line must be {form}. Received: {origin.line(i)}: {line[:60]!r}."
            )
        yield source, text


def _always() -> bool:
    return True


def _json_line(value: dict[str, object]) -> str:
    """An object on one line, also for programs to which a line ends at one of these
    characters.
    """
    text = json.dumps(value, ensure_ascii=False)
    for mark in "\x85\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _nbest_line(number: int, output: Output) -> str:
    """A line of an n-best list in Moses's format: number, text, named values, score."""
    return (
        f"{number} ||| {output.text} ||| log_prob= {output.log_prob:.{DIGITS}f} |||"
        f" {output.score:.{DIGITS}f}"
    )
