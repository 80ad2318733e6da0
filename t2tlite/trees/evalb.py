"""Labelled bracketing scores of parse trees, equal to those of EVALB (Sekine and
Collins, 1997) with COLLINS.prm.

A bracket is a label over a span of words. Recall is the share of the gold brackets that
are predicted, precision the share of the predicted brackets that are gold, F1 their
harmonic mean, over the brackets of all sentences together. EVALB compares two trees in
these steps:

1. Words whose tag is among `delete_labels` are removed: punctuation and traces. Spans
   count only the remaining words.
2. A sentence whose prediction has no words left is skipped. A sentence whose words
   differ from the gold words is an error. Both count only in the numbers of sentences.
3. Brackets without words are dropped. Labels end before their first "-" or "=": NP-SBJ
   and NP=2 are NP. Then brackets with one of `delete_labels` are dropped (TOP), but not
   the brackets inside them.
4. Each gold bracket takes one predicted bracket of the same span and label, so (NP (NP
   x)) has two.
5. A predicted bracket crosses if it overlaps some gold bracket with neither inside the
   other.
6. Tags are compared whole, among the remaining words.

Where EVALB crashes (200 words or brackets, labels of 30 characters) or gives up (the
twelfth error), scoring continues. An F-measure that it prints as nan is 0.
"""

import functools
import itertools
import random
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from t2tlite.files.text_files import read_lines
from t2tlite.trees.tree import EMPTY_TAG, FOREST, Tree, constituents_of

# EVALB's status of a sentence
SCORED, ERROR, SKIPPED = 0, 1, 2

# label, first word, one past the last word
Bracket = tuple[str, int, int]

# the fields of SentenceScore before the status
COUNTS = 7

# of the bootstrap of F1's 95% confidence interval
RESAMPLES = 1000
SEED = 12345
# resamples below and above the interval
TAIL = RESAMPLES // 40

# the words to which EVALB's QUOTE_LABEL applies
QUOTE_MARKS = frozenset({"'", '"', "/"})

# Keyword of a parameter file -> the field that it sets. t2t-evalb has flags for its
# output, and errors never end the scoring.
KEYWORDS = {
    "DEBUG": "",
    "MAX_ERROR": "",
    "LABELED": "labelled",
    "CUTOFF_LEN": "cutoff_length",
    "DELETE_LABEL": "delete_labels",
    "DELETE_LABEL_FOR_LENGTH": "delete_labels_for_length",
    "QUOTE_LABEL": "quote_labels",
    "EQ_LABEL": "equal_labels",
    "EQ_WORD": "equal_words",
}


@dataclass(frozen=True)
class EvalbParameters:
    """The values in a parameter file of EVALB. The defaults are EVALB's own without a
    file.
    """

    labelled: int = 1  # 0: only spans must agree
    # words of the longest sentence in the second summary
    cutoff_length: int = 40
    # tags whose words, and labels whose brackets, are removed
    delete_labels: frozenset[str] = frozenset()
    # tags whose words do not count in lengths
    delete_labels_for_length: frozenset[str] = frozenset()
    # pairs, in either order
    equal_labels: frozenset[tuple[str, str]] = frozenset()
    equal_words: frozenset[tuple[str, str]] = frozenset()
    # tags that parsers confuse on quotation marks
    quote_labels: frozenset[str] = frozenset()

    def same_label(self, a: str, b: str) -> bool:
        """Whether two labels, or two tags, count as the same."""
        return a == b or (a, b) in self.equal_labels or (b, a) in self.equal_labels

    def same_word(self, a: str, b: str) -> bool:
        return a == b or (a, b) in self.equal_words or (b, a) in self.equal_words

    @functools.cached_property
    def delete_brackets(self) -> frozenset[str]:
        """The labels of brackets to drop. Of brackets, though not of tags, EVALB also
        drops labels that count as the same.
        """
        labels = {FOREST, *self.delete_labels}
        for pair in self.equal_labels:
            if self.delete_labels.intersection(pair):
                labels.update(pair)
        return frozenset(labels)


COLLINS = EvalbParameters(
    delete_labels=frozenset({"TOP", "-NONE-", ",", ":", "``", "''", "."}),
    delete_labels_for_length=frozenset({"-NONE-"}),
    equal_labels=frozenset({("ADVP", "PRT")}),
)


def read_parameters(path: str | Path) -> EvalbParameters:
    """Reads a parameter file of EVALB, such as its COLLINS.prm.

    A line is a keyword and its values, or a comment that starts with "#". Raises
    ValueError with file and line for any other line. A parameter that the file does not
    set has its default. DEBUG and MAX_ERROR have no effect.
    """
    fields: dict[str, Any] = {}
    for number, line in enumerate(read_lines(path), start=1):
        keyword, *values = line.split() or ["#"]
        if keyword.startswith("#"):
            continue
        field = KEYWORDS.get(keyword)
        is_number = field in ("labelled", "cutoff_length")
        is_pair = keyword.startswith("EQ_")
        form = r"\S+ \S+" if is_pair else r"\S+"
        if is_number:
            form = "[0-9]{1,9}"
        if field is None or not re.fullmatch(form, " ".join(values)):
            raise ValueError(
                f"{path}, line {number}: a parameter of EVALB with its labels or"
                f" number, or a # comment, is required. Received: {line!r:.80}."
            )
        if is_number:
            fields[field] = int(values[0])
        elif field:
            value = tuple(values) if is_pair else values[0]
            fields[field] = fields.get(field, frozenset()) | {value}
    return EvalbParameters(**fields)


