"""What a line of an input holds, and how outputs are written: as text, n-best lists or JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.source_text import Origin
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.task import Output

TEXT, NBEST, JSONL = FORMATS = ("text", "nbest", "jsonl")
DIGITS = 6  # of log-probabilities and scores after the point


class Window(NamedTuple):
    """Consecutive lines of an input with their outputs."""

    origin: Origin  # of the first line
    sources: list[str]
    n_best: list[list[Output]]  # of each source, best first; of a line to score, its target alone

    @property
    def best(self) -> list[Output]:
        """The best output of each source."""
        return [outputs[0] for outputs in self.n_best]


@dataclasses.dataclass(frozen=True)
class LineFormat:
    """The format of input and output; ValueError for an unknown one, or alignments outside JSON."""

    output_format: str = ""  # one of FORMATS; "" is text, or nbest if return_beams is above 1
    alignments: bool = False  # word alignments in JSON
    prefixes: bool = False  # an input line is "source TAB prefix", or a source alone
    raw_text: bool = False  # of a parser: punctuation is separated from words first

    def __post_init__(self) -> None:
        if self.output_format not in ("", *FORMATS):
            raise ValueError(f"--output_format must be one of {', '.join(FORMATS)}. Received: {self.output_format!r}.")
        if self.alignments and self.output_format != JSONL:
            received = f"--output_format={self.output_format}" if self.output_format else "no --output_format"
            raise ValueError(f"--alignments goes with --output_format=jsonl. Received: {received}.")

    def lines(self, model: Translator, window: Window, options: DecodeHParams) -> list[str]:
        """What is written for a decoded window."""
        output_format = self.output_format or (NBEST if options.return_beams > 1 else TEXT)
        if output_format == TEXT:
            return [output.text for output in window.best]
        if output_format == NBEST:
            numbered = enumerate(window.n_best, window.origin.before)
            return [_moses(number, output) for number, outputs in numbered for output in outputs]
        n_best = [[_hypothesis(model, output) for output in outputs] for outputs in window.n_best]
        if self.alignments:
            aligned = model.align(window.sources, window.n_best)
            for hypotheses, alignments in zip(n_best, aligned, strict=True):
                for hypothesis, alignment in zip(hypotheses, alignments, strict=True):
                    hypothesis["alignment"] = pharaoh(alignment)
        pairs = zip(window.sources, n_best, strict=True)
        return [_json({"source": source, "hypotheses": hypotheses}) for source, hypotheses in pairs]

    def score_lines(self, window: Window, options: DecodeHParams) -> list[str]:
        """What is written for a scored window: log_prob and score of each pair.

        Under tensor2tensor's rules the score alone.
        """
        lines = []
        for source, output in zip(window.sources, window.best, strict=True):
            if rules_of(options).scores_per_token:
                values = {"negative_log_prob_per_token": output.score}
            else:
                values = {"log_prob": output.log_prob, "score": output.score}
            if self.output_format == JSONL:
                rounded = {name: round(value, DIGITS) for name, value in values.items()}
                lines.append(_json({"source": source, "target": output.text, **rounded}))
            else:
                lines.append("\t".join(f"{value:.{DIGITS}f}" for value in values.values()))
        return lines


PLAIN = LineFormat()


def split_lines(
    lines: Iterable[str], origin: Origin, second: str, is_optional: bool = False
) -> Iterator[tuple[str, str]]:
    """The source of each line and the text after the TAB, which messages call `second`; "" where it may be missing.

    Raises ValueError, which names the line, if there is another number of tabs.
    """
    for i, line in enumerate(lines):
        source, tab, text = line.partition("\t")
        if "\t" in text or not (tab or is_optional):
            required = f"source TAB {second}{', or a source' if is_optional else ''}"
            raise ValueError(f"Each line must be {required}. Received: {origin.line(i)}: {line[:60]!r}.")
        yield source, text


class RecordedOutput(NamedTuple):
    """An `Output` as a split records it until all outputs are scored."""

    text: str
    score: float
    log_prob: float
    sequence: str
    ids: tuple[int, ...]


def record_lines(n_best: Sequence[Sequence[Output]]) -> list[str]:
    """The outputs of each sentence as a JSON array, from which `read_records` reads them as they were."""
    return [json.dumps([(o.text, o.score, o.log_prob, o.sequence, o.ids) for o in outputs]) for outputs in n_best]


def read_records(lines: Iterable[str]) -> list[list[Output]]:
    """The outputs of each sentence, best first."""
    n_best: list[list[Output]] = []
    for line in lines:
        recorded = [RecordedOutput(*values) for values in json.loads(line)]
        n_best.append([output._replace(ids=tuple(output.ids)) for output in recorded])
    return n_best


def _json(value: dict[str, object]) -> str:
    """An object on one line, also for programs to which a line ends at one of these characters."""
    text = json.dumps(value, ensure_ascii=False)
    for mark in "\x85\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _moses(number: int, output: Output) -> str:
    """A line of an n-best list in Moses's format: number, text, named values, score."""
    return f"{number} ||| {output.text} ||| log_prob= {output.log_prob:.{DIGITS}f} ||| {output.score:.{DIGITS}f}"


def _hypothesis(model: Translator, output: Output) -> dict[str, object]:
    return {
        "text": output.text,
        "log_prob": round(output.log_prob, DIGITS),
        "score": round(output.score, DIGITS),
        "tokens": model.target_encoder.pieces(output.ids),
    }
