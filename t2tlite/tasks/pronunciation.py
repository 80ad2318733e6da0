"""Grapheme-to-phoneme conversion: words become their pronunciations, scored as in the
field, by the share of words that are wrong and by edits of phonemes.
"""

import dataclasses
from collections.abc import Sequence
from typing import ClassVar

from t2tlite.registry import register_task
from t2tlite.tasks.task import Output, Score, TextToTextTask

INNER_SPACE = "_"  # stands for a space inside a word, as Vietnamese has them


def letters(word: str) -> str:
    """The letters of a word as tokens, with a language tag before them as one. Letters
    that are separated already, as in a data set, stay as they are.

    >>> letters("cat"), letters("<vie> bò sữa"), letters("<vie> b ò _ s ữ a")
    ('c a t', '<vie> b ò _ s ữ a', '<vie> b ò _ s ữ a')
    """
    tag, _, rest = word.partition(" ")
    if not (tag.startswith("<") and tag.endswith(">") and rest):
        tag, rest = "", word
    parts = rest.split()
    is_separated = max(map(len, parts), default=0) <= 1
    separated = " ".join(parts if is_separated else INNER_SPACE.join(parts))
    return f"{tag} {separated}".strip()


@register_task
@dataclasses.dataclass(frozen=True)
class PronunciationTask(TextToTextTask):
    """Words to phonemes. A word that occurs in several lines of a split, with a
    pronunciation each, is scored once, against all of them.
    """

    name = "pronunciation"
    outputs = "pronunciations"
    fast_metrics: ClassVar[tuple[str, ...]] = ("exact_match", "wer", "per")
    all_metrics = fast_metrics

    def source(self, sentence: str) -> str:
        """The letters, separated by spaces."""
        return letters(sentence)

    def score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        outputs: Sequence[Output],
        slow_metrics: bool = False,
    ) -> Score:
        """Exact match, WER and PER of the different words."""
        pronunciations: dict[str, list[str]] = {}
        first: dict[str, Output] = {}
        for source, reference, output in zip(sources, references, outputs, strict=True):
            pronunciations.setdefault(source, []).append(reference)
            first.setdefault(source, output)
        most = max(map(len, pronunciations.values()), default=1)
        padded = []
        for given in pronunciations.values():
            padded.append(given + given[:1] * (most - len(given)))
        main, *more = zip(*padded, strict=True)
        scoring = self.scoring._replace(more_references=tuple(more))
        task = dataclasses.replace(self, scoring=scoring)
        return super(PronunciationTask, task).score(
            list(pronunciations), main, list(first.values()), slow_metrics
        )