class SentenceScore(NamedTuple):
    """A line of EVALB's table. An error or skipped sentence has only a length and a
    status.
    """

    # words of the gold tree, with punctuation, without traces
    length: int
    matched: int = 0  # brackets in both
    gold: int = 0  # brackets
    predicted: int = 0  # brackets
    # predicted brackets that cross a gold one
    crossing: int = 0
    words: int = 0  # that are compared: without punctuation
    correct_tags: int = 0
    status: int = SCORED  # or ERROR or SKIPPED
    # why the sentence is an error, in EVALB's words
    message: str = ""

    @property
    def recall(self) -> float:
        """Percent; 0 if the gold tree has no brackets."""
        return _percent(self.matched, self.gold)

    @property
    def precision(self) -> float:
        """Percent; 0 if the predicted tree has no brackets."""
        return _percent(self.matched, self.predicted)

    @property
    def f1(self) -> float:
        """Percent; 0 if no bracket is matched."""
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0

    @property
    def tagging_accuracy(self) -> float:
        """Percent; 0 if there are no words."""
        return _percent(self.correct_tags, self.words)


class ParsingScore(NamedTuple):
    """A summary; `str(score)` is the text that EVALB prints."""

    sentences: int
    # sentences whose words differ from the gold words
    errors: int
    skipped: int  # sentences whose prediction has no words
    # the other sentences; the following values are theirs
    valid: int
    # percent, like all values below except average_crossing
    recall: float
    precision: float
    f1: float
    complete_match: float
    average_crossing: float  # brackets per sentence
    no_crossing: float
    two_or_less_crossing: float
    tagging_accuracy: float

    def __str__(self) -> str:
        lines = []
        for name, value in zip(SUMMARY_LINES, self, strict=True):
            number = f"{value:6d}" if isinstance(value, int) else f"{value:6.2f}"
            lines.append(f"{name:26}= {number}")
        return "\n".join(lines)


