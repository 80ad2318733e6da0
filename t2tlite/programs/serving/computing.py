"""Texts on their way to a translation: split into sentences, and put together again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from t2tlite.config import DecodeHParams
from t2tlite.decoding.alignment import pharaoh
from t2tlite.programs.documents.html_text import Translated
from t2tlite.programs.documents.sentences import SplitText, split_text
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.models import AlignedOutput, Decoding, ServedModel
from t2tlite.programs.serving.options import MAX_HYPOTHESES
from t2tlite.programs.serving.schemas import Hypothesis, TranslatedSegment, Translation


def check_hypotheses(sentences: int, each: int) -> None:
    """RequestError 413 if a request has too many sentences times hypotheses."""
    if sentences * each > MAX_HYPOTHESES:
        raise RequestError(
            413,
            f"A request must have at most {MAX_HYPOTHESES:,} hypotheses. Received:"
            f" {sentences:,} sentences with {each} each. Split the text, or ask for"
            " one translation of each sentence.",
        )


class TranslationJob:
    """The sentences of some texts, and what is made of their outputs.

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
        self.function = Decoding(model, options, aligned)
        self.texts = [split_text(text, model.source) for text in texts]
        self.sentences = [
            segment.sentence for text in self.texts for segment in text.segments
        ]
        check_hypotheses(len(self.sentences), options.return_beams)
        self.tokens = model.search_token_counts(self.sentences, options.beam_size)
        self._n_best = n_best

    def hypotheses(self, outputs: Sequence[AlignedOutput]) -> list[Hypothesis]:
        """The n-best list of a sentence."""
        hypotheses = []
        for output, alignment in outputs[: self._n_best]:
            hypothesis = Hypothesis(
                text=output.text,
                score=output.score,
                log_prob=output.log_prob,
                alignment=None if alignment is None else pharaoh(alignment),
            )
            hypotheses.append(hypothesis)
        return hypotheses

    def assemble(self, results: Sequence[Sequence[AlignedOutput]]) -> list[Translation]:
        """The texts with the outputs of all their sentences."""
        translations = []
        for text, outputs in self._by_text(results):
            segments = [
                TranslatedSegment(
                    source=sentence,
                    before=before,
                    hypotheses=self.hypotheses(hypotheses),
                )
                for (before, sentence), hypotheses in zip(
                    text.segments, outputs, strict=True
                )
            ]
            whole = text.join([hypotheses[0].output.text for hypotheses in outputs])
            translations.append(
                Translation(text=whole, segments=segments, after=text.after)
            )
        return translations

    def _by_text(
        self, results: Sequence[Sequence[AlignedOutput]]
    ) -> Iterator[tuple[SplitText, Sequence[Sequence[AlignedOutput]]]]:
        """Each text with the outputs of its sentences."""
        start = 0
        for text in self.texts:
            end = start + len(text.segments)
            yield text, results[start:end]
            start = end

    def at_rank(
        self, results: Sequence[Sequence[AlignedOutput]], rank: int
    ) -> Iterator[Translated]:
        """Each text with, of each of its sentences, the output of this rank, counted
        from 0, or the last one.
        """
        for text, outputs in self._by_text(results):
            chosen = [
                hypotheses[min(rank, len(hypotheses) - 1)] for hypotheses in outputs
            ]
            yield text, [(output.text, alignment or []) for output, alignment in chosen]
