"""What bulk decoding does with the lines of a window, decoding or scoring, and how the
outputs are written.
"""

import dataclasses
import functools
import json
import math
import time
from collections import Counter
from collections.abc import Iterator, Mapping

import t2tlite
from t2tlite.config import DecodeHParams
from t2tlite.decoding.glossary import Glossary, terms_of
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.atomic_file import text_sha256
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.programs.bulk.part import KEY_DIGITS, WHOLE, Window, WindowOutput
from t2tlite.programs.runs.translator import Translator
from t2tlite.tasks.parsing import parser, penn_words
from t2tlite.tasks.task import Output

TEXT, NBEST, JSONL = "text", "nbest", "jsonl"  # formats of output
DECIMALS = 6  # of log-probabilities and scores after the point
# forms of input lines
PREFIXED, PAIR = "source TAB prefix, or a source", "source TAB target"
UNSCORED = Output("", math.nan, math.nan)

# the sources of lines, and the texts behind their TABs, if the lines have these
Columns = tuple[list[str], list[str] | None]
# the terms of a glossary that each sentence has; empty without one
SentenceTerms = list[list[str]]
# sources, the outputs of each, and the terms that these should have
WindowOutputs = tuple[list[str], list[list[Output]], SentenceTerms]


@dataclasses.dataclass(frozen=True)
class LineFormat:
    """What lines of the input have, and lines of the output."""

    # TEXT, NBEST or JSONL; "" is text, or nbest if return_beams is above 1
    output_format: str = ""
    alignments: bool = False  # word alignments in JSON
    prefixes: bool = False  # an input line is "source TAB prefix", or a source alone
    raw_text: bool = False  # of a parser: punctuation is separated from words first
    glossary: Glossary | None = None  # terms that the outputs have


@dataclasses.dataclass(frozen=True)
class DecodeJob:
    """Decodes sentences, or lines "source TAB prefix", of files, pipes and splits.

    Raises ValueError for raw text with a model that does not parse, and for a glossary
    that the model cannot use.
    """

    model: Translator
    options: DecodeHParams
    line_format: LineFormat = LineFormat()

    def __post_init__(self) -> None:
        if self.line_format.raw_text:
            parser(self.model.task, self.model.manifest.name)
        if self.line_format.glossary:
            self.model.check_glossary(self.line_format.glossary)

    @property
    def depends_on_batch(self) -> bool:
        """Whether the output of a line also depends on what is decoded with it."""
        return rules_of(self.options).depends_on_batch

    def window_size(self, size: int) -> int:
        """How many lines a window has: at least `size` and batch_size, or all if
        outputs depend on what is decoded together.
        """
        if self.depends_on_batch:
            return WHOLE
        return max(size, self.options.batch_size)

    def key(self, window: Window) -> str:
        """A hash of a window's lines and of everything else that its output depends
        on.
        """
        return text_sha256(f"{self._provenance} {window.lines!r}")[:KEY_DIGITS]

    @functools.cached_property
    def _provenance(self) -> str:
        """What an output depends on in addition to its line."""
        checkpoints = self.model.checkpoint, *self.model.others
        engine = self.model.engine
        parts = (
            type(self).__name__,
            t2tlite.__version__,
            list(map(checkpoint_identity, checkpoints)),
            engine.name,
            engine.quantization,
            self.options,
            # not of how it is written
            dataclasses.replace(self.line_format, output_format=""),
        )
        return repr(parts)

    def check(self, window: Window) -> None:
        """Raises ValueError where a line does not have its format or is too long; the
        message names it.
        """
        sources, texts = self._columns(window)
        self.model.check_lengths(sources, window.origin, texts or ())
        if self.line_format.prefixes:
            self.model.check_spelled(texts or (), window.origin.line)

    def run(self, window: Window, done: Done = lambda count: None) -> WindowOutput:
        """Decodes a window; `done` is called as by `TextDecoder.decode`. Raises as
        `check`.
        """
        started = time.monotonic()
        sources, n_best, terms = self._outputs(window, done)
        best = [outputs[0] for outputs in n_best if outputs]
        counts = self.model.task_under(self.options).tally(best)
        counts["sentences"] = len(sources)
        # with the EOS of each
        counts["tokens"] = len(best) + sum(len(output.ids) for output in best)
        counts["milliseconds"] = round(1000 * (time.monotonic() - started))
        counts["unknown"] = sum(map(self._has_unknown, sources, n_best))
        for wanted, outputs in zip(terms, n_best, strict=False):
            counts["terms"] += len(wanted)
            counts["kept"] += sum(term in outputs[0].text for term in wanted)
        return WindowOutput(sources, n_best, dict(counts))

    def _has_unknown(self, source: str, outputs: list[Output]) -> bool:
        """Whether the vocabulary lacks a part of the text that was given."""
        encoder = self.model.source_encoder
        if encoder.unknown is None:
            return False
        return encoder.unknown in encoder.encode(self.model.task.source(source))

    def _columns(self, window: Window) -> Columns:
        if self.line_format.prefixes:
            return _columns(window, PREFIXED)
        if self.line_format.raw_text:
            return list(map(penn_words, window.lines)), None
        return window.lines, None

    def _outputs(self, window: Window, done: Done) -> WindowOutputs:
        sources, prefixes = self._columns(window)
        terms = terms_of(self.line_format.glossary, sources)
        n_best = self.model.decode(
            sources,
            self.options,
            done,
            window.origin,
            prefixes,
            terms,
        )
        if self.line_format.alignments:
            n_best = self.model.aligned(sources, n_best)
        return sources, n_best, terms or []

    def lines(self, decoded: WindowOutput, first_number: int = 0) -> Iterator[str]:
        """Yields what is written for sources, which are numbered from `first_number`,
        and their outputs.
        """
        rows = zip(decoded.sources, decoded.n_best, strict=True)
        for number, (source, outputs) in enumerate(rows, first_number):
            yield from self._written(number, source, outputs)

    def _written(
        self, number: int, source: str, outputs: list[Output]
    ) -> Iterator[str]:
        default = NBEST if self.options.return_beams > 1 else TEXT
        output_format = self.line_format.output_format or default
        if output_format == TEXT:
            yield outputs[0].text
        elif output_format == NBEST:  # as Moses writes it
            for output in outputs:
                log_prob = f"log_prob= {_decimals(output.log_prob)}"
                score = _decimals(output.score)
                yield f"{number} ||| {output.text} ||| {log_prob} ||| {score}"
        else:
            hypotheses = []
            for output in outputs:
                tokens = self.model.target_encoder.pieces(output.ids)
                hypotheses.append(output.as_json(DECIMALS) | {"tokens": tokens})
            yield _json_line({"source": source, "hypotheses": hypotheses})

    def summary(self, counts: Mapping[str, int]) -> str:
        """Sentences and tokens per second, and what the task had to do to make the
        outputs.
        """
        of_task = Counter(counts)
        sentences = of_task.pop("sentences", 0)
        tokens = of_task.pop("tokens", 0)
        seconds = max(of_task.pop("milliseconds", 0) / 1000, 1e-9)
        speed = (
            f"{sentences:,} sentences in {seconds:.1f} s,"
            f" {sentences / seconds:,.1f} sentences/s,"
            f" {tokens / seconds:,.0f} target tokens/s"
        )
        if terms := of_task.pop("terms", 0):
            kept = of_task.pop("kept")
            speed += f"\nterms of the glossary: {kept:,} of {terms:,}"
        if unknown := of_task.pop("unknown", 0):
            speed += f"\nsentences with unknown text: {unknown:,}"
        repairs = self.model.task_under(self.options).summary(of_task)
        return f"{speed}\n{repairs}".rstrip()


