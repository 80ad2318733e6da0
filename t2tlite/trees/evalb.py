"""Labelled bracketing scores of parse trees, equal to those of EVALB (Sekine and
Collins, 1997) with COLLINS.prm.

A bracket is a label over a span of words. Recall is the share of the gold brackets that
are predicted, precision the share of the predicted brackets that are gold, F1 their
harmonic mean, over the brackets of all sentences together. What EVALB compares, in the
order in which it happens:

1. Words whose tag is among `delete_labels` are removed: punctuation and traces. Spans
   count only the remaining words.
2. A sentence whose prediction has no words left is skipped. A sentence whose words then
   differ from gold's is an error. Both count only in the numbers of sentences.
3. Brackets without words are dropped. Labels end before their first "-" or "=": NP-SBJ
   and NP=2 are NP. Then brackets among `delete_labels` are dropped (TOP), but not what
   is in them.
4. Each gold bracket takes one predicted bracket of the same span and label, so (NP (NP
   x)) has two.
5. A predicted bracket crosses if it overlaps some gold bracket with neither inside the
   other.
6. Tags are compared whole, among the remaining words.

Where EVALB crashes (200 words or brackets, labels of 30 characters) or gives up (the
twelfth error), scoring continues. An F-measure that it prints as nan is 0.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path

from t2tlite.files.text_files import read_lines
from t2tlite.trees.evalb_parameters import COLLINS, EvalbParameters
from t2tlite.trees.tree import HEADER, OPEN, TAG, Tree, parse_tree

SCORED, ERROR, SKIPPED = 0, 1, 2  # EVALB's status of a sentence

# The label of a node for a line with several trees, or none: not a bracket, and
# impossible in a file.
FOREST = "()"
Bracket = tuple[str, int, int]  # label, first word, one past the last word

# the words to which EVALB's QUOTE_LABEL applies
QUOTE_MARKS = frozenset({"'", '"', "/"})

TABLE_HEAD = """\
  Sent.                        Matched  Bracket   Cross        Correct Tag
 ID  Len.  Stat. Recal  Prec.  Bracket gold test Bracket Words  Tags Accracy"""
TABLE_RULE = "=" * 76


@dataclass(frozen=True)
class SentenceScore:
    """A line of EVALB's table. An error or skipped sentence has only a length and a
    status.
    """

    length: int  # words of gold, with punctuation, without traces
    status: int = SCORED  # or ERROR or SKIPPED
    matched: int = 0  # brackets in both
    gold: int = 0  # brackets
    predicted: int = 0  # brackets
    crossing: int = 0  # predicted brackets that cross a gold one
    words: int = 0  # compared, thus without punctuation
    correct_tags: int = 0
    message: str = ""  # why the sentence is an error, in EVALB's words

    @property
    def recall(self) -> float:
        """Percent; 0 if gold has no brackets."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Percent; 0 if the prediction has no brackets."""
        return _percent(self.matched, self.predicted)

    @property
    def tagging_accuracy(self) -> float:
        """Percent; 0 if there are no words."""
        return _percent(self.correct_tags, self.words)


SUMMARY_LINES = (  # for the fields of ParsingScore, in their order
    "Number of sentence",
    "Number of Error sentence",
    "Number of Skip  sentence",
    "Number of Valid sentence",
    "Bracketing Recall",
    "Bracketing Precision",
    "Bracketing FMeasure",
    "Complete match",
    "Average crossing",
    "No crossing",
    "2 or less crossing",
    "Tagging accuracy",
)


@dataclass(frozen=True)
class ParsingScore:
    """A summary; `str(score)` is the text that EVALB prints."""

    sentences: int
    errors: int  # sentences whose words are not those of gold
    skipped: int  # sentences whose prediction has no words
    valid: int  # the others, over which the following values are computed
    recall: float  # percent, like all that follow except average_crossing
    precision: float
    f1: float
    complete_match: float
    average_crossing: float  # brackets per sentence
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float

    def __str__(self) -> str:
        lines = []
        for name, value in zip(SUMMARY_LINES, astuple(self), strict=True):
            number = f"{value:6d}" if isinstance(value, int) else f"{value:6.2f}"
            lines.append(f"{name:26}= {number}")
        return "\n".join(lines)


