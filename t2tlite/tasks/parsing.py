"""Constituency parsing (section 6.3): decoded sequences become trees over the sentence's words, scored as by EVALB."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from t2tlite.tasks.task import Candidate, Output, Score, Task
from t2tlite.tasks.translation import Translation
from t2tlite.trees.evalb import evalb
from t2tlite.trees.restore import Restored, restore, t2t_restore, tree_word
from t2tlite.trees.tree import Tree, format_tree

EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"


class Parse(NamedTuple):
    """One parse of a sentence."""

    tree: Tree | None  # over the sentence's words, under TOP; None for a blank sentence
    score: float  # log-probability / length penalty
    repairs: Counter[str]  # what had to be done to make a tree of the sequence (trees/restore.py); empty for most
    sequence: str  # as it was decoded

    @property
    def text(self) -> str:
        """The tree in brackets, on one line."""
        return "" if self.tree is None else format_tree(self.tree)


@dataclasses.dataclass(frozen=True)
class ParsingTask(Task):
    """Sentences to trees.

    Attributes:
        linearisation: how the problem writes its trees (`ParsingProblem.linearisation`).
    """

    linearisation: str = "normalised"

    name = "parsing"
    outputs = "trees"
    labels = ("source", "parse", "gold")

    @classmethod
    def from_options(cls, options: Mapping[str, Any]) -> Task:
        """The task of a parsing problem; a problem of the user's may have no option `linearisation`."""
        return cls(options.get("linearisation", "normalised"))

    def source(self, sentence: str) -> str:
        """The words separated by single spaces, brackets written -LRB- and -RRB-."""
        return " ".join(map(tree_word, sentence.split()))

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """The whole beam: the most probable sequence is often one that leaves words out."""
        return beam_size

    def choose(self, source: str, hypotheses: Sequence[Candidate], wanted: int) -> list[Output]:
        """Parses, those first whose words and tags are most nearly the sentence's, by score among equals."""
        words = source.split()
        if not words:
            return [Parse(None, one.score, Counter(), one.text) for one in hypotheses[:wanted]]
        ranked = self.rank([one.text for one in hypotheses], words, wanted)
        return [Parse(made.tree, hypotheses[i].score, made.repairs, hypotheses[i].text) for i, made in ranked]

    def rank(self, sequences: Sequence[str], words: Sequence[str], wanted: int = 1) -> list[tuple[int, Restored]]:
        """The trees of a sentence's decoded sequences, those first whose words and tags are most nearly the sentence's.

        A sequence that leaves words out is often more probable than one with all of them.

        Args:
            sequences: as decoded, the most probable one first; that order stays among equals.
            words: of the sentence; at least one.
            wanted: how many to return at most.

        Returns:
            (place in `sequences`, tree) of each.
        """
        trees: list[tuple[int, Restored]] = []
        fitting = 0
        for number, sequence in enumerate(sequences):
            trees.append((number, self.tree(sequence, words)))
            fitting += not trees[-1][1].misaligned
            if fitting == wanted:  # none of the rest comes before these, and making trees takes time
                break
        return sorted(trees, key=lambda tree: tree[1].misaligned)[:wanted]

    def tree(self, sequence: str, words: Sequence[str], fit_tags: bool = True) -> Restored:
        """The tree of a linearised sequence over the given words; `trees.restore.restore` states the rules.

        Args:
            sequence: as decoded.
            words: of the sentence; at least one.
            fit_tags: correct tags of punctuation; False for gold trees.
        """
        if self.linearisation == "t2t":
            return t2t_restore(sequence, words, fit_tags)
        return restore(sequence, words, fit_tags, "words" if self.linearisation == "words" else "normalised")

    def reference(self, source: str, reference: str) -> str:
        """The gold tree in brackets."""
        return format_tree(self.tree(reference, source.split(), fit_tags=False).tree)

    def score(self, sources: Sequence[str], references: Sequence[str], sequences: Sequence[str]) -> Score:
        """Labelled bracketing scores of the trees, as EVALB computes them; no source may be blank."""
        words = [source.split() for source in sources]
        rows = zip(references, sequences, words, strict=True)
        trees = [(self.tree(r, w, fit_tags=False).tree, self.tree(s, w).tree) for r, s, w in rows]
        score, _ = evalb([gold for gold, _ in trees], [predicted for _, predicted in trees])
        scores = {
            "F1": score.f1,
            "recall": score.recall,
            "precision": score.precision,
            "complete match": score.complete_match,
            "unscored sentences": score.errors + score.skipped,
        }
        if self.linearisation in ("tags", "t2t"):  # otherwise nearly all tags are XX
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
        return SequenceTask(self.linearisation)


class SequenceTask(ParsingTask):
    """Sentences to linearised trees, left as they are decoded: what tensor2tensor's decoder writes."""

    outputs = "sequences"
    labels = ("source", "translation", "reference")

    def source(self, sentence: str) -> str:
        """The sentence as it is."""
        return sentence

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """As many as are wanted."""
        return wanted

    def choose(self, source: str, hypotheses: Sequence[Candidate], wanted: int) -> list[Output]:
        """The hypotheses themselves, highest score first."""
        return [Translation(*hypothesis) for hypothesis in hypotheses[:wanted]]

    def reference(self, source: str, reference: str) -> str:
        """The linearised gold tree."""
        return reference

    def summary(self, outputs: Sequence[Output]) -> str:
        """Nothing was repaired."""
        return ""
