"""Translation: a decoded sequence is the translation, and the metric is sacrebleu's BLEU."""

from __future__ import annotations

from collections.abc import Sequence

from t2tlite.metrics.bleu import corpus_bleu
from t2tlite.tasks.task import Score, Task


class TranslationTask(Task):
    """Sentences to sentences."""

    name = "translation"
    outputs = "translations"
    labels = ("source", "translation", "reference")

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """BLEU, cased, with sacrebleu's standard tokenisation 13a."""
        bleu = corpus_bleu(sequences, references)
        return Score("BLEU", {"BLEU": bleu.score}, bleu.signature)