def evalb(
    gold: Sequence[Tree],
    predicted: Sequence[Tree | None],
    parameters: EvalbParameters = COLLINS,
) -> tuple[ParsingScore, ParsingScore]:
    """Scores predicted trees: of all sentences, and of those of up to
    `parameters.cutoff_length` words.

    `gold` has one tree per sentence; an outermost bracket without a label is scored
    like any other, so label it TOP. `predicted` has as many trees (otherwise
    ValueError); None is a sentence without a parse.
    """
    if len(gold) != len(predicted):
        raise ValueError(
            f"Each gold tree must have a predicted one. Received: {len(gold)} gold,"
            f" {len(predicted)} predicted. Give None for a sentence without a parse."
        )
    scores = [
        score_sentence(g, p, parameters) for g, p in zip(gold, predicted, strict=True)
    ]
    return summarise(scores), summarise(scores, parameters.cutoff_length)


def score_sentence(
    gold: Tree, predicted: Tree | None, parameters: EvalbParameters = COLLINS
) -> SentenceScore:
    """Compares a predicted tree with the gold tree of its sentence, by the steps at the
    top of this file.
    """
    reference = _Parse(gold, parameters)
    length = sum(
        tag not in parameters.delete_labels_for_length for tag in reference.tags
    )
    parse = None if predicted is None else _Parse(predicted, parameters)
    if parse is None or not any(parse.kept):
        return SentenceScore(length, SKIPPED)
    if sum(reference.kept) != sum(parse.kept):
        _restore_quotes(reference, parse, parameters)
    gold_words, words = reference.kept_words(), parse.kept_words()
    if len(gold_words) != len(words):
        return SentenceScore(
            length, ERROR, message=f"Length unmatch ({len(gold_words)}|{len(words)})"
        )
    for (gold_word, _), (word, _) in zip(gold_words, words, strict=True):
        if not parameters.same_word(gold_word, word):
            return SentenceScore(
                length, ERROR, message=f"Words unmatch ({gold_word}|{word})"
            )
    gold_brackets, brackets = (
        reference.scored_brackets(parameters),
        parse.scored_brackets(parameters),
    )
    return SentenceScore(
        length,
        matched=_count_matched(gold_brackets, brackets, parameters),
        gold=len(gold_brackets),
        predicted=len(brackets),
        crossing=_count_crossing(gold_brackets, brackets, len(words)),
        words=len(words),
        correct_tags=sum(
            parameters.same_label(g[1], p[1])
            for g, p in zip(gold_words, words, strict=True)
        ),
    )


def summarise(
    scores: Sequence[SentenceScore], max_length: int | None = None
) -> ParsingScore:
    """The summary of the sentences, or of those with at most `max_length` words of
    gold.
    """
    if max_length is not None:
        scores = [s for s in scores if s.length <= max_length]
    statuses = Counter(s.status for s in scores)
    valid = [s for s in scores if s.status == SCORED]
    complete = [s for s in valid if s.matched == s.gold == s.predicted]
    crossings = [s.crossing for s in valid]
    no_crossing = crossings.count(0)
    two_or_less_crossing = no_crossing + crossings.count(1) + crossings.count(2)
    total = total_counts(valid)
    f1 = 0.0
    if total.precision + total.recall:
        f1 = 2 * total.precision * total.recall / (total.precision + total.recall)
    return ParsingScore(
        sentences=len(scores),
        errors=statuses[ERROR],
        skipped=statuses[SKIPPED],
        valid=len(valid),
        recall=total.recall,
        precision=total.precision,
        f1=f1,
        complete_match=_percent(len(complete), len(valid)),
        average_crossing=total.crossing / len(valid) if valid else 0.0,
        no_crossing=_percent(no_crossing, len(valid)),
        two_or_less_crossing=_percent(two_or_less_crossing, len(valid)),
        tagging_accuracy=total.tagging_accuracy,
    )


def total_counts(scores: Sequence[SentenceScore]) -> SentenceScore:
    """The counts of all sentences together."""
    total = SentenceScore(length=0)
    for score in scores:
        total = SentenceScore(
            length=total.length + score.length,
            matched=total.matched + score.matched,
            gold=total.gold + score.gold,
            predicted=total.predicted + score.predicted,
            crossing=total.crossing + score.crossing,
            words=total.words + score.words,
            correct_tags=total.correct_tags + score.correct_tags,
        )
    return total


