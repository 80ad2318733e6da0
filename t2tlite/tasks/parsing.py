"""Constituency parsing (section 6.3): decoded sequences become trees over the
sentence's words, scored as in EVALB.
"""

import dataclasses
from collections import Counter
from collections.abc import Mapping, Sequence

from t2tlite.registry import register_task
from t2tlite.tasks.bracketing import Bracketing, bracketing
from t2tlite.tasks.task import Output, Score, Task
from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import NORMALISED, Linearisation, find_linearisation
from t2tlite.trees.tree import format_tree, parse_tree
from t2tlite.trees.words import tree_word
from t2tlite.vocabularies.normalisation import words as split_words
from t2tlite.vocabularies.text_encoder import TextEncoder

EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"


@register_task
@dataclasses.dataclass(frozen=True)
class ParsingTask(Task):
    """Sentences to trees."""

    linearisation: Linearisation = NORMALISED  # how the problem writes its trees

    name = "parsing"
    outputs = "trees"
    references_ending = "gold"

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Task:
        """The task of a parsing problem; a problem of the user's may have no option
        `linearisation`.
        """
        name = options.get("linearisation", NORMALISED.name)
        return cls(find_linearisation(str(name)))

    def source(self, sentence: str) -> str:
        """The words separated by single spaces, brackets written -LRB- and -RRB-."""
        return " ".join(map(tree_word, split_words(sentence)))

    def constraint(self, source: str, vocabulary: TextEncoder) -> Bracketing | None:
        """Trees over the words of the source. Raises ValueError if the linearisation or
        the vocabulary has no brackets.
        """
        leaves = self.linearisation.leaves(split_words(source))
        return bracketing(leaves, vocabulary)

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """The whole beam: the most probable sequence is often one that leaves words
        out.
        """
        return beam_size

    def choose(
        self, source: str, hypotheses: Sequence[Output], wanted: int
    ) -> list[Output]:
        """Parses, in order of how little their words and tags differ from the
        sentence's; ties keep the beam's order.

        A sequence that leaves words out is often more probable than one with all of
        them.
        """
        words = split_words(source)
        if not words:
            return list(hypotheses[:wanted])
        parses: list[tuple[int, Output]] = []
        aligned = 0
        for each in hypotheses:
            restored = self.linearisation.read(each.text, words)
            parse = dataclasses.replace(
                each,
                text=format_tree(restored.tree),
                decoded=each.text,
                tree=restored.tree,
                repairs=restored.repairs,
            )
            parses.append((restored.misaligned, parse))
            aligned += restored.misaligned == 0
            if aligned == wanted:
                # no later hypothesis is better than these, and restoring trees takes
                # time
                break
        parses.sort(key=lambda pair: pair[0])
        return [parse for _, parse in parses[:wanted]]

    def reference(self, source: str, target: str) -> str:
        """The gold tree in brackets."""
        words = split_words(source)
        restored = self.linearisation.read(target, words, fit_tags=False)
        return format_tree(restored.tree)

    def score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        outputs: Sequence[Output],
        slow_metrics: bool = False,
    ) -> Score:
        """Labelled bracketing scores of the trees, as EVALB computes them; no source
        may be blank.
        """
        gold = [parse_tree(reference) for reference in references]
        # a recorded output has its tree as text
        predicted = [output.tree or parse_tree(output.text) for output in outputs]
        score = evalb(gold, predicted)
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
        """The numbers of sequences, of repaired ones, and of repairs by kind."""
        tally = Counter(sequences=len(outputs))
        for parse in outputs:
            tally["repaired"] += bool(parse.repairs)
            tally.update(parse.repairs or {})
        return tally

    def summary(self, tally: Mapping[str, int]) -> str:
        """How many sequences were repaired, and how."""
        kinds = Counter(tally)
        sequences = kinds.pop("sequences", 0)
        repaired = kinds.pop("repaired", 0)
        line = f"Sequences repaired to make trees: {repaired:,} of {sequences:,}"
        repairs = [f"{kind} {times:,}" for kind, times in kinds.most_common()]
        if repairs:
            line += f" ({', '.join(repairs)})"
        return line

    def as_sequences(self) -> Task:
        """A task whose outputs are the sequences, scored as trees."""
        return SequenceTask(self)


@dataclasses.dataclass(frozen=True)
class SequenceTask(Task):
    """Sentences to linearised trees, left as they are decoded, as in tensor2tensor, but
    scored as trees.
    """

    parsing: ParsingTask

    name = "translation"
    outputs = "sequences"

    def constraint(self, source: str, vocabulary: TextEncoder) -> Bracketing | None:
        return None

    def score(
        self,
        sources: Sequence[str],
        references: Sequence[str],
        outputs: Sequence[Output],
        slow_metrics: bool = False,
    ) -> Score:
        """As `ParsingTask.score`, of the trees that the sequences represent."""
        gold = []
        parses = []
        for source, target, output in zip(sources, references, outputs, strict=True):
            gold.append(self.parsing.reference(source, target))
            parses += self.parsing.choose(source, [output], 1)
        return self.parsing.score(sources, gold, parses)


def parser(task: Task, problem: str) -> ParsingTask:
    """The task of a problem, if it parses. Raises ValueError, naming the problem, if it
    does not.
    """
    if isinstance(task, ParsingTask):
        return task
    raise ValueError(
        f"Only a model of a parsing problem parses. Received: one of {problem}. Use"
        " translate."
    )