# for the fields of ParsingScore, in their order
SUMMARY_LINES = (
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


def evalb(gold: Sequence[Tree], predicted: Sequence[Tree | None]) -> ParsingScore:
    """Scores predicted trees, with COLLINS.prm.

    `gold` has one tree per sentence. An outermost bracket without a label is scored
    like any other, so label it TOP. In `predicted`, None is a sentence without a parse.
    Raises ValueError if the numbers of trees differ.
    """
    pairs = zip(gold, predicted, strict=True)
    return summarise(list(itertools.starmap(score_sentence, pairs)))


def score_sentence(
    gold: Tree,
    predicted: Tree | None,
    parameters: EvalbParameters = COLLINS,
    gold_tags: bool = False,
) -> SentenceScore:
    """Compares a predicted tree with the gold tree of its sentence, by the steps at the
    top of this file. With `gold_tags`, the predicted words first get the gold tags, if
    the words are the same.
    """
    reference = _Parse(gold, parameters)
    length = 0
    for tag in reference.tags:
        length += tag not in parameters.delete_labels_for_length
    if predicted is None:
        return SentenceScore(length, status=SKIPPED)
    parse = _Parse(predicted, parameters)
    if gold_tags:
        parse.take_tags(reference)
    if not any(parse.kept):
        return SentenceScore(length, status=SKIPPED)
    if sum(reference.kept) != sum(parse.kept):
        _restore_quotes(reference, parse)
    gold_words = reference.kept_words()
    words = parse.kept_words()
    if len(gold_words) != len(words):
        message = f"Length unmatch ({len(gold_words)}|{len(words)})"
        return SentenceScore(length, status=ERROR, message=message)
    correct_tags = 0
    for (gold_word, gold_tag), (word, tag) in zip(gold_words, words, strict=True):
        if not parameters.same_word(gold_word, word):
            message = f"Words unmatch ({gold_word}|{word})"
            return SentenceScore(length, status=ERROR, message=message)
        correct_tags += parameters.same_label(gold_tag, tag)
    gold_brackets = reference.scored_brackets()
    brackets = parse.scored_brackets()
    return SentenceScore(
        length,
        _count_matched(gold_brackets, brackets, parameters),
        len(gold_brackets),
        len(brackets),
        _count_crossing(gold_brackets, brackets),
        len(words),
        correct_tags,
    )


def summarise(scores: Sequence[SentenceScore]) -> ParsingScore:
    """Summarises the scores of sentences."""
    statuses: Counter[int] = Counter()
    complete = no_crossing = two_or_less_crossing = 0
    for score in scores:
        statuses[score.status] += 1
        if score.status == SCORED:
            complete += score.matched == score.gold == score.predicted
            no_crossing += score.crossing == 0
            two_or_less_crossing += score.crossing <= 2
    valid = statuses[SCORED]
    total = total_counts(scores)
    return ParsingScore(
        len(scores),
        statuses[ERROR],
        statuses[SKIPPED],
        valid,
        total.recall,
        total.precision,
        total.f1,
        _percent(complete, valid),
        total.crossing / max(valid, 1),
        _percent(no_crossing, valid),
        _percent(two_or_less_crossing, valid),
        total.tagging_accuracy,
    )


def total_counts(scores: Sequence[SentenceScore]) -> SentenceScore:
    """Adds up the counts of all sentences."""
    columns = zip(SentenceScore(0), *scores, strict=True)
    sums = map(sum, itertools.islice(columns, COUNTS))
    return SentenceScore._make([*sums, SCORED, ""])


def f1_interval(scores: Sequence[SentenceScore]) -> tuple[float, float]:
    """Returns the ends of the 95% confidence interval of F1 in percent (the percentile
    bootstrap of Efron, 1979): how much of an F1 is the choice of sentences.

    RESAMPLES test sets of the same size are drawn with replacement from the sentences
    that are scored. The same scores always give the same interval; without any it is
    (0, 0).
    """
    scored = [score for score in scores if score.status == SCORED]
    if not scored:
        return 0.0, 0.0
    draw = random.Random(SEED)
    values = []
    for _ in range(RESAMPLES):
        sample = draw.choices(scored, k=len(scored))
        values.append(total_counts(sample).f1)
    values.sort()
    return values[TAIL], values[-TAIL - 1]


class _Parse:
    """The words, tags and brackets of a tree, and which of the words EVALB compares."""

    def __init__(self, tree: Tree, parameters: EvalbParameters) -> None:
        self.words = tree.words()
        self.tags = tree.tags()
        self.kept = [tag not in parameters.delete_labels for tag in self.tags]
        self._tree = tree
        self._parameters = parameters

    def take_tags(self, gold: Self) -> None:
        """Replaces the tags by the gold ones, unless the words differ. The gold tree
        may have traces.
        """
        are_words = [tag != EMPTY_TAG for tag in gold.tags]
        if self.words == list(itertools.compress(gold.words, are_words)):
            self.tags = list(itertools.compress(gold.tags, are_words))
            self.kept = list(itertools.compress(gold.kept, are_words))

    def kept_words(self) -> list[tuple[str, str]]:
        """The words that EVALB compares, each with its tag."""
        words = zip(self.words, self.tags, strict=True)
        return list(itertools.compress(words, self.kept))

    def quote_marks(self) -> list[int]:
        """The indices of words that may be quotation marks and have one of
        `quote_labels` as their tag.
        """
        indices = []
        for i, word in enumerate(self.words):
            if word in QUOTE_MARKS and self.tags[i] in self._parameters.quote_labels:
                indices.append(i)
        return indices

    def scored_brackets(self) -> list[Bracket]:
        """The brackets that are compared, with spans in the words that are compared;
        outer brackets first.
        """
        kept_before = [0, *itertools.accumulate(self.kept)]
        brackets = []
        for node, _, start, end in constituents_of(self._tree):
            label = re.split("[-=]", node.label)[0]
            span = kept_before[start], kept_before[end]
            is_deleted = label in self._parameters.delete_brackets
            if span[0] < span[1] and not is_deleted:
                brackets.append((label, *span))
        return brackets


def _restore_quotes(gold: _Parse, predicted: _Parse) -> None:
    """Keeps a quotation mark in both trees if one tree's tag removes it and the other's
    does not.

    Marks at the same position among the kept words are the same mark, and are restored
    once. (If two marks follow each other, EVALB may restore the first twice and
    misalign the rest.)
    """
    for i, j in itertools.product(predicted.quote_marks(), gold.quote_marks()):
        is_same = sum(predicted.kept[:i]) == sum(gold.kept[:j])
        if is_same and predicted.kept[i] != gold.kept[j]:
            predicted.kept[i] = gold.kept[j] = True


def _count_matched(
    gold: list[Bracket], predicted: list[Bracket], parameters: EvalbParameters
) -> int:
    """Counts the gold brackets with a predicted match. Each takes the first match that
    no other bracket has taken.
    """
    unmatched = list(predicted)
    for gold_label, *gold_span in gold:
        for bracket in unmatched:
            label, *span = bracket
            is_same = not parameters.labelled or parameters.same_label(
                gold_label, label
            )
            if span == gold_span and is_same:
                unmatched.remove(bracket)
                break
    return len(predicted) - len(unmatched)


def _count_crossing(gold: list[Bracket], predicted: list[Bracket]) -> int:
    """Counts the predicted brackets that overlap some gold bracket with neither inside
    the other.
    """
    spans = {(start, end) for _, start, end in gold}
    crossing = 0
    for _, start, end in predicted:
        for first, last in spans:
            if first < start < last < end or start < first < end < last:
                crossing += 1
                break
    return crossing


def _percent(part: int, whole: int) -> float:
    return 100.0 * part / whole if whole else 0.0