def format_table(scores: Sequence[SentenceScore]) -> str:
    """EVALB's table: a line for each sentence, and their sums, in its columns and with
    its spelling.
    """
    lines = [
        f"{i:4d}  {s.length:3d}    {s.status}  {s.recall:6.2f} {s.precision:6.2f}  "
        f" {s.matched:3d}    {s.gold:3d}  {s.predicted:3d}    {s.crossing:3d}  "
        f" {s.words:4d}  {s.correct_tags:4d}   {s.tagging_accuracy:6.2f}"
        for i, s in enumerate(scores, start=1)
    ]
    total, sums = total_counts(scores), ""
    if total.gold and total.predicted:  # without brackets EVALB leaves this part out
        sums = (
            f"                {total.recall:6.2f} {total.precision:6.2f}"
            f" {total.matched:6d} {total.gold:5d} {total.predicted:5d} "
            f" {total.crossing:5d}"
        )
    sums += (
        f"  {total.words:5d} {total.correct_tags:5d}   {total.tagging_accuracy:6.2f}"
    )
    return "\n".join([TABLE_HEAD, TABLE_RULE, *lines, TABLE_RULE, sums])


def read_parses(path: str | Path) -> list[Tree]:
    """The parses in a file: one on each line, as EVALB reads it, or over several lines.

    Several trees on a line become the children of a FOREST node, which has none for a
    line without words (blank, or "(())", some parsers' failure). A tree whose brackets
    are not closed at the end of its line continues on lines that begin with white space
    or ")", as treebanks and NLTK print trees. In a file with such trees, blank lines
    and the headers of the Penn Treebank separate trees and are not parses.

    Raises ValueError with file and line for text that is not UTF-8 or not bracketed.
    """
    texts = _tree_texts(str(path), read_lines(path))
    if any("\n" in text for _, text in texts):
        texts = [(number, text) for number, text in texts if not _separates(text)]
    return [_read_parse(text, str(path), number) for number, text in texts]


def _tree_texts(name: str, lines: Iterable[str]) -> list[tuple[int, str]]:
    """The lines in which a tree begins, by number, each with the further lines of its
    tree.
    """
    texts: list[tuple[int, str]] = []
    depth = 0  # brackets open before the line
    for number, line in enumerate(lines, start=1):
        if depth > 0 and line.startswith("("):
            raise _unclosed(name, texts[-1][0], depth, f"where line {number} begins")
        if depth > 0:
            begins, text = texts.pop()
            texts.append((begins, f"{text}\n{line}"))
        else:
            depth = 0
            texts.append((number, line))
        depth += line.count("(") - line.count(")")
    if depth > 0:
        raise _unclosed(name, texts[-1][0], depth, "at the end of the file")
    return texts


def _unclosed(name: str, number: int, depth: int, where: str) -> ValueError:
    """The error of a tree that begins on a line and has brackets open."""
    return ValueError(
        f"{name}, line {number}: every bracket must be closed. Received: a tree that"
        f" begins on this line and still has {depth} open {where}. Add the missing ) to"
        " it, or write a bracket that is itself a word as -LRB-. Write one tree per"
        " line, or indent the further lines of a tree."
    )


def _separates(text: str) -> bool:
    """Whether a line is none of a tree where trees have several lines."""
    return not text.strip() or text.lstrip().startswith(HEADER)


def _read_parse(text: str, name: str, number: int) -> Tree:
    """The parse in a text that begins on line `number` of a file."""
    trees = []
    for start, part in _split_trees(text):
        first_line = number + text.count("\n", 0, start)
        trees.append(parse_tree(part, name, first_line))
    return trees[0] if len(trees) == 1 else Tree(FOREST, tuple(trees))


