"""What the worker threads compute of sentences, and a translation from its sentences to
the translated texts.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.programs.documents.html_text import Translated
from t2tlite.programs.documents.sentences import SplitText, split_text
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.batching import Work
from t2tlite.programs.serving.models import AlignedOutput, ServedModel
from t2tlite.programs.serving.options import MAX_HYPOTHESES
from t2tlite.programs.serving.requests import RequestError

if TYPE_CHECKING:
    from t2tlite.programs.visualise.attention import Attention
    from t2tlite.tasks.parsing import Parse

NBest = Sequence[AlignedOutput]  # the outputs of a sentence, best first


@dataclasses.dataclass(frozen=True)
class Decoding:
    """Sentences to their n-best translations."""

    model: ServedModel
    options: DecodeHParams
    aligned: bool = False  # also their word alignments

    @property
    def width(self) -> int:
        return self.options.beam_size

    def run(self, items: Sequence[str]) -> list[list[AlignedOutput]]:
        return self.model.decode(items, self.options, self.aligned)


@dataclasses.dataclass(frozen=True)
class Parsing:
    """Sentences to their best parses."""

    model: ServedModel

    @property
    def width(self) -> int:
        return self.model.options.beam_size

    def run(self, items: Sequence[str]) -> list[Parse]:
        return self.model.parse(items)


@dataclasses.dataclass(frozen=True)
class Scoring:
    """Pairs of source and target to log-probabilities."""

    model: ServedModel
    width: ClassVar[int] = 1

    def run(self, items: Sequence[tuple[str, str]]) -> list[float]:
        return self.model.score(items)


@dataclasses.dataclass(frozen=True)
class Attending:
    """Pairs of a sentence and its translation, or None for the model's own, to answers.

    `answer` makes an answer from the attention, the sentence of the request, and the
    number of the tag's words before it.
    """

    model: ServedModel
    answer: Callable[[Attention, str, int], bytes]
    width: ClassVar[int] = 1

    def run(self, items: Sequence[tuple[str, str | None]]) -> list[bytes]:
        answers = []
        for source, target in items:
            attention = self.model.attention(source, target)
            answers.append(self.answer(attention, source, self.model.tag_words))
        return answers


def check_hypotheses(sentences: int, each: int) -> None:
    """Raises RequestError 413 if a request has too many sentences times hypotheses."""
    if sentences * each > MAX_HYPOTHESES:
        raise RequestError(
            413,
            f"A request must have at most {MAX_HYPOTHESES:,} hypotheses. Received:"
            f" {sentences:,} sentences with {each} each. Split the text, or ask for"
            " one translation of each sentence.",
        )


class TranslationPlan:
    """Texts split into sentences, the work to translate these, and the translated texts
    from its results.

    Raises RequestError 413 if a sentence is too long for the model or the beam, or
    there are too many hypotheses.
    """

    def __init__(
        self,
        model: ServedModel,
        texts: Sequence[str],
        options: DecodeHParams,
        n_best: int = 1,
        aligned: bool = False,
    ) -> None:
        self.texts: list[SplitText] = []
        sentences: list[str] = []
        for text in texts:
            split = split_text(text, model.source)
            self.texts.append(split)
            sentences += [segment.sentence for segment in split.segments]
        self.hypotheses_each = options.return_beams
        check_hypotheses(len(sentences), self.hypotheses_each)
        self.work = Work(
            Decoding(model, options, aligned),
            sentences,
            model.search_token_counts(sentences, options.beam_size),
        )
        self._n_best = n_best

    def hypotheses(self, outputs: NBest) -> list[schemas.TranslationHypothesis]:
        """The n-best list of a sentence."""
        hypotheses = []
        for output, alignment in outputs[: self._n_best]:
            hypothesis = schemas.TranslationHypothesis(
                text=output.text,
                score=output.score,
                log_prob=output.log_prob,
                alignment=None if alignment is None else pharaoh(alignment),
            )
            hypotheses.append(hypothesis)
        return hypotheses

    def translations(self, results: Sequence[NBest]) -> list[schemas.Translation]:
        """The texts with the n-best lists of all their sentences."""
        translations = []
        for text, n_best in self._by_text(results):
            segments = []
            best = []
            for (before, sentence), outputs in zip(text.segments, n_best, strict=True):
                hypotheses = self.hypotheses(outputs)
                segment = schemas.TranslatedSegment(
                    source=sentence, before=before, hypotheses=hypotheses
                )
                segments.append(segment)
                best.append(hypotheses[0].text)
            translation = schemas.Translation(
                text=text.join(best), segments=segments, after=text.after
            )
            translations.append(translation)
        return translations

    def at_rank(self, results: Sequence[NBest], rank: int) -> Iterator[Translated]:
        """Each text with the output of this rank, counted from 0, of each sentence; the
        last output if the list is shorter.
        """
        for text, n_best in self._by_text(results):
            chosen = []
            for outputs in n_best:
                output, alignment = outputs[min(rank, len(outputs) - 1)]
                chosen.append((output.text, alignment or []))
            yield text, chosen

    def _by_text(
        self, results: Sequence[NBest]
    ) -> Iterator[tuple[SplitText, Sequence[NBest]]]:
        """Each text with the results of its sentences."""
        start = 0
        for text in self.texts:
            end = start + len(text.segments)
            yield text, results[start:end]
            start = end
