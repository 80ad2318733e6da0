"""What a line of a file to decode holds, and what is written for it: text, an n-best list, or JSON."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.decoding.length_penalty import length_penalty
from t2tlite.decoding.rules import rules_of
from t2tlite.programs.runs.translator import NO_FILE, Origin, Translator
from t2tlite.tasks.task import Output

TEXT, NBEST, JSONL = FORMATS = ("text", "nbest", "jsonl")
DIGITS = 6  # of log-probabilities and scores after the point


@dataclasses.dataclass(frozen=True)
class LineFormat:
    """The format of input and output. Raises ValueError for an unknown one, or alignments in another than JSON."""

    output_format: str = ""  # one of FORMATS; "" is text, or nbest if return_beams is above 1
    alignments: bool = False  # word alignments in JSON
    prefixes: bool = False  # an input line is "source TAB prefix", or a source alone

    def __post_init__(self) -> None:
        if self.output_format not in ("", *FORMATS):
            raise ValueError(f"--output_format must be one of {', '.join(FORMATS)}. Received: {self.output_format!r}.")
        if self.alignments and self.output_format != JSONL:
            received = f"--output_format={self.output_format}" if self.output_format else "no --output_format"
            raise ValueError(f"--alignments goes with --output_format=jsonl. Received: {received}.")

    def check(self, model: Translator, lines: Iterable[str], origin: Origin) -> None:
        """Raises ValueError where a line does not have this format or is too long; the message names it."""
        if self.prefixes:
            model.check_pair_lengths((self._pair(line, origin.after(i)) for i, line in enumerate(lines)), origin)
        else:
            model.check_lengths(lines, origin)

    def split(self, lines: Sequence[str], origin: Origin = NO_FILE) -> tuple[list[str], list[str] | None]:
        """The sources of input lines, and the prefixes if they have any."""
        if not self.prefixes:
            return list(lines), None
        pairs = [self._pair(line, origin.after(i)) for i, line in enumerate(lines)]
        return [source for source, _ in pairs], [prefix for _, prefix in pairs]

    def lines(
        self,
        model: Translator,
        sources: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        options: DecodeHParams,
        before: int = 0,
    ) -> list[str]:
        """What is written for decoded sentences, of which the first is number `before`."""
        name = self.output_format or (NBEST if options.return_beams > 1 else TEXT)
        if name == TEXT:
            return [outputs[0].text for outputs in n_best]
        if name == NBEST:
            return [_moses(i, one) for i, outputs in enumerate(n_best, before) for one in outputs]
        alignments = model.align(sources, n_best) if self.alignments else None
        found = []
        for i, (source, outputs) in enumerate(zip(sources, n_best, strict=True)):
            hypotheses = [_hypothesis(model, one) for one in outputs]
            if alignments is not None:
                hypotheses = [
                    {**one, "alignment": pharaoh(pairs)} for one, pairs in zip(hypotheses, alignments[i], strict=True)
                ]
            found.append(_json({"source": source, "hypotheses": hypotheses}))
        return found

    def score_lines(
        self,
        model: Translator,
        sources: Sequence[str],
        targets: Sequence[str],
        options: DecodeHParams,
        scores: Sequence[float],
    ) -> Iterator[str]:
        """What is written for scored pairs, log_prob and score of each; `scores` come from `Translator.score`.

        Under tensor2tensor's rules these alone are written.
        """
        encoded = model.target_encoder.encode_batch(targets)
        for source, target, ids, score in zip(sources, targets, encoded, scores, strict=True):
            if rules_of(options).scores_per_token:
                values = {"negative_log_prob_per_token": score}
            else:
                values = {"log_prob": score, "score": score / length_penalty(len(ids) + 1, options.alpha)}
            if self.output_format == JSONL:
                rounded = {name: round(value, DIGITS) for name, value in values.items()}
                yield _json({"source": source, "target": target, **rounded})
            else:
                yield "\t".join(f"{value:.{DIGITS}f}" for value in values.values())

    def _pair(self, line: str, origin: Origin) -> tuple[str, str]:
        source, _, prefix = line.partition("\t")
        if "\t" in prefix:
            where = origin.line(0)
            raise ValueError(f"Each line must be source TAB prefix, or a source. Received: {where}: {line[:60]!r}.")
        return source, prefix


PLAIN = LineFormat()


class RecordedOutput(NamedTuple):
    """An `Output` that was written, and read again."""

    text: str
    score: float
    log_prob: float
    sequence: str
    ids: tuple[int, ...]


class OutputRecords(LineFormat):
    """A format of t2tlite's own, from which outputs can be read again as they were: a JSON array for each sentence."""

    def lines(
        self,
        model: Translator,
        sources: Sequence[str],
        n_best: Sequence[Sequence[Output]],
        options: DecodeHParams,
        before: int = 0,
    ) -> list[str]:
        """What is written for decoded sentences."""
        return [
            json.dumps([RecordedOutput(one.text, one.score, one.log_prob, one.sequence, one.ids) for one in outputs])
            for outputs in n_best
        ]

    def read(self, lines: Iterable[str]) -> list[list[RecordedOutput]]:
        """The outputs of each sentence, best first."""
        n_best = [[RecordedOutput(*values) for values in json.loads(line)] for line in lines]
        return [[one._replace(ids=tuple(one.ids)) for one in outputs] for outputs in n_best]


def _json(value: dict[str, object]) -> str:
    """An object on one line, also for programs to which a line ends at one of these characters."""
    text = json.dumps(value, ensure_ascii=False)
    for mark in "\x85\u2028\u2029":
        text = text.replace(mark, f"\\u{ord(mark):04x}")
    return text


def _moses(number: int, output: Output) -> str:
    """A line of an n-best list in Moses's format: number, text, named values, the score that orders the list."""
    return f"{number} ||| {output.text} ||| log_prob= {output.log_prob:.{DIGITS}f} ||| {output.score:.{DIGITS}f}"


def _hypothesis(model: Translator, output: Output) -> dict[str, object]:
    return {
        "text": output.text,
        "log_prob": round(output.log_prob, DIGITS),
        "score": round(output.score, DIGITS),
        "tokens": model.target_encoder.pieces(output.ids),
    }