class _Parse:
    """The words, tags and brackets of a tree, and which of the words EVALB compares."""

    def __init__(self, tree: Tree, parameters: EvalbParameters) -> None:
        self.words, self.tags = tree.words(), tree.tags()
        self.kept = [tag not in parameters.delete_labels for tag in self.tags]
        self.brackets: list[Bracket] = []  # spans in all words; outer brackets first
        position = 0
        unclosed: list[int] = []  # indices of brackets
        for kind, node in tree.walk():
            if kind == TAG:
                position += 1
            elif kind == OPEN:
                unclosed.append(len(self.brackets))
                self.brackets.append((node.label, position, position))
            else:
                index = unclosed.pop()
                self.brackets[index] = (node.label, self.brackets[index][1], position)

    def kept_words(self) -> list[tuple[str, str]]:
        """The words that EVALB compares, each with its tag."""
        return list(
            itertools.compress(zip(self.words, self.tags, strict=True), self.kept)
        )

    def quote_marks(self, parameters: EvalbParameters) -> list[int]:
        """The indices of words that may be quotation marks under one of
        `quote_labels`.
        """
        pairs = enumerate(zip(self.words, self.tags, strict=True))
        return [
            i
            for i, (word, tag) in pairs
            if word in QUOTE_MARKS and tag in parameters.quote_labels
        ]

    def scored_brackets(self, parameters: EvalbParameters) -> list[Bracket]:
        """The brackets that are compared, with spans in the words that are compared;
        outer brackets first.
        """
        position = [0, *itertools.accumulate(self.kept)]
        deleted = {FOREST, *parameters.delete_brackets}
        scored = []
        for full_label, first, end in self.brackets:
            label, span = (
                re.split("[-=]", full_label)[0],
                (
                    position[first],
                    position[end],
                ),
            )
            if span[0] < span[1] and label not in deleted:
                scored.append((label, *span))
        return scored


def _restore_quotes(
    gold: _Parse, predicted: _Parse, parameters: EvalbParameters
) -> None:
    """Keeps a quotation mark on both sides if one side deletes it and the other has it
    as a word.

    Marks at the same position among the kept words are the same mark, inserted once.
    (Of two in a row EVALB may insert the first twice and misalign the rest.)
    """
    for i, j in itertools.product(
        predicted.quote_marks(parameters), gold.quote_marks(parameters)
    ):
        if predicted.kept[i] != gold.kept[j] and sum(predicted.kept[:i]) == sum(
            gold.kept[:j]
        ):
            predicted.kept[i] = gold.kept[j] = True


def _count_matched(
    gold: list[Bracket], predicted: list[Bracket], parameters: EvalbParameters
) -> int:
    """The number of gold brackets with a predicted match; each takes the first one that
    is left.
    """
    unmatched: dict[tuple[int, int], list[str]] = defaultdict(list)
    for label, start, end in predicted:
        unmatched[start, end].append(label)
    for gold_label, start, end in gold:
        labels = unmatched[start, end]
        same = (
            label
            for label in labels
            if not parameters.labelled or parameters.same_label(gold_label, label)
        )
        first = next(same, None)
        if first is not None:
            labels.remove(first)
    return len(predicted) - sum(map(len, unmatched.values()))


def _count_crossing(
    gold: list[Bracket], predicted: list[Bracket], num_words: int
) -> int:
    """The number of predicted brackets in which a gold bracket either starts or ends,
    but not both.
    """
    last_end = [0] * (num_words + 1)  # by start
    first_start = [num_words] * (num_words + 1)  # by end
    for _, start, end in gold:
        last_end[start] = max(last_end[start], end)
        first_start[end] = min(first_start[end], start)
    crossing = 0
    for _, start, end in predicted:
        inside = slice(start + 1, end)
        crossing += (
            max(last_end[inside], default=0) > end
            or min(first_start[inside], default=num_words) < start
        )
    return crossing


def _split_trees(text: str) -> Iterator[tuple[int, str]]:
    """Yields the bracketed parts of a text that hold more than brackets, and then the
    rest of the text; each after the index at which it begins.
    """
    depth = begin = 0
    for bracket in re.finditer("[()]", text):
        depth += 1 if bracket[0] == "(" else -1
        if depth == 0:
            part = text[begin : bracket.end()]
            if part.strip("() \t\n"):
                yield begin, part
            begin = bracket.end()
    if text[begin:].strip():
        # not a tree: `parse_tree` reports what is wrong with it
        yield begin, text[begin:]


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
