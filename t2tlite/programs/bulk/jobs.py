"""What bulk decoding does with the lines of a window: decoding, scoring, or recording
outputs that are scored later.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import math
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import ClassVar

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.files.read_ahead import ReadAhead
from t2tlite.programs.bulk.windows import (
    Input,
    Window,
    WindowOutput,
    cut,
    ends_at_marked_line,
)
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.parsing import parser
from t2tlite.tasks.task import Output
from t2tlite.trees.words import penn_words

# of each source, best first; of a line to score, its target alone
NBest = list[list[Output]]
TEXT, NBEST, JSONL = FORMATS = ("text", "nbest", "jsonl")
# forms of input lines
PREFIXED, PAIR = "source TAB prefix, or a source", "source TAB target"
DIGITS = 6  # of log-probabilities and scores after the point
KEY_DIGITS = 32
# source and target of a blank line to score
UNSCORED = "", Output("", math.nan, math.nan)


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
            raise ValueError(
                "--alignments goes with --output_format=jsonl. Received:"
                f" {self.output_format or 'none'}."
            )


PLAIN = LineFormat()


@dataclasses.dataclass(frozen=True)
class DecodeJob:
    """Decodes sentences, or lines "source TAB prefix", of files, pipes and splits.

    Raises ValueError for raw text with a model that does not parse.
    """

    model: Translator
    options: DecodeHParams
    line_format: LineFormat = PLAIN
    name: ClassVar[str] = "decode"

    def __post_init__(self) -> None:
        if self.line_format.raw_text:
            parser(self.model.task, self.model.manifest.name)

    def windows(self, text: Input, size: int) -> Iterator[Window]:
        """Yields the windows of a file: of about `size` lines, or as many as batch_size
        if that is more. If outputs depend on what is decoded together, the whole file
        is one window.
        """
        if self.depends_on_batch:
            return cut(text, lambda window: False)
        return cut(text, ends_at_marked_line(max(size, self.options.batch_size)))

    def prompt_windows(
        self, text: Input, size: int, one_by_one: bool
    ) -> Iterator[Window]:
        """Yields the windows of a stream: as `windows`, but with the lines that have
        arrived through a pipe, up to `size`. If outputs depend on what is decoded
        together, all lines are one window, or with `one_by_one` each is.
        """
        size = max(size, self.options.batch_size)
        if self.depends_on_batch:
            return cut(text, lambda window: one_by_one)
        if not text.is_pipe:
            return cut(text, lambda window: len(window) >= size)
        ahead = ReadAhead(iter(text.lines()))
        text = dataclasses.replace(text, lines=lambda: ahead)
        return cut(text, lambda window: len(window) >= size or not ahead.ready())

    def check(self, window: Window) -> None:
        """Raises ValueError where a line does not have its format or is too long; the
        message names it.
        """
        if self.line_format.prefixes:
            pairs = _pairs(window, PREFIXED)
            self.model.check_pair_lengths(pairs, window.origin)
        else:
            self.model.check_lengths(self._sources(window), window.origin)

    def run(self, window: Window, done: Done = lambda count: None) -> WindowOutput:
        """Decodes a window; `done` is called as by `TextDecoder.decode`. Raises as
        `check`.
        """
        started = time.monotonic()
        sources, n_best = self.decode(window, done)
        lines = self.lines(sources, n_best, window.origin.before)
        best = [outputs[0] for outputs in n_best]
        tokens = 0
        for output in best:
            tokens += len(output.ids) + 1  # the EOS
        counts = Counter(sentences=len(sources), tokens=tokens)
        counts += self.model.task_under(self.options).tally(best)
        counts["milliseconds"] = round(1000 * (time.monotonic() - started))
        return WindowOutput(lines, dict(counts))

    def decode(
        self, window: Window, done: Done = lambda count: None
    ) -> tuple[list[str], NBest]:
        """The sources of a window and their outputs, before these are formatted."""
        prefixes = None
        if self.line_format.prefixes:
            sources, prefixes = _columns(window, PREFIXED)
        else:
            sources = self._sources(window)
        n_best = self.model.decode(sources, self.options, done, window.origin, prefixes)
        return sources, n_best

    def lines(
        self, sources: list[str], n_best: NBest, first_number: int = 0
    ) -> list[str]:
        """What is written for sources, which are numbered from `first_number`, and
        their outputs.
        """
        if self.output_format == TEXT:
            return [outputs[0].text for outputs in n_best]
        if self.output_format == JSONL:
            return self._json_lines(sources, n_best)
        lines = []
        for number, outputs in enumerate(n_best, first_number):
            for output in outputs:
                lines.append(_nbest_line(number, output))
        return lines

    def key(self, window: Window) -> str:
        """A hash of a window's lines and of everything else that its output depends
        on.
        """
        # the lines of an n-best list are numbered
        before = window.origin.before if self.output_format == NBEST else None
        content = json.dumps([self._provenance, before, window.lines])
        return hashlib.sha256(content.encode()).hexdigest()[:KEY_DIGITS]

    def summary(self, counts: Counter[str], whose: str = "") -> str:
        """Sentences and tokens per second, and what the task had to do to make the
        outputs. `whose` says whose seconds they are.
        """
        sentences = counts["sentences"]
        seconds = max(seconds_of(counts), 1e-9)
        speed = (
            f"{sentences:,} sentences in {seconds:.1f} s{whose},"
            f" {sentences / seconds:,.1f} sentences/s,"
            f" {counts['tokens'] / seconds:,.0f} target tokens/s"
        )
        repairs = self.model.task_under(self.options).summary(counts)
        return f"{speed}\n{repairs}".rstrip()

    @property
    def depends_on_batch(self) -> bool:
        """Whether the output of a line also depends on what is decoded with it."""
        return rules_of(self.options).depends_on_batch

    @property
    def output_format(self) -> str:
        """One of FORMATS."""
        default = NBEST if self.options.return_beams > 1 else TEXT
        return self.line_format.output_format or default

    @functools.cached_property
    def _provenance(self) -> dict[str, object]:
        """What an output depends on in addition to its line: values of JSON."""
        checkpoints = self.model.checkpoint, *self.model.others
        return {
            "work": self.name,
            "t2tlite": t2tlite.__version__,
            "checkpoint": " + ".join(map(checkpoint_identity, checkpoints)),
            "engine": self.model.engine.name,
            "quantization": self.model.engine.quantization,
            **dataclasses.asdict(self.options),
            **dataclasses.asdict(self.line_format),
        }

    def _sources(self, window: Window) -> list[str]:
        if self.line_format.raw_text:
            return list(map(penn_words, window.lines))
        return window.lines

    def _json_lines(self, sources: list[str], n_best: NBest) -> list[str]:
        alignments = None
        if self.line_format.alignments:
            alignments = self.model.align(sources, n_best)
        lines = []
        for i, source in enumerate(sources):
            hypotheses = []
            for j, output in enumerate(n_best[i]):
                hypothesis = {
                    "text": output.text,
                    "log_prob": round(output.log_prob, DIGITS),
                    "score": round(output.score, DIGITS),
                    "tokens": self.model.target_encoder.pieces(output.ids),
                }
                if alignments:
                    hypothesis["alignment"] = pharaoh(alignments[i][j])
                hypotheses.append(hypothesis)
            lines.append(_json_line({"source": source, "hypotheses": hypotheses}))
        return lines


class ScoreJob(DecodeJob):
    """Scores lines "source TAB target"; a blank line has no score, NaN."""

    name = "score"
    depends_on_batch = False

    def check(self, window: Window) -> None:
        self.model.check_pair_lengths(_pairs(window, PAIR), window.origin)

    def decode(
        self, window: Window, done: Done = lambda count: None
    ) -> tuple[list[str], NBest]:
        pairs = Window(list(filter(None, window.lines)), window.origin)
        sources, targets = _columns(pairs, PAIR)
        scored = self.model.score_hypotheses(sources, targets, self.options, done)
        rows = zip(sources, scored, strict=True)
        padded = [next(rows) if line else UNSCORED for line in window.lines]
        return [source for source, _ in padded], [[target] for _, target in padded]

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
                record: dict[str, object] = {"source": source, "target": output.text}
                for name, value in values.items():
                    # JSON has no NaN
                    record[name] = None if math.isnan(value) else round(value, DIGITS)
                lines.append(_json_line(record))
            else:
                columns = [f"{value:.{DIGITS}f}" for value in values.values()]
                lines.append("\t".join(columns))
        return lines


class RecordJob(DecodeJob):
    """Decodes the sentences of a split, and writes what scores need of the outputs."""

    name = "split"

    def lines(
        self, sources: list[str], n_best: NBest, first_number: int = 0
    ) -> list[str]:
        return record_lines(n_best)


def record_lines(n_best: Sequence[Sequence[Output]]) -> list[str]:
    """The outputs of each sentence as a JSON array, from which `read_records` reads
    them as they were, but without trees.
    """
    lines = []
    for outputs in n_best:
        records = [(o.text, o.score, o.log_prob, o.ids, o.decoded) for o in outputs]
        lines.append(json.dumps(records))
    return lines


def read_records(lines: Iterable[str]) -> NBest:
    """The outputs of each sentence, best first."""
    n_best: NBest = []
    for line in lines:
        outputs = []
        for text, score, log_prob, ids, decoded in json.loads(line):
            outputs.append(Output(text, score, log_prob, tuple(ids), decoded))
        n_best.append(outputs)
    return n_best


def seconds_of(counts: Mapping[str, int]) -> float:
    """The time that decoding took, from the counts of its windows."""
    return counts["milliseconds"] / 1000


def _pairs(window: Window, form: str) -> Iterator[tuple[str, str]]:
    """The source of each line and the text after the TAB, "" where a line of PREFIXED
    has none.

    Raises ValueError, which names the line, if it does not have the form.
    """
    for i, line in enumerate(window.lines):
        source, tab, text = line.partition("\t")
        if "\t" in text or not (tab or form == PREFIXED):
            raise ValueError(
                f"Each line must be {form}. Received: {window.origin.line(i)}:"
                f" {line[:60]!r}."
            )
        yield source, text


def _columns(window: Window, form: str) -> tuple[list[str], list[str]]:
    """The sources of the lines and the texts after the TABs, as `_pairs`."""
    sources, texts = [], []
    for source, text in _pairs(window, form):
        sources.append(source)
        texts.append(text)
    return sources, texts


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
