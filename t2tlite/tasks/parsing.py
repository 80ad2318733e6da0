"""Constituency parsing (section 6.3): decoded sequences become trees over the
sentence's words, scored as in EVALB.
"""

import dataclasses
import re
from collections import Counter, defaultdict
from collections.abc import Mapping

from t2tlite.metrics.sequence_metrics import Counts, ShareMetric
from t2tlite.registry import register_metric, register_task
from t2tlite.tasks.bracketing import Bracketing, bracketing
from t2tlite.tasks.task import Output, Outputs, Score, Task, Texts
from t2tlite.trees.evalb import evalb, score_sentence
from t2tlite.trees.linearise import LINEARISATIONS, NORMALISED, Linearisation
from t2tlite.trees.restore import tree_word
from t2tlite.trees.tree import format_tree, parse_tree
from t2tlite.vocabularies import normalisation
from t2tlite.vocabularies.text_encoder import TextEncoder

EVALB_SIGNATURE = "EVALB, COLLINS.prm, all lengths"

# The rules of the Treebank's own tokenisation script, in its order. The spaces that
# they insert are merged at the end.
RULES = [
    (r'(^|[\s(\[{<-])["“]', r"\1 `` "),
    (r'["”]', " '' "),
    (r"(^|[\s(\[{<-])[‘`](?=\w)", r"\1 ` "),
    (r"’", "'"),
    (r"\.{3}|…", " ... "),
    (r"([;@#$%&?!])", r" \1 "),
    # not in 1,000 or 10:30
    (r"([,:])(?!\d)|(?<!\d)([,:])", r" \1\2 "),
    # the sentence's end; brackets and quotes may follow
    (r"(?<=[^.])\.(?=[\])}>\s']*$)", " . "),
    (r"([\[\](){}<>]|--+|—)", r" \1 "),
    (r"(?<=[^'\s])'(?=\s|$)", " ' "),
    (r"(?i)(?<=\w)('(?:s|m|d|ll|re|ve)|n't)(?=\W|$)", r" \1 "),
    (r"(?i)\b(can)(not)\b", r"\1 \2"),
    (r"(?i)\b(gon|wan)(na)\b", r"\1 \2"),
]


@register_metric
class F1(ShareMetric):
    """F1 of trees in brackets, as EVALB computes it."""

    def counts(self, output: str, reference: str) -> Counts:
        score = score_sentence(parse_tree(reference), parse_tree(output))
        return [2 * score.matched, score.gold + score.predicted]


@register_task
@dataclasses.dataclass(frozen=True)
class ParsingTask(Task):
    """Sentences to trees."""

    # how the problem writes its trees
    linearisation: Linearisation = NORMALISED

    name = "parsing"
    outputs = "trees"
    keeps_words = False
    references_ending = "gold"
    all_metrics = ("f1",)

    @classmethod
    def from_options(cls, options: Mapping[str, object]) -> Task:
        """The task of a parsing problem; a problem of the user's may have no option
        `linearisation`.
        """
        name = options.get("linearisation", NORMALISED.name)
        return cls(LINEARISATIONS[str(name)])

    def source(self, sentence: str) -> str:
        """The words separated by single spaces, brackets written -LRB- and -RRB-."""
        return " ".join(map(tree_word, normalisation.words(sentence)))

    def constraint(self, source: str, vocabulary: TextEncoder) -> Bracketing | None:
        """Trees over the words of the source. Raises ValueError if the linearisation or
        the vocabulary has no brackets.
        """
        leaves = self.linearisation.leaves(normalisation.words(source))
        return bracketing(leaves, vocabulary)

    def hypotheses(self, wanted: int, beam_size: int) -> int:
        """The whole beam: the most probable sequence is often one that leaves words
        out.
        """
        return beam_size

    def choose(self, source: str, hypotheses: Outputs, wanted: int) -> list[Output]:
        """Parses, in order of how little their words and tags differ from the
        sentence's; ties keep the beam's order.

        A sequence that leaves words out is often more probable than one with all of
        them.
        """
        words = normalisation.words(source)
        if not words:
            return list(hypotheses[:wanted])
        by_misaligned: dict[int, list[Output]] = defaultdict(list)
        for each in hypotheses:
            restored = self.linearisation.read(each.text, words)
            parse = dataclasses.replace(
                each,
                text=format_tree(restored.tree),
                decoded=each.text,
                tree=restored.tree,
                repairs=restored.repairs,
            )
            by_misaligned[restored.misaligned].append(parse)
            if len(by_misaligned[0]) == wanted:
                # no later hypothesis is better than these, and restoring takes time
                break
        parses = []
        for misaligned in sorted(by_misaligned):
            parses += by_misaligned[misaligned]
        return parses[:wanted]

    def reference(self, source: str, target: str) -> str:
        """The gold tree in brackets."""
        words = normalisation.words(source)
        restored = self.linearisation.read(target, words, fit_tags=False)
        return format_tree(restored.tree)

    def score(
        self,
        sources: Texts,
        references: Texts,
        outputs: Outputs,
        slow_metrics: bool = False,
    ) -> Score:
        """Labelled bracketing scores of the trees, as EVALB computes them; no source
        may be blank.
        """
        predicted = []
        # a recorded one has its tree as text
        for output in outputs:
            predicted.append(output.tree or parse_tree(output.text))
        score = evalb(list(map(parse_tree, references)), predicted)
        scores = {
            "F1": score.f1,
            "recall": score.recall,
            "precision": score.precision,
            "complete match": score.complete_match,
            "unscored sentences": score.errors + score.skipped,
        }
        # otherwise nearly all tags are XX
        if self.linearisation.has_tags:
            scores["tagging accuracy"] = score.tagging_accuracy
        return Score("F1", scores, {"F1": EVALB_SIGNATURE})

    def tally(self, outputs: Outputs) -> Counter[str]:
        """The numbers of sequences and of repaired ones."""
        tally = Counter(sequences=len(outputs))
        for output in outputs:
            tally["repaired"] += bool(output.repairs)
        return tally

    def summary(self, tally: Mapping[str, int]) -> str:
        """How many sequences were repaired."""
        sequences = tally.get("sequences", 0)
        repaired = tally.get("repaired", 0)
        return f"Sequences repaired to make trees: {repaired:,} of {sequences:,}"

    def as_sequences(self) -> Task:
        """A task whose outputs are the sequences, scored as trees."""
        return SequenceTask(self)


@dataclasses.dataclass(frozen=True)
class SequenceTask(Task):
    """Sentences to linearised trees, left as they are decoded, as in tensor2tensor, but
    scored as trees.
    """

    parsing: ParsingTask

    outputs = "sequences"

    def constraint(self, source: str, vocabulary: TextEncoder) -> Bracketing | None:
        return None

    def score(
        self,
        sources: Texts,
        references: Texts,
        outputs: Outputs,
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
        f"Only a model of a parsing problem parses. Received: one of {problem}."
    )


def penn_words(text: str) -> str:
    """Splits a sentence of English text into the Treebank's words, with single spaces
    between them.

    >>> penn_words('"I can\\'t," he said (at 10:30), "pay $1,000."')
    "`` I ca n't , '' he said ( at 10:30 ) , `` pay $ 1,000 . ''"
    """
    # a zero-width character would hide the last full stop, an accent a word's end
    text = normalisation.normalise(text)
    for pattern, replacement in RULES:
        text = re.sub(pattern, replacement, text)
    return " ".join(text.split())
