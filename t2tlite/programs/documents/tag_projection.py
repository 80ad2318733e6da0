"""Puts the inline tags of a text into its translation, by its word alignment.

The rule: an element encloses the smallest range of the translation that holds every
word aligned to a word inside the element, and begins and ends with punctuation if the
element does. Elements stay nested as they were. If the words of neighbouring elements
are mixed, each element encloses the longest row of its own words; a word that is
aligned to several of them belongs to none. An element without words, and markup that is
visible at its place, precedes the word that is aligned to the next word; it stays
inside its parent and outside its neighbours.
"""

import dataclasses
import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.sentences import SplitText

# a text, and the translation and alignment of each of its sentences
Translated = tuple[SplitText, Sequence[tuple[str, Alignment]]]

WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")


@dataclasses.dataclass
class Span:
    """An element around a part of a text, or other markup at a place in it."""

    start: int  # in characters of the text
    start_tag: str
    end: int = 0
    end_tag: str = ""
    inside: "list[Span]" = dataclasses.field(default_factory=list)
    is_object: bool = False  # whether it is visible at its place


class Word(NamedTuple):
    """Where a word of a text is, and its core, which is the word without punctuation;
    of a word without a letter or digit, the whole.
    """

    start: int
    core_start: int
    core_end: int
    end: int


class Placed(NamedTuple):
    """Where a span is in the translation, in characters. At one place those without
    words come first.
    """

    start: int
    has_words: bool
    number: int  # of the span
    end: int


def project(
    spans: Sequence[Span],
    split: SplitText,
    sentences: Sequence[tuple[str, Alignment]],
) -> str:
    """The translation of a text as HTML, with the spans of the text by the rule above.

    >>> from t2tlite.programs.documents.sentences import split_text
    >>> split = split_text("a b")
    >>> project([Span(2, "<i>", 3, "</i>")], split, [("B A", [(1, 0), (0, 1)])])
    '<i>B</i> A'
    """
    text = split.join([sentence for sentence, _ in sentences])
    if not spans:
        return html.escape(text, quote=False)
    writer = _Writer(text, _AlignedWords(split, sentences))
    writer.write(spans, len(text))
    writer.add_text(len(text))
    return "".join(writer.parts)


class _AlignedWords:
    """The words of a text and of its translation, and how they are aligned."""

    def __init__(
        self, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
    ) -> None:
        self._text = split.join([segment.sentence for segment in split.segments])
        self._source: list[Word] = []
        self._target: list[Word] = []
        self._aligned: list[list[int]] = []  # of each source word the target words
        self._read(split, sentences)
        self._core_starts = [word.core_start for word in self._source]
        self._core_ends = [word.core_end for word in self._source]
        # the first target word aligned to each source word or one behind it
        self._next: list[int | None] = [None]
        for words in reversed(self._aligned):
            self._next.append(min(words, default=self._next[-1]))
        self._next.reverse()

    def _read(
        self, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
    ) -> None:
        source_at = 0
        target_at = 0
        for segment, translated in zip(split.segments, sentences, strict=True):
            target, alignment = translated
            source_at += len(segment.before)
            target_at += len(segment.before)
            first_source = len(self._source)
            first_target = len(self._target)
            for word in _words(segment.sentence, source_at):
                self._source.append(word)
                self._aligned.append([])
            self._target += _words(target, target_at)
            for i, j in alignment:
                self._aligned[first_source + i].append(first_target + j)
            source_at += len(segment.sentence)
            target_at += len(target)

    def placed(self, spans: Sequence[Span], start: int, end: int) -> list[Placed]:
        """Where spans are in a range of the translation, in order."""
        placed = []
        rows = self._rows(spans, start, end)
        for number, row in rows.items():
            content = self._text[spans[number].start : spans[number].end].strip()
            first = self._target[row[0]]
            last = self._target[row[-1]]
            low = first.core_start if content[0].isalnum() else first.start
            high = last.core_end if content[-1].isalnum() else last.end
            placed.append(Placed(low, True, number, high))
        placed.sort()
        starts = [each.start for each in placed]
        ends = [each.end for each in placed]
        for number, span in enumerate(spans):
            if number in rows:
                continue
            place = min(max(self._place(span.start, end), start), end)
            before = bisect_left(starts, place) - 1
            if before >= 0 and place < ends[before]:
                place = starts[before]
            placed.append(Placed(place, False, number, place))
        return sorted(placed)

    def _rows(
        self, spans: Sequence[Span], start: int, end: int
    ) -> dict[int, list[int]]:
        """The longest row of each span's own words within a range of the translation,
        by the span's number.
        """
        owners: dict[int, int] = {}
        shared: set[int] = set()
        for number, span in enumerate(spans):
            if span.start == span.end:
                continue
            low = bisect_right(self._core_ends, span.start)
            high = bisect_left(self._core_starts, span.end)
            words = set(itertools.chain.from_iterable(self._aligned[low:high]))
            shared |= words & owners.keys()
            owners.update(dict.fromkeys(words, number))
        own = sorted(owners.keys() - shared)
        low = bisect_left(own, start, key=lambda i: self._target[i].core_start)
        high = bisect_right(own, end, key=lambda i: self._target[i].core_end)
        rows: dict[int, list[int]] = {}
        for number, group in itertools.groupby(own[low:high], key=owners.__getitem__):
            row = list(group)
            if len(row) > len(rows.get(number, [])):
                rows[number] = row
        return rows

    def _place(self, offset: int, end: int) -> int:
        """Where markup without words is in the translation, by default at the end."""
        i = bisect_right(self._core_ends, offset)
        is_behind_core = i > 0 and offset < self._source[i - 1].end
        if is_behind_core and self._aligned[i - 1]:
            return self._target[min(self._aligned[i - 1])].core_end
        following = self._next[i]
        return end if following is None else self._target[following].start


def _words(text: str, offset: int) -> Iterator[Word]:
    """The words of a text that begins at an offset."""
    for match in WORD.finditer(text):
        core = CORE.search(text, *match.span()) or match
        core_start, core_end = core.span()
        start, end = match.span()
        yield Word(
            offset + start, offset + core_start, offset + core_end, offset + end
        )


class _Writer:
    """A translation as HTML with tags, in order. A space separates objects from letters
    and digits.
    """

    def __init__(self, text: str, words: _AlignedWords) -> None:
        self.parts: list[str] = []
        self._text = text
        self._words = words
        self._at = 0
        self._is_behind_object = False

    def write(self, spans: Sequence[Span], end: int) -> None:
        """Adds the spans inside a range that ends at an offset, and the text before and
        between them.
        """
        for placed in self._words.placed(spans, self._at, end):
            span = spans[placed.number]
            self.add_text(placed.start)
            if span.is_object:
                if self._text[: self._at][-1:].isalnum() and not self._is_behind_object:
                    self.parts.append(" ")
                self._is_behind_object = True
            self.parts.append(span.start_tag)
            self.write(span.inside, placed.end)
            self.add_text(placed.end)
            self.parts.append(span.end_tag)

    def add_text(self, end: int) -> None:
        """Adds the text up to an offset."""
        piece = self._text[self._at : end]
        if not piece:
            return
        if self._is_behind_object and piece[0].isalnum():
            self.parts.append(" ")
        self.parts.append(html.escape(piece, quote=False))
        self._at = end
        self._is_behind_object = False
