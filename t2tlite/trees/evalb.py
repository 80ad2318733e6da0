"""Labelled bracketing scores of parse trees, equal to those of EVALB (Sekine and Collins, 1997) with COLLINS.prm.

A bracket is a label over a span of words. Recall is the share of the gold brackets that the prediction has too,
precision the share of the predicted brackets that are gold, F1 their harmonic mean; all are taken over the brackets of
all sentences together. What EVALB compares, in the order in which it happens:

1. Words whose tag is among `delete_labels` are taken out: punctuation and traces. Spans count only the words left.
2. A sentence whose prediction has no words left is skipped. One whose words then differ from gold's is an error.
   Neither counts in any score but for the numbers of sentences.
3. Brackets without words are dropped. Labels end before their first "-" or "=": NP-SBJ is NP, NP=2 is NP. Then
   brackets among `delete_labels` are dropped (TOP), but not what is in them.
4. Each gold bracket takes one predicted bracket of the same span and label, so (NP (NP x)) has two.
5. A predicted bracket crosses if it overlaps some gold bracket with neither inside the other.
6. Tags are compared whole, among the words left.

Where EVALB crashes (200 words or brackets, labels of 30 characters) or gives up (the twelfth error), scores go on here.
Where it prints an F-measure of nan, this is 0.
"""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from t2tlite.files.text_files import read_lines
from t2tlite.trees.evalb_parameters import COLLINS, EvalbParameters
from t2tlite.trees.tree import Tree, parse_tree

SCORED, ERROR, SKIPPED = 0, 1, 2  # EVALB's status of a sentence

# Label of a node that stands for the several trees of a line, or for none. It is no bracket, and no file can hold it.
FOREST = "()"

QUOTE_MARKS = frozenset({"'", '"', "/"})  # the words that EVALB's QUOTE_LABEL is about


@dataclass(frozen=True)
class SentenceScore:
    """A line of EVALB's table. An error or a skipped sentence has only a length and a status."""

    length: int  # words of gold, punctuation included, traces not
    status: int = SCORED  # or ERROR or SKIPPED
    matched: int = 0  # brackets in both
    gold: int = 0  # brackets
    predicted: int = 0  # brackets
    crossing: int = 0  # predicted brackets that cross a gold one
    words: int = 0  # compared, so without punctuation
    correct_tags: int = 0
    message: str = ""  # what is wrong with an error sentence, in EVALB's words

    @property
    def recall(self) -> float:
        """In percent; 0 where gold has no brackets."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """In percent; 0 where the prediction has no brackets."""
        return _percent(self.matched, self.predicted)

    @property
    def tagging_accuracy(self) -> float:
        """In percent."""
        return _percent(self.correct_tags, self.words)

    @property
    def is_complete(self) -> bool:
        """Whether the brackets are those of gold, and no others."""
        return self.matched == self.gold == self.predicted


@dataclass(frozen=True)
class ParsingScore:
    """A summary as EVALB prints it; `str(score)` is its text."""

    sentences: int
    errors: int  # the words are not those of gold
    skipped: int  # the prediction has no words
    valid: int  # the rest, over which all that follows is taken
    recall: float  # percent, as is all that follows except average_crossing
    precision: float
    f1: float
    complete_match: float
    average_crossing: float  # brackets a sentence
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float

    def __str__(self) -> str:
        return "\n".join(
            (
                f"Number of sentence        = {self.sentences:6d}",
                f"Number of Error sentence  = {self.errors:6d}",
                f"Number of Skip  sentence  = {self.skipped:6d}",
                f"Number of Valid sentence  = {self.valid:6d}",
                f"Bracketing Recall         = {self.recall:6.2f}",
                f"Bracketing Precision      = {self.precision:6.2f}",
                f"Bracketing FMeasure       = {self.f1:6.2f}",
                f"Complete match            = {self.complete_match:6.2f}",
                f"Average crossing          = {self.average_crossing:6.2f}",
                f"No crossing               = {self.no_crossing:6.2f}",
                f"2 or less crossing        = {self.two_or_less_crossing:6.2f}",
                f"Tagging accuracy          = {self.tagging_accuracy:6.2f}",
            )
        )


def evalb(
    gold: Sequence[Tree], predicted: Sequence[Tree | None], parameters: EvalbParameters = COLLINS
) -> tuple[ParsingScore, ParsingScore]:
    """Scores predicted trees against gold trees.

    Args:
        gold: one tree a sentence. An outer bracket without a label is scored like any other; name it TOP.
        predicted: as many, in the same order; None where there is no parse.

    Returns:
        The summary of all sentences, and that of those up to `parameters.cutoff_length` words.

    Raises:
        ValueError: there are not as many predicted trees as gold trees.
    """
    if len(gold) != len(predicted):
        raise ValueError(
            f"Each gold tree must have a predicted one. Received: {len(gold)} gold, {len(predicted)} predicted. "
            "Give None where there is no parse."
        )
    scores = [score_sentence(g, p, parameters) for g, p in zip(gold, predicted, strict=True)]
    return summarise(scores), summarise(scores, parameters.cutoff_length)


def score_sentence(gold: Tree, predicted: Tree | None, parameters: EvalbParameters = COLLINS) -> SentenceScore:
    """Compares a predicted tree with the gold tree of its sentence; the module's docstring says how."""
    reference = _Parse(gold, parameters)
    length = sum(tag not in parameters.delete_labels_for_length for tag in reference.tags)
    parse = None if predicted is None else _Parse(predicted, parameters)
    if parse is None or not any(parse.kept):
        return SentenceScore(length, SKIPPED)
    if sum(reference.kept) != sum(parse.kept):
        _restore_quotes(reference, parse, parameters)
    gold_words, words = reference.kept_words(), parse.kept_words()
    if len(gold_words) != len(words):
        return SentenceScore(length, ERROR, message=f"Length unmatch ({len(gold_words)}|{len(words)})")
    for (gold_word, _), (word, _) in zip(gold_words, words, strict=True):
        if not parameters.same_word(gold_word, word):
            return SentenceScore(length, ERROR, message=f"Words unmatch ({gold_word}|{word})")
    gold_brackets, brackets = reference.scored_brackets(parameters), parse.scored_brackets(parameters)
    return SentenceScore(
        length,
        matched=_count_matched(gold_brackets, brackets, parameters),
        gold=len(gold_brackets),
        predicted=len(brackets),
        crossing=_count_crossing(gold_brackets, brackets, len(words)),
        words=len(words),
        correct_tags=sum(parameters.same_label(g[1], p[1]) for g, p in zip(gold_words, words, strict=True)),
    )


