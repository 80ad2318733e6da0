"""Translation: a decoded sequence is the translation, and the metric is sacrebleu's BLEU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from t2tlite.metrics.bleu import corpus_bleu
from t2tlite.tasks.task import Candidate, Output, Score, Task


class Translation(NamedTuple):
    """One translation of a sentence."""

    text: str
    score: float  # log-probability / length penalty

    @property
    def sequence(self) -> str:
        """The text as it was decoded."""
        return self.text


class TranslationTask(Task):
    """Sentences to sentences."""

    name = "translation"
    outputs = "translations"
    labels = ("source", "translation", "reference")

    def choose(self, source: str, hypotheses: Sequence[Candidate], wanted: int) -> list[Output]:
        """The hypotheses themselves, highest score first."""
        return [Translation(*hypothesis) for hypothesis in hypotheses[:wanted]]

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """BLEU, cased, with sacrebleu's standard tokenisation 13a."""
        bleu = corpus_bleu(sequences, references)
        return Score("BLEU", {"BLEU": bleu.score}, bleu.signature)
