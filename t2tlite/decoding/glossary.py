"""Glossaries: which terms a translation must have, from the words of its source."""

import dataclasses
import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path

import regex

from t2tlite.files.text_files import read_lines, shown
from t2tlite.texts import check_text
from t2tlite.vocabularies.normalisation import normalise

# Or a punctuation mark, or another symbol. Marks (M) and joiners (Cf), such as a vowel
# sign of Hindi, belong to the character before them; Python's \w leaves them out.
WORD = regex.compile(r"[\p{L}\p{N}_][\p{L}\p{N}_\p{M}\p{Cf}]*|\S[\p{M}\p{Cf}]*")
# before a source, such as `<2de> ` or `<de> <formal> `
SOURCE_TAGS = regex.compile(r"\s*(<[^<>\s]+>\s*)*")


@dataclasses.dataclass(frozen=True)
class Glossary:
    """Terms of the source language with their translations.

    Attributes:
        targets: the translation of each term, by the words of the term.
        lengths: the numbers of words of terms, smallest first.
        places: where each term is, the file and line, in the order of `targets`.
    """

    targets: Mapping[tuple[str, ...], str]
    lengths: tuple[int, ...]
    places: Sequence[str]

    def terms(self, source: str) -> list[str]:
        """The translations of the terms in a sentence, each once.

        A term is a sequence of whole words. Of two that overlap, the one that begins
        first counts, and of two that begin at one word the longer one. The first word
        behind tags that begins with a letter may have a capital that the term lacks.
        """
        words = _whole_words(source)
        lowered = list(words)
        untagged = SOURCE_TAGS.sub("", source, count=1)
        tags = source.removesuffix(untagged)
        for number in range(len(_whole_words(tags)), len(words)):
            word = words[number]
            if word[0].isalpha():
                lowered[number] = word[0].lower()[0] + word[1:]
                break
        terms = {}
        at = 0
        while at < len(words):
            after = at + 1
            term = ""
            for length in self.lengths:
                end = at + length
                for spelling in (lowered, words):
                    match = self.targets.get(tuple(spelling[at:end]))
                    if match:
                        after, term = end, match
            terms[term] = True
            at = after
        return list(filter(None, terms))


def open_glossary(given: str | Path | Mapping[str, str] | None) -> Glossary | None:
    """The glossary in a file of lines "source TAB target", or of a mapping.

    Blank lines do not count. Raises ValueError, which names the line, for one without a
    source or a target, or with another target than a line before has for its source.
    """
    if given is None:
        return None
    if isinstance(given, Mapping):
        name = "the glossary"
        for text in itertools.chain(*given.items()):
            check_text("A term", text)
        lines = list(map("\t".join, given.items()))
    else:
        name = shown(given)
        lines = list(read_lines(given))
    targets: dict[tuple[str, ...], str] = {}
    places: dict[tuple[str, ...], str] = {}
    for number, line in enumerate(lines, 1):
        source, *rest = map(normalise, line.split("\t"))
        words = tuple(_whole_words(source))
        place = f"{name}, line {number}"
        is_right = words and len(rest) == 1 and all(rest)
        if is_right:
            is_right = targets.setdefault(words, rest[0]) == rest[0]
        if not is_right and line.strip():
            raise ValueError(
                "A glossary has lines source TAB target, one target for each source."
                f" Received: {place}: {line[:60]!r}."
            )
        if is_right:
            places.setdefault(words, place)
    lengths = tuple(sorted(set(map(len, targets))))
    return Glossary(targets, lengths, list(places.values()))


def terms_of(
    glossary: Glossary | None,
    sentences: Sequence[str],
) -> list[list[str]] | None:
    """The terms of each sentence; None without a glossary."""
    if glossary is None:
        return None
    return list(map(glossary.terms, sentences))


def _whole_words(text: str) -> list[str]:
    """The words of a text, its punctuation marks and symbols."""
    words: list[str] = WORD.findall(normalise(text))
    return words
