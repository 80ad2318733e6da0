"""Puts the inline tags of a text into its translation, by its word alignment.

The rule: an element encloses the smallest range of the translation that holds every
word aligned to a word inside the element. Punctuation before and behind a word is
aligned to punctuation there. Elements stay nested as they were. If the words of
neighbouring elements are mixed, each element encloses the longest row of its own words.
An element without words, and markup that is visible at its place, precedes the word
that is aligned to the next word; it stays inside its parent and outside its neighbours.

The time is linear in tags and words, apart from NumPy calls that find the range of a
tag's words in microseconds. Words of mixed neighbours are visited once for each element
around them.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.sentences import SplitText

# a text, and the translation and alignment of each of its sentences
Translated = tuple[SplitText, Sequence[tuple[str, Alignment]]]

WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")
PREFIX, MIDDLE, SUFFIX = range(3)
# Punctuation that stands directly behind a word
CLOSING_MARKS = frozenset(".,;:!?…%)]}»”’'。，、；：！？）」』")


@dataclasses.dataclass
class Span:
    """An element around a part of a text, or other markup at a place in it."""

    start: int  # in characters of the text
    start_tag: str
    end: int = 0
    end_tag: str = ""
    inside: list[Span] = dataclasses.field(default_factory=list)
    begins_before: bool = False  # whether its start tag is before the text
    ends_behind: bool = False  # whether its end tag is behind the text
    is_object: bool = False  # whether it is visible at its place
    space_before: bool = False  # whether white space precedes an object
    space_behind: bool = False  # whether white space follows an object


class Part(NamedTuple):
    """The core of a word, or the punctuation before or behind it. A word without a
    letter or digit is a core.
    """

    start: int  # in characters of the text
    end: int
    word: int  # a number
    place: int  # in the word


class Placed(NamedTuple):
    """A span in the translation, from one part to before another; equal without
    words.
    """

    low: int
    high: int
    number: int  # among its neighbours
    span: Span


class Markup(NamedTuple):
    """A tag in the translation."""

    offset: int
    source: str
    span: Span


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
    places = _Places(split, sentences, len(text))
    return _with_markup(text, places.markup(spans))


class _Places:
    """The words of a text and of its translation, and how they are aligned."""

    def __init__(
        self,
        split: SplitText,
        sentences: Sequence[tuple[str, Alignment]],
        length: int,
    ) -> None:
        self._source: list[Part] = []
        self._target: list[Part] = []
        pairs: list[tuple[int, int]] = []  # of words, by their numbers
        source_start = 0
        target_start = 0
        for (before, source), (target, alignment) in zip(
            split.segments, sentences, strict=True
        ):
            source_start += len(before)
            target_start += len(before)
            source_words = self._source[-1].word + 1 if self._source else 0
            target_words = self._target[-1].word + 1 if self._target else 0
            for source_word, target_word in alignment:
                pairs.append((source_words + source_word, target_words + target_word))
            self._source += _parts(source, source_start, source_words)
            self._target += _parts(target, target_start, target_words)
            source_start += len(source)
            target_start += len(target)
        self._length = length  # of the translation
        self._starts = [part.start for part in self._source]
        self._ends = [part.end for part in self._source]
        self._align(pairs)

    def _align(self, pairs: Sequence[tuple[int, int]]) -> None:
        source_parts = _numbers(self._source)
        target_parts = _numbers(self._target)
        self._aligned: list[list[int]] = [[] for _ in self._source]
        for (source, target), place in itertools.product(pairs, range(3)):
            source_part = source_parts.get((source, place))
            target_part = target_parts.get((target, place))
            if source_part is not None and target_part is not None:
                self._aligned[source_part].append(target_part)
        end = len(self._target)
        self._first = np.array([min(row, default=end) for row in self._aligned])
        self._last = np.array([max(row, default=-1) for row in self._aligned])
        # of each part the first, or else that of the next part that is aligned
        self._next = [end] * (len(self._source) + 1)
        for i in reversed(range(len(self._source))):
            self._next[i] = self._next[i + 1]
            if self._aligned[i]:
                self._next[i] = min(self._aligned[i])

    def markup(self, spans: Sequence[Span]) -> Iterator[Markup]:
        """The tags of spans in the order of the translation."""
        text = Placed(0, len(self._target), 0, Span(0, "", inside=list(spans)))
        waiting: list[Markup | Placed] = [text]
        limit = self._length  # of the markup inside the innermost element
        limits: list[int] = []
        while waiting:
            item = waiting.pop()
            if isinstance(item, Markup):
                limit = limits.pop()
                yield item
                continue
            start = limit
            if item.low < len(self._target):
                start = min(self._target[item.low].start, limit)
            limits.append(limit)
            limit = start
            if item.low < item.high:
                limit = self._target[item.high - 1].end
            yield Markup(start, item.span.start_tag, item.span)
            waiting.append(Markup(limit, item.span.end_tag, item.span))
            waiting += reversed(self._inside(item))

    def _inside(self, around: Placed) -> list[Placed]:
        """The spans directly inside another, in the order of the translation; they do
        not overlap.
        """
        spans = list(around.span.inside)
        placed = []
        halves = []
        low = around.low
        high = around.high
        if spans and spans[0].begins_before:
            half = self._placed(spans.pop(0), -1, low, high)
            halves.append(half._replace(low=low))
            low = half.high
        if spans and spans[-1].ends_behind:
            half = self._placed(spans.pop(), len(spans), low, high)
            halves.append(half._replace(high=high))
            high = half.low
        for number, span in enumerate(spans):
            placed.append(self._placed(span, number, low, high))
        elements = _elements(placed)
        pairs = itertools.pairwise(elements)
        if any(behind.low < before.high for before, behind in pairs):
            placed = self._separated(placed, low, high)
            elements = _elements(placed)
        return sorted([*halves, *_outside(placed, elements)], key=_order)

    def _placed(self, span: Span, number: int, lowest: int, highest: int) -> Placed:
        """A span in the translation, within limits."""
        first, behind = self._parts_of(span)
        low = int(self._first[first:behind].min(initial=len(self._target)))
        high = int(self._last[first:behind].max(initial=-1)) + 1
        if high == 0:
            low = high = self._place(span.start)
        low = min(max(low, lowest), highest)
        high = min(max(high, lowest), highest)
        return Placed(low, high, number, span)

    def _parts_of(self, span: Span) -> tuple[int, int]:
        """The first part in a span, and behind the last; equal if it has none. Of a
        word whose core is outside, punctuation is inside if nothing else is.
        """
        first = bisect_right(self._ends, span.start)
        behind = bisect_left(self._starts, span.end)
        if first + 1 < behind and self._source[first].place == SUFFIX:
            first += 1
        if first + 1 < behind and self._source[behind - 1].place == PREFIX:
            behind -= 1
        return first, max(first, behind) if span.start < span.end else first

    def _place(self, offset: int) -> int:
        """Where markup without words is in the translation."""
        part = bisect_right(self._ends, offset)
        place = self._next[part]
        if part == len(self._source) or place == len(self._target):
            return place
        source = self._source[part]
        is_in_word = part > 0 and self._source[part - 1].word == source.word
        while not is_in_word and place > 0:
            if self._target[place - 1].word != self._target[place].word:
                break
            place -= 1
        return place

    def _separated(
        self, placed: Sequence[Placed], lowest: int, highest: int
    ) -> list[Placed]:
        """Neighbours whose words are mixed, each with the longest row of its words."""
        owners: dict[int, int] = {}  # of parts of the translation
        for item in placed:
            for part in range(*self._parts_of(item.span)):
                for target in self._aligned[part]:
                    if lowest <= target < highest:
                        owners[target] = item.number
        rows: dict[int, list[int]] = {}  # of each neighbour the longest
        for number, row in itertools.groupby(sorted(owners), key=owners.__getitem__):
            targets = list(row)
            if len(targets) > len(rows.get(number, ())):
                rows[number] = targets
        separated = []
        for item in placed:
            low = item.low
            high = low
            if item.number in rows:
                low = rows[item.number][0]
                high = rows[item.number][-1] + 1
            separated.append(item._replace(low=low, high=high))
        return separated


def _parts(text: str, start: int, word: int) -> list[Part]:
    """The parts of a sentence's words. The sentence begins at the offset `start`, and
    its first word has the number `word`.
    """
    parts = []
    for number, match in enumerate(WORD.finditer(text), word):
        core = CORE.search(text, *match.span()) or match
        offsets = [match.start(), core.start(), core.end(), match.end()]
        for place, (low, high) in enumerate(itertools.pairwise(offsets)):
            if low < high:
                parts.append(Part(start + low, start + high, number, place))
    return parts


def _numbers(parts: Sequence[Part]) -> dict[tuple[int, int], int]:
    """The index of the part at each place of each word."""
    return {(part.word, part.place): index for index, part in enumerate(parts)}


def _elements(placed: Sequence[Placed]) -> list[Placed]:
    """Those with words, in order."""
    elements = [item for item in placed if item.low < item.high]
    return sorted(elements, key=_order)


def _outside(placed: Sequence[Placed], elements: Sequence[Placed]) -> Iterator[Placed]:
    """Neighbours, with those without words outside the others."""
    lows = [item.low for item in elements]
    for item in placed:
        number = bisect_left(lows, item.low) - 1
        low = item.low
        if low == item.high and number >= 0 and low < elements[number].high:
            low = lows[number]
            item = item._replace(low=low, high=low)
        yield item


def _order(item: Placed) -> tuple[int, bool, int]:
    """At one place markup without words comes first, in the order of the source."""
    return item.low, item.low < item.high, item.number


def _with_markup(text: str, tags: Iterator[Markup]) -> str:
    """Text as HTML with tags, which are in order. Objects have white space around them
    as in the source.
    """
    parts: list[str] = []
    last = ""  # the last visible character
    needs_space = False
    at = 0
    for tag in [*tags, Markup(len(text), "", Span(0, ""))]:
        piece = text[at : tag.offset]
        if piece:
            if needs_space and not piece[0].isspace() and piece[0] not in CLOSING_MARKS:
                parts.append(" ")
            parts.append(html.escape(piece, quote=False))
            last = piece[-1]
            needs_space = False
        span = tag.span
        if span.is_object and tag.source:
            is_apart = needs_space or span.space_before
            if is_apart and last and not last.isspace():
                parts.append(" ")
            last = tag.source[-1]
            needs_space = span.space_behind
        parts.append(tag.source)
        at = tag.offset
    return "".join(parts)
