"""Constituency parsing (section 6.3): decoded sequences become trees over the sentence's words, scored as by EVALB."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2tlite.tasks.task import Hypothesis, Output, Score, Task, TranslationTask
from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import NORMALISED, Linearisation, find_linearisation
from t2tlite.trees.restore import tree_word
from t2tlite.trees.tree import Tree, format_tree

EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"


class Parse(NamedTuple):
    """One parse of a sentence."""

    tree: Tree | None  # over the sentence's words, under TOP; None for a blank sentence
    score: float  # log-probability / length penalty
    repairs: Counter[str]  # of the sequence (trees/restore.py); empty for most
    sequence: str  # as it was decoded

    @property
    def text(self) -> str:
        """The tree in brackets, on one line."""
        return "" if self.tree is None else format_tree(self.tree)


@dataclasses.dataclass(frozen=True)
class ParsingTask(Task):
    """Sentences to trees."""

    linearisation: Linearisation = NORMALISED  # how the problem writes its trees

    name = "parsing"
    outputs = "trees"
    labels = ("source", "parse", "gold")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Task:
        """The task of a parsing problem; a problem of the user's may have no option `linearisation`."""
        return cls(find_linearisation(options.get("linearisation", NORMALISED.name)))

    def source(self, sentence: str) -> str:
        """The words separated by single spaces, brackets written -LRB- and -RRB-."""
        return " ".join(map(tree_word, sentence.split()))

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """The whole beam: the most probable sequence is often one that leaves words out."""
        return beam_size

    def choose(self, source: str, hypotheses: Sequence[Hypothesis], wanted: int) -> list[Output]:
        """Parses: those first whose words and tags differ least from the sentence's, by score among equals.

        A sequence that leaves words out is often more probable than one with all of them.
        """
        words = source.split()
        if not words:
            return [Parse(None, one.score, Counter(), one.text) for one in hypotheses[:wanted]]
        parses: list[tuple[int, Parse]] = []
        for text, score in hypotheses:
            restored = self.linearisation.read(text, words)
            parses.append((restored.misaligned, Parse(restored.tree, score, restored.repairs, text)))
            if sum(not misaligned for misaligned, _ in parses) == wanted:
                break  # no later hypothesis is better than these, and restoring trees takes time
        return [parse for _, parse in sorted(parses, key=lambda pair: pair[0])[:wanted]]

    def reference(self, source: str, reference: str) -> str:
        """The gold tree in brackets."""
        return format_tree(self.linearisation.read(reference, source.split(), fit_tags=False).tree)

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """Labelled bracketing scores of the trees, as EVALB computes them; no source may be blank."""
        words = [source.split() for source in sources]
        read = self.linearisation.read
        gold = [read(text, w, fit_tags=False).tree for text, w in zip(references, words, strict=True)]
        predicted = [read(text, w).tree for text, w in zip(sequences, words, strict=True)]
        score, _ = evalb(gold, predicted)
        scores = {
            "F1": score.f1,
            "recall": score.recall,
            "precision": score.precision,
            "complete match": score.complete_match,
            "unscored sentences": score.errors + score.skipped,
        }
        if self.linearisation.has_tags:  # otherwise nearly all tags are XX
            scores["tagging accuracy"] = score.tagging_accuracy
        return Score("F1", scores, EVALB_SIGNATURE)

    def summary(self, outputs: Sequence[Output]) -> str:
        """How many sequences had to be repaired to make trees of them, and how."""
        repairs = [output.repairs for output in outputs if isinstance(output, Parse)]
        kinds, count = sum(repairs, Counter()), sum(map(bool, repairs))
        listed = ", ".join(f"{name} {times:,}" for name, times in kinds.most_common())
        return f"Sequences repaired to make trees: {count:,} of {len(outputs):,}" + (f" ({listed})" if listed else "")

    def parser(self, problem: str) -> Task:
        """This task."""
        return self

    def as_sequences(self) -> Task:
        """Sequences are not made into trees, but scored in the same way."""
        return SequenceTask(self)


@dataclasses.dataclass(frozen=True)
class SequenceTask(TranslationTask):
    """Sentences to linearised trees, left as they are decoded (as tensor2tensor's decoder does) but scored as trees."""

    parsing: ParsingTask

    outputs = "sequences"

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """The scores of the trees that the sequences stand for."""
        return self.parsing.score(sources, references, sequences)