def summarise(scores: Sequence[SentenceScore], max_length: int | None = None) -> ParsingScore:
    """Sums up the scores of sentences, or of those of at most `max_length` words of gold."""
    scores = [s for s in scores if max_length is None or s.length <= max_length]
    valid = [s for s in scores if s.status == SCORED]
    total = total_counts(valid)
    both = total.precision + total.recall
    return ParsingScore(
        sentences=len(scores),
        errors=sum(s.status == ERROR for s in scores),
        skipped=sum(s.status == SKIPPED for s in scores),
        valid=len(valid),
        recall=total.recall,
        precision=total.precision,
        f1=2 * total.precision * total.recall / both if both else 0.0,
        complete_match=_percent(sum(s.is_complete for s in valid), len(valid)),
        average_crossing=total.crossing / len(valid) if valid else 0.0,
        no_crossing=_percent(sum(s.crossing == 0 for s in valid), len(valid)),
        two_or_less_crossing=_percent(sum(s.crossing <= 2 for s in valid), len(valid)),
        tagging_accuracy=total.tagging_accuracy,
    )


def total_counts(scores: Sequence[SentenceScore]) -> SentenceScore:
    """The counts of all sentences together."""
    names = ("length", "matched", "gold", "predicted", "crossing", "words", "correct_tags")
    return SentenceScore(**{name: sum(getattr(s, name) for s in scores) for name in names})


def read_parses(path: str | Path) -> Iterator[Tree]:
    """Yields the parse of each line of a file, as EVALB takes it.

    A line of several trees, or without words (blank, or "(())" as some parsers write for a failure), gives a node
    FOREST with the trees of that line, which is none.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: a line is not UTF-8 or not bracketed text; the message names file and line.
    """
    for number, line in enumerate(read_lines(path), start=1):
        try:
            trees = tuple(parse_tree(text) for text in _split_trees(line))
        except ValueError as error:
            problem = str(error).removeprefix("the text, line 1: ")
            raise ValueError(f"{path}, line {number}: {problem}") from None
        yield trees[0] if len(trees) == 1 else Tree(FOREST, trees)


