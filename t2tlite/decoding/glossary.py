"""Glossaries: which terms a translation must have, from the words of its source."""

import dataclasses
import functools
import re
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from t2tlite.files.text_files import read_lines, shown
from t2tlite.types import EOS
from t2tlite.vocabularies.normalisation import normalise
from t2tlite.vocabularies.text_encoder import TextEncoder

# or a punctuation mark, or another symbol
WORD = re.compile(r"\w+|[^\w\s]")

Words = tuple[str, ...]


class Terms(NamedTuple):
    """The terms that a translation must have.

    Attributes:
        continues: bool [V], the tokens of the vocabulary that continue a word.
        tokens: those of each term.
    """

    continues: np.ndarray
    tokens: list[list[int]]


@dataclasses.dataclass(frozen=True)
class Glossary:
    """Terms of the source language with their translations.

    Attributes:
        translations: that of each term, by the words of the term.
    """

    translations: Mapping[Words, str]

    def terms(self, source: str, vocabulary: TextEncoder) -> Terms | None:
        """The translations of the terms in a sentence, each once, in a target
        vocabulary; None if there are none.

        A term is a sequence of whole words. Of two that overlap, the one that begins
        first counts, and of two that begin at one word the longer one. A sentence's
        first word may have a capital letter that the term does not have.
        """
        words = tuple(WORD.findall(normalise(source)))
        terms = {}
        at = 0
        while at < len(words):
            length, term = self._match(words, at)
            if term:
                terms[term] = vocabulary.encode(term)
            at += length
        tokens = list(filter(None, terms.values()))
        return Terms(continuing_tokens(vocabulary), tokens) if tokens else None

    def _match(self, words: Words, at: int) -> tuple[int, str]:
        """The number of words of the longest term at a word, and its translation; 1 and
        "" if there is none.
        """
        is_first = not any(map(str.isalnum, words[:at]))
        for end in range(min(at + self._longest, len(words)), at, -1):
            first, *others = words[at:end]
            spellings = [first]
            if is_first:
                spellings.append(first[0].lower() + first[1:])
            for spelling in spellings:
                term = self.translations.get((spelling, *others))
                if term:
                    return end - at, term
        return 1, ""

    @functools.cached_property
    def _longest(self) -> int:
        """The most words of a term."""
        return max(map(len, self.translations), default=0)


@functools.lru_cache(maxsize=8)
def continuing_tokens(vocabulary: TextEncoder) -> np.ndarray:
    """The tokens that continue a word: bool [V]."""
    word = vocabulary.encode("a")
    continues: np.ndarray = np.zeros(vocabulary.vocab_size, bool)
    for token in range(EOS + 1, vocabulary.vocab_size):
        text = vocabulary.decode([*word, token])
        continues[token] = text[1:2].isalnum()
    return continues


def open_glossary(given: str | Path | Mapping[str, str]) -> Glossary:
    """The glossary in a file of lines "source TAB target", or of a mapping.

    Blank lines do not count. Raises ValueError, which names the line, for one without a
    source or a target, or with another target than a line before has for its source.
    """
    if isinstance(given, Mapping):
        name = "the glossary"
        lines = map("\t".join, given.items())
    else:
        name = shown(given)
        lines = read_lines(given)
    translations: dict[Words, str] = {}
    for number, line in enumerate(lines, 1):
        source, *targets = map(normalise, line.split("\t"))
        words = tuple(WORD.findall(source))
        is_right = len(targets) == 1 and words and targets[0]
        if is_right:
            is_right = translations.setdefault(words, targets[0]) == targets[0]
        if not is_right and line.strip():
            raise ValueError(
                "Each line of a glossary must be source TAB target, with one target for"
                f" a source. Received: {name}, line {number}: {line[:60]!r}."
            )
    return Glossary(translations)
