"""Splits text to parse, words and punctuation separated by spaces, into sentences.

`split_text` ends a sentence at its full stop, question or exclamation mark. What closes
the sentence behind it, as in `He said : `` Stop ! ''`, is a word of its own here, and
belongs to the sentence that it closes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from t2tlite.programs.serving.sentence_splitter import split_text
from t2tlite.trees.tree import split_words

END_MARKS = frozenset(".!?…。！？")
# brackets and quotation marks that only close, in Unicode and as treebanks write them
CLOSING = frozenset({"''", "”", "’", "›", ")", "]", "}", "-RRB-", "-RSB-", "-RCB-"})
# quotation marks that open or close, by language: "a", «a», »a«, “a”, „a“
EITHER = frozenset({'"', "«", "»", "“"})
QUOTATION_MARKS = EITHER | {"``", "''", "`", "„", "‚", "‘", "’", "‹", "›", "”"}
GRAVE, APOSTROPHE = "`", "'"  # single quotation marks; the latter has other uses too
QUOTATION = "quotation"  # the number of QUOTATION_MARKS


class Line:
    """The quotation marks among the words of a line so far."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()

    def add(self, word: str) -> None:
        """Counts a word."""
        if word in QUOTATION_MARKS:
            self._counts[QUOTATION] += 1
        if word in (GRAVE, APOSTROPHE):
            self._counts[word] += 1

    def closes(self, word: str) -> bool:
        """Whether a word ends a sentence, or closes a bracket or quotation."""
        if END_MARKS.issuperset(word) or word in CLOSING:
            return True
        in_quotation = self._counts[QUOTATION] % 2 == 1
        if word == APOSTROPHE:
            graves, apostrophes = self._counts[GRAVE], self._counts[APOSTROPHE]
            return in_quotation or graves > apostrophes or apostrophes % 2 == 1
        return word in EITHER and in_quotation


def parsed_sentences(text: str) -> list[str]:
    """The sentences of a text, each with single spaces between its words.

    >>> parsed_sentences("He said : `` Stop ! '' She left .")
    ["He said : `` Stop ! ''", 'She left .']
    """
    sentences: list[list[str]] = []
    line = Line()
    for before, sentence in split_text(text).segments:
        words = split_words(sentence)
        closing = 0
        if _breaks_line(before) or not sentences:
            line = Line()
        else:
            closing = _count_closing(line, words)
            sentences[-1] += words[:closing]
        rest = words[closing:]
        for word in rest:
            line.add(word)
        if closing and rest and rest[0].islower():
            sentences[-1] += rest  # as in `` Stop ! '' he said .
        elif rest:
            sentences.append(rest)
    return [" ".join(words) for words in sentences]


def _breaks_line(space: str) -> bool:
    return len(f"{space}.".splitlines()) > 1


def _count_closing(line: Line, words: Sequence[str]) -> int:
    """How many of the first words close the sentence before them on the line, to which
    they are added.
    """
    for count, word in enumerate(words):
        if not line.closes(word):
            return count
        line.add(word)
    return len(words)