class _Parse:
    """A tree's words in order and its brackets, and which words EVALB keeps."""

    def __init__(self, tree: Tree, parameters: EvalbParameters) -> None:
        self.words: list[str] = []
        self.tags: list[str] = []
        self.brackets: list[tuple[str, int, int]] = []  # label, first word, one past the last; outer brackets first
        stack: list[Tree | str | int] = [tree]
        while stack:  # no recursion: trees can be deeper than Python's stack
            node = stack.pop()
            if isinstance(node, int):  # the end of bracket number `node`
                label, start, _ = self.brackets[node]
                self.brackets[node] = (label, start, len(self.words))
            elif isinstance(node, str):
                raise ValueError(f"A word must be the only child of its bracket. Received: {node!r}. Give it a tag.")
            elif node.is_preterminal:
                self.tags.append(node.label)
                self.words.append(str(node.children[0]))
            else:
                if node.label != FOREST:
                    stack.append(len(self.brackets))
                    self.brackets.append((node.label, len(self.words), 0))
                stack.extend(reversed(node.children))
        self.kept = [tag not in parameters.delete_labels for tag in self.tags]

    def kept_words(self) -> list[tuple[str, str]]:
        """The words that are compared, each with its tag."""
        return list(itertools.compress(zip(self.words, self.tags, strict=True), self.kept))

    def scored_brackets(self, parameters: EvalbParameters) -> list[tuple[str, int, int]]:
        """The brackets that are compared, with spans in kept words, outer brackets first."""
        position = [0, *itertools.accumulate(self.kept)]
        brackets = []
        for label, start, end in self.brackets:
            label = re.split("[-=]", label, maxsplit=1)[0]
            if position[start] < position[end] and label not in parameters.delete_brackets:
                brackets.append((label, position[start], position[end]))
        return brackets


def _restore_quotes(gold: _Parse, predicted: _Parse, parameters: EvalbParameters) -> None:
    """Keeps a quotation mark on both sides where one side would delete it and the other took it for a word.

    A mark has its place among the kept words; marks at the same place on both sides are taken for the same one.
    (Of two marks in a row EVALB may put the first in twice, and lose step; here each is put in once.)
    """

    def marks(parse: _Parse) -> list[int]:
        pairs = enumerate(zip(parse.words, parse.tags, strict=True))
        return [i for i, (word, tag) in pairs if word in QUOTE_MARKS and tag in parameters.quote_labels]

    for i, j in itertools.product(marks(predicted), marks(gold)):
        if predicted.kept[i] != gold.kept[j] and sum(predicted.kept[:i]) == sum(gold.kept[:j]):
            predicted.kept[i] = gold.kept[j] = True


def _count_matched(
    gold: list[tuple[str, int, int]], predicted: list[tuple[str, int, int]], parameters: EvalbParameters
) -> int:
    """Gold brackets that find a predicted one of their own: the first one left that fits."""
    unmatched: dict[tuple[int, int], list[str]] = defaultdict(list)
    for label, start, end in predicted:
        unmatched[start, end].append(label)
    matched = 0
    for gold_label, start, end in gold:
        labels = unmatched.get((start, end), [])
        for index, label in enumerate(labels):
            if not parameters.labelled or parameters.same_label(gold_label, label):
                del labels[index]
                matched += 1
                break
    return matched


def _count_crossing(gold: list[tuple[str, int, int]], predicted: list[tuple[str, int, int]], num_words: int) -> int:
    """Predicted brackets that cross a gold one: some gold bracket starts inside and ends outside, or the reverse."""
    last_end = [0] * (num_words + 1)  # by start
    first_start = [num_words] * (num_words + 1)  # by end
    for _, start, end in gold:
        last_end[start] = max(last_end[start], end)
        first_start[end] = min(first_start[end], start)
    return sum(
        max(last_end[start + 1 : end], default=0) > end or min(first_start[start + 1 : end], default=num_words) < start
        for _, start, end in predicted
    )


def _split_trees(line: str) -> Iterator[str]:
    """Yields the bracketed parts of a line that hold more than brackets, and then whatever is left of it."""
    depth = begin = 0
    for bracket in re.finditer("[()]", line):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            text = line[begin : bracket.end()]
            if text.strip("() \t"):
                yield text
            begin = bracket.end()
    if line[begin:].strip():
        yield line[begin:]  # no tree: `parse_tree` says what is wrong with it


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