class ScoreJob(DecodeJob):
    """Scores lines "source TAB target". A blank line has no output; its scores are
    written as NaN.
    """

    depends_on_batch = False

    def _has_unknown(self, source: str, outputs: list[Output]) -> bool:
        unknown = self.model.target_encoder.unknown
        in_target = any(unknown in output.ids for output in outputs)
        return in_target or super()._has_unknown(source, outputs)

    def _columns(self, window: Window) -> Columns:
        return _columns(window, PAIR)

    def _outputs(self, window: Window, done: Done) -> WindowOutputs:
        lines = [line or "\t" for line in window.lines]
        sources, targets = _columns(Window(lines, window.origin), PAIR)
        scored = self.model.score_hypotheses(sources, targets, self.options, done)
        outputs = []
        for line, output in zip(window.lines, scored, strict=True):
            outputs.append([output] if line else [])
        return sources, outputs, []

    def _written(
        self, number: int, source: str, outputs: list[Output]
    ) -> Iterator[str]:
        """The log_prob and score of a pair; under tensor2tensor's rules the score
        alone.
        """
        output = outputs[0] if outputs else UNSCORED
        values = {"log_prob": output.log_prob, "score": output.score}
        if rules_of(self.options).scores_per_token:
            values = {"negative_log_prob_per_token": output.score}
        if self.line_format.output_format != JSONL:
            yield "\t".join(map(_decimals, values.values()))
            return
        record: dict[str, object] = {"source": source, "target": output.text}
        for name, value in values.items():
            # JSON has no NaN
            record[name] = None if math.isnan(value) else round(value, DECIMALS)
        yield _json_line(record)


def _decimals(value: float) -> str:
    return f"{value:.{DECIMALS}f}"


def _columns(window: Window, form: str) -> tuple[list[str], list[str]]:
    """The source of each line, and the text after the TAB: "" where a line of PREFIXED
    has none.

    Raises ValueError, which names the line, if it does not have the form.
    """
    sources, texts = [], []
    for i, line in enumerate(window.lines):
        source, tab, text = line.partition("\t")
        if "\t" in text or not (tab or form == PREFIXED):
            raise ValueError(
                f"Each line must be {form}. Received: {window.origin.line(i)}:"
                f" {line[:60]!r}."
            )
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
