"""Constituency parsing (section 6.3): decoded sequences become trees over the
sentence's words, scored as in EVALB.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from t2tlite.registry import register_task
from t2tlite.tasks.task import Hypothesis, Output, Score, Task, TranslationTask
from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import NORMALISED, Leaf, Linearisation, find_linearisation
from t2tlite.trees.tree import Tree, format_tree
from t2tlite.trees.words import PUNCTUATION_TAGS as PUNCTUATION_TAGS
from t2tlite.trees.words import ends_in_punctuation, tree_word
from t2tlite.vocabularies.normalisation import words as split_words

REPAIR = "repair: "  # before the kind of a repair, in a tally
EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"


class Parse(NamedTuple):
    """One parse of a sentence.

    Attributes:
        tree: the tree over the sentence's words, under TOP; None for a blank sentence.
        score: the log-probability divided by the length penalty.
        log_prob: the log-probability (natural) of the decoded sequence, its EOS
            included.
        repairs: the kinds of repairs that made a tree of the sequence, and how many;
            empty for most.
        sequence: the text as it was decoded.
        ids: the ids of its tokens, without the EOS.
    """

    tree: Tree | None
    score: float
    log_prob: float
    repairs: Counter[str]
    sequence: str
    ids: tuple[int, ...] = ()

    @property
    def text(self) -> str:
        """The tree in brackets, on one line."""
        return "" if self.tree is None else format_tree(self.tree)


@register_task
@dataclasses.dataclass(frozen=True)
class ParsingTask(Task):
    """Sentences to trees."""

    linearisation: Linearisation = NORMALISED  # how the problem writes its trees

    name = "parsing"
    outputs = "trees"
    makes_trees = True
    references_ending = "gold"
    labels = ("source", "parse", "gold")

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Task:
        """The task of a parsing problem; a problem of the user's may have no option
        `linearisation`.
        """
        return cls(
            find_linearisation(str(options.get("linearisation", NORMALISED.name)))
        )

    def source(self, sentence: str) -> str:
        """The words separated by single spaces, brackets written -LRB- and -RRB-."""
        return " ".join(map(tree_word, split_words(sentence)))

    def leaves(self, source: str) -> list[Leaf] | None:
        return self.linearisation.leaves(split_words(source))

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """The whole beam: the most probable sequence is often one that leaves words
        out.
        """
        return beam_size

    def choose(
        self, source: str, hypotheses: Sequence[Hypothesis], wanted: int
    ) -> list[Output]:
        """Parses, in order of how little their words and tags differ from the
        sentence's; ties keep the beam's order.

        A sequence that leaves words out is often more probable than one with all of
        them.
        """
        words = split_words(source)
        if not words:
            blank = hypotheses[:wanted]
            return [
                Parse(None, score, log_prob, Counter(), text, ids)
                for text, score, log_prob, ids in blank
            ]
        parses: list[tuple[int, Parse]] = []
        aligned = 0
        for text, score, log_prob, ids in hypotheses:
            restored = self.linearisation.read(text, words)
            parse = Parse(restored.tree, score, log_prob, restored.repairs, text, ids)
            parses.append((restored.misaligned, parse))
            aligned += restored.misaligned == 0
            if aligned == wanted:
                # no later hypothesis is better than these, and restoring trees takes
                # time
                break
        parses.sort(key=lambda pair: pair[0])
        return [parse for _, parse in parses[:wanted]]

    def reference(self, source: str, reference: str) -> str:
        return format_tree(
            self.linearisation.read(reference, split_words(source), fit_tags=False).tree
        )

    def score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        sequences: Sequence[str],
        slow_metrics: bool = False,
    ) -> Score:
        """Labelled bracketing scores of the trees, as EVALB computes them; no source
        may be blank.
        """
        words = [split_words(source) for source in sources]
        read = self.linearisation.read
        gold = [
            read(text, w, fit_tags=False).tree
            for text, w in zip(references, words, strict=True)
        ]
        predicted = [
            read(text, w).tree for text, w in zip(sequences, words, strict=True)
        ]
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
        return Score("F1", scores, {"F1": EVALB_SIGNATURE})

    def tally(self, outputs: Sequence[Output]) -> Counter[str]:
        """The numbers of sequences, of repaired ones, of repairs by kind, of last words
        like `end.`
        """
        parses = [output for output in outputs if isinstance(output, Parse)]
        tally = Counter({"sequences": len(outputs)})
        for parse in parses:
            tally["repaired"] += bool(parse.repairs)
            tally["glued"] += parse.tree is not None and ends_in_punctuation(
                parse.tree.words()[-1]
            )
            tally.update(
                {REPAIR + kind: times for kind, times in parse.repairs.items()}
            )
        return tally

    def summary(self, tally: Mapping[str, int]) -> str:
        """How many sequences were repaired, and how; and how many sentences seem to be
        raw text.
        """
        kinds = Counter(
            {
                name.removeprefix(REPAIR): n
                for name, n in tally.items()
                if name.startswith(REPAIR)
            }
        )
        repairs = ", ".join(f"{kind} {times:,}" for kind, times in kinds.most_common())
        line = (
            f"Sequences repaired to make trees: {tally.get('repaired', 0):,} of"
            f" {tally.get('sequences', 0):,}"
        )
        if repairs:
            line += f" ({repairs})"
        glued = tally.get("glued", 0)
        if glued:
            line += (
                "\nSentences whose last word ends in punctuation, which --raw_text"
                f" would separate: {glued:,}"
            )
        return line

    def parser(self, problem: str) -> Task:
        return self

    def as_sequences(self) -> Task:
        """A task whose outputs are the sequences, scored in the same way."""
        return SequenceTask(self)


@dataclasses.dataclass(frozen=True)
class SequenceTask(TranslationTask):
    """Sentences to linearised trees, left as they are decoded, as in tensor2tensor, but
    scored as trees.
    """

    parsing: ParsingTask

    outputs = "sequences"

    def leaves(self, source: str) -> list[Leaf] | None:
        return None

    def score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        sequences: Sequence[str],
        slow_metrics: bool = False,
    ) -> Score:
        return self.parsing.score(sources, references, sequences)
