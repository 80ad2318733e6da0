"""Splits text to parse, words and punctuation separated by spaces, into sentences.

`sentence_pieces` ends a sentence at its full stop, question or exclamation mark. What
closes the sentence behind it, as in `He said : `` Stop ! ''`, is a word of its own
here, and belongs to the sentence that it closes; with a capital letter behind it, the
sentence ends there also where `sentence_pieces` does not split.
"""

from __future__ import annotations

from collections import Counter

from t2tlite.programs.documents.sentences import sentence_pieces
from t2tlite.vocabularies.normalisation import words

END_MARKS = frozenset(".!?…。！？")
# brackets and quotation marks that only close, in Unicode and as treebanks write them
CLOSING = frozenset({"''", "”", "’", "›", ")", "]", "}", "-RRB-", "-RSB-", "-RCB-"})
# quotation marks that open or close, by language: "a", «a», »a«, “a”, „a“
EITHER = frozenset({'"', "«", "»", "“"})
QUOTATION_MARKS = EITHER | {"``", "''", "`", "„", "‚", "‘", "’", "‹", "›", "”"}
GRAVE, APOSTROPHE = "`", "'"  # single quotation marks; the latter has other uses too
QUOTATION = "quotation"  # the number of QUOTATION_MARKS


class Line:
    """What the words of a line so far say about the next."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._ended = False  # by an end mark, behind which only closing words came
        self._closed = False  # by a bracket or quotation mark behind it

    def add(self, word: str) -> None:
        """Counts a word as one of the line."""
        closes = self.closes(word)
        if END_MARKS.issuperset(word):
            self._ended = True
        self._closed = closes and self._ended and not END_MARKS.issuperset(word)
        self._ended = closes and self._ended
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

    def begins_sentence(self, word: str, splits: bool) -> bool:
        """Whether a sentence begins with a word, before which a piece may begin.

        A word that closes something does not begin one. A lower-case word continues
        the sentence behind what closes a part of it, as in `` Stop ! '' he said .
        """
        if self.closes(word):
            return False
        if self._closed:
            return not word[0].islower()
        return splits


def parsed_sentences(text: str, language: str = "en") -> list[str]:
    """The sentences of a text in a language, each with single spaces between its words.

    >>> parsed_sentences("He said : `` Stop ! '' She left .")
    ["He said : `` Stop ! ''", 'She left .']
    """
    sentences: list[list[str]] = []
    for text_line in text.splitlines():
        line = Line()
        sentences.append([])
        for number, piece in enumerate(sentence_pieces(text_line, language)):
            splits = number > 0  # before the first word, and behind words that close
            for word in words(piece):
                if line.begins_sentence(word, splits):
                    sentences.append([])
                splits = splits and line.closes(word)
                line.add(word)
                sentences[-1].append(word)
    return [" ".join(sentence) for sentence in sentences if sentence]
