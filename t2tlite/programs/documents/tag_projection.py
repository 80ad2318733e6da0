"""Puts the inline tags of a sentence into its translation, by its word alignment.

The rule: an element encloses the smallest range of target words that holds every word
aligned to a source word inside the element. Elements stay nested as they were. If the
words of neighbouring elements are mixed, each element encloses the longest row of its
own words. An element without words, and markup that is visible at its place, precedes
the word that is aligned to the next source word; it stays inside its parent and outside
its neighbours. Punctuation at either end of a range is inside if the element encloses
punctuation there in the source, or begins or ends with the sentence. A tag whose other
half is in another sentence begins before, or ends behind, all words inside it.

The time is linear in tags and words, apart from NumPy calls that find the range of a
tag's words in microseconds. Words of mixed neighbours are visited once for each element
around them.
"""

from __future__ import annotations

import collections
import enum
import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.decoding.alignment import Alignment

WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")
# The places of a tag in a target word: an opening tag has an even place, a closing tag
# an odd one.
BEFORE = 0
BEHIND_PREFIX = 1
BEFORE_CORE = 2
BEHIND_CORE = 3
BEFORE_SUFFIX = 4
BEHIND = 5
PLACES = 6  # of a word
# Punctuation that stands directly behind a word
CLOSING_MARKS = frozenset(".,;:!?…%)]}»”’'。，、；：！？）」』")


class Role(enum.Enum):
    """What a piece of markup is to its element."""

    OPENING = enum.auto()
    CLOSING = enum.auto()
    POINT = enum.auto()  # the whole element, or no element at all


class Mark(NamedTuple):
    """Markup in a text."""

    offset: int  # in characters of the text
    markup: str
    role: Role = Role.POINT
    element: int = -1  # a number that both tags of an element share
    is_object: bool = False  # whether it is visible at its place
    space_before: bool = False  # whether white space precedes an object
    space_behind: bool = False  # whether white space follows an object


class WordSpan(NamedTuple):
    """Where a word is in its text; its core is the whole word if it has no letter or
    digit.
    """

    start: int
    core_start: int
    core_end: int
    end: int

    @property
    def offsets(self) -> tuple[int, ...]:
        """The offset of each place of a target word."""
        return (
            self.start,
            self.core_start,
            self.core_start,
            self.core_end,
            self.core_end,
            self.end,
        )


class Range(NamedTuple):
    """Places from that of an opening tag to that of its closing tag; equal for markup
    without words.
    """

    low: int
    high: int
    first: int  # the index of its first mark
    last: int  # the index of its last mark, the closing tag


def project(
    source: str, marks: Sequence[Mark], target: str, alignment: Alignment
) -> list[Mark]:
    """The marks of a sentence in its translation, by the rule above.

    >>> opening = Mark(2, "<i>", Role.OPENING)
    >>> closing = Mark(3, "</i>", Role.CLOSING)
    >>> projected = project("a b", [opening, closing], "B A", [(1, 0), (0, 1)])
    >>> [(mark.offset, mark.markup) for mark in projected]
    [(0, '<i>'), (1, '</i>')]
    """
    if not marks:
        return []
    offsets: list[int] = []  # of each place in the target
    for word in _words(target):
        offsets += word.offsets
    end = len(offsets)
    offsets.append(len(target))
    places = _Places(source, alignment, end)
    partners = _partners(marks)
    halves = [i for i, partner in enumerate(partners) if partner is None]
    projected: list[Mark] = []
    first = 0
    low = 0
    for half in [*halves, len(marks)]:  # marks between two halves stay between them
        high = end
        if half < len(marks):
            high = min(max(low, places.of_half(marks[half])), end)
        section = Range(low, high, first - 1, half)
        for place, index in _nested(marks, partners, section, places):
            projected.append(marks[index]._replace(offset=offsets[place]))
        if half < len(marks):
            projected.append(marks[half]._replace(offset=offsets[high]))
        first = half + 1
        low = high
    return projected


def _words(text: str) -> list[WordSpan]:
    words = []
    for match in WORD.finditer(text):
        core = CORE.search(text, *match.span()) or match
        word = WordSpan(match.start(), core.start(), core.end(), match.end())
        words.append(word)
    return words


class _Places:
    """Where the tags of a source sentence go in its translation, whose places end at
    `end`.
    """

    def __init__(self, source: str, alignment: Alignment, end: int) -> None:
        self._words = _words(source)
        self._starts = [word.start for word in self._words]
        self._ends = [word.end for word in self._words]
        # the first places of the target words that are aligned to each source word
        self._aligned: dict[int, list[int]] = collections.defaultdict(list)
        for source_word, target_word in alignment:
            self._aligned[source_word].append(target_word * PLACES)
        count = len(self._words)
        self._first = np.full(count, end)  # a word that is not aligned has the end
        self._last = np.full(count, -1)  # and -1
        # of each word the first, or else that of the next word that is aligned
        self._next = [end] * (count + 1)
        for i in reversed(range(count)):
            self._next[i] = self._next[i + 1]
            if self._aligned[i]:
                self._first[i] = min(self._aligned[i])
                self._last[i] = max(self._aligned[i])
                self._next[i] = int(self._first[i])

    def of_point(self, offset: int) -> int:
        """The place of a tag without words."""
        word = bisect_right(self._ends, offset)
        place = self._next[word]
        if word == len(self._words) or self._last[word] < 0:
            return place
        if offset <= self._words[word].start:
            return place + BEFORE
        if offset < self._words[word].core_end:
            return place + BEFORE_CORE
        return place + BEFORE_SUFFIX

    def of_span(self, start: int, end: int) -> tuple[int, int]:
        """The places of an element around these characters."""
        first, behind = self._word_indices(start, end)
        last = behind - 1
        if start >= end or first > last:
            return (self.of_point(start),) * 2
        start = max(start, self._starts[first])
        end = min(end, self._ends[last])
        after_core = start >= self._words[first].core_end
        if after_core and first < last:  # of this word, punctuation alone is inside
            first += 1
            after_core = False
        before_core = end <= self._words[last].core_start
        if before_core and first < last:
            last -= 1
            before_core = False
        low = int(self._first[first : last + 1].min())
        high = int(self._last[first : last + 1].max())
        if high < 0:  # no word is aligned
            return (self.of_point(start),) * 2
        if after_core:
            return high + BEFORE_SUFFIX, high + BEHIND
        if before_core:
            return low + BEFORE, low + BEHIND_PREFIX
        encloses_prefix = start < self._words[first].core_start
        if start == self._starts[0] or encloses_prefix:
            low += BEFORE
        else:
            low += BEFORE_CORE
        encloses_suffix = end > self._words[last].core_end
        if end == self._ends[-1] or encloses_suffix:
            high += BEHIND
        else:
            high += BEHIND_CORE
        return low, high

    def separate(
        self, marks: Sequence[Mark], ranges: Sequence[Range], limits: Range
    ) -> list[Range]:
        """The ranges of neighbours whose words are mixed, in order, each narrowed to
        the longest row of its own words.
        """
        owners: dict[int, int] = {}  # of source words, by index
        lengths: dict[int, int] = {}
        for number, item in enumerate(ranges):
            start = marks[item.first].offset
            end = marks[item.last].offset
            for index in range(*self._word_indices(start, end)):
                word = self._words[index]
                length = min(end, word.end) - max(start, word.start)
                if length > lengths.get(index, 0):
                    owners[index] = number
                    lengths[index] = length
        owned: dict[int, int] = {}  # the owner of each target word
        for index, number in owners.items():
            for target_word in self._aligned[index]:
                if limits.low <= target_word < limits.high:
                    owned[target_word] = number
        rows: dict[int, list[int]] = {}  # of each owner the longest
        for number, row in itertools.groupby(sorted(owned), key=owned.__getitem__):
            target_words = list(row)
            if len(target_words) > len(rows.get(number, ())):
                rows[number] = target_words
        separated = []
        for number, item in enumerate(ranges):
            low = item.low
            high = low
            if number in rows:
                low = max(rows[number][0] + item.low % PLACES, limits.low)
                high = min(rows[number][-1] + item.high % PLACES, limits.high)
            separated.append(item._replace(low=low, high=max(low, high)))
        return separated

    def _word_indices(self, start: int, end: int) -> tuple[int, int]:
        """The indices of the first source word in a span and behind the last."""
        return bisect_right(self._ends, start), bisect_left(self._starts, end)

    def of_half(self, mark: Mark) -> int:
        """The place of a tag whose other half is in another sentence."""
        if mark.role is Role.CLOSING:
            return self.of_span(0, mark.offset)[1] if mark.offset else 0
        return self.of_span(mark.offset, self._ends[-1] if self._ends else 0)[0]


def _partners(marks: Sequence[Mark]) -> list[int | None]:
    """The index of each tag's other half: its own if it has none, or None if that is in
    another sentence. A tag that is still open when the tag around it closes has no
    other half.
    """
    partners: list[int | None] = list(range(len(marks)))
    opened: list[int] = []
    elements: set[int] = set()  # of the opened
    for i, mark in enumerate(marks):
        if mark.role is Role.OPENING:
            opened.append(i)
            elements.add(mark.element)
        elif mark.role is Role.CLOSING and mark.element in elements:
            closed = -1
            while closed < 0 or marks[closed].element != mark.element:
                closed = opened.pop()
                elements.discard(marks[closed].element)
            partners[closed] = i
            partners[i] = closed
        elif mark.role is Role.CLOSING and not opened:
            partners[i] = None
    for i in opened:
        partners[i] = None
    return partners


def _nested(
    marks: Sequence[Mark],
    partners: Sequence[int | None],
    section: Range,
    places: _Places,
) -> Iterator[tuple[int, int]]:
    """The place of each mark inside a section, and its index, in the order of the
    translation.
    """
    waiting: list[tuple[int, int] | Range] = [section]
    while waiting:
        item = waiting.pop()
        if not isinstance(item, Range):
            yield item
            continue
        if item.low == item.high and item is not section:
            for index in range(item.first, item.last + 1):
                yield item.low, index
            continue
        if item is not section:
            yield item.low, item.first
            waiting.append((item.high, item.last))
        waiting += reversed(_inside(marks, partners, item, places))


def _inside(
    marks: Sequence[Mark],
    partners: Sequence[int | None],
    around: Range,
    places: _Places,
) -> list[Range]:
    """The ranges of the elements directly inside another, in the order of the
    translation; they do not overlap.
    """
    ranges: list[Range] = []
    index = around.first + 1
    while index < around.last:
        partner = partners[index]
        last = index if partner is None else partner
        low, high = places.of_span(marks[index].offset, marks[last].offset)
        low = min(max(low, around.low), around.high)
        high = min(max(high, around.low), around.high)
        ranges.append(Range(low, high, index, last))
        index = last + 1
    elements = [item for item in ranges if item.low < item.high]
    elements.sort(key=_low)
    if any(_overlap(elements)):
        elements = places.separate(marks, elements, around)
        elements.sort(key=_low)
    placed = []
    points = [item for item in ranges if item.low == item.high]
    end = around.low
    for item in elements:
        if item.low < item.high and item.low >= end:
            placed.append(item)
            end = item.high
        else:  # its neighbours enclose its words
            points.append(item._replace(high=item.low))
    return _with_points(placed, points)


def _low(item: Range) -> int:
    return item.low


def _overlap(ranges: Sequence[Range]) -> Iterator[bool]:
    """Whether each range, in order, begins before the preceding range ends."""
    for before, behind in itertools.pairwise(ranges):
        yield behind.low < before.high


def _with_points(ranges: Sequence[Range], points: Sequence[Range]) -> list[Range]:
    """Ranges in order, and among them points, none inside a range."""
    lows = [item.low for item in ranges]
    placed = []
    for point in points:
        number = bisect_left(lows, point.low) - 1
        low = point.low
        if number >= 0 and low < ranges[number].high:
            low = ranges[number].low
        placed.append(point._replace(low=low, high=low))
    return sorted([*placed, *ranges], key=_order)


def _order(item: Range) -> tuple[int, bool, int]:
    """At one place points come first, in the order of the source."""
    return item.low, item.low < item.high, item.first


def with_marks(text: str, marks: Sequence[Mark]) -> str:
    """Text as HTML with the marks, which are in order. Objects have white space around
    them as in the source.
    """
    parts: list[str] = []
    last = ""  # the last visible character
    needs_space = False
    at = 0
    for mark in [*marks, None]:
        piece = text[at:] if mark is None else text[at : mark.offset]
        if piece:
            if needs_space and not piece[0].isspace() and piece[0] not in CLOSING_MARKS:
                parts.append(" ")
            parts.append(html.escape(piece, quote=False))
            last = piece[-1]
            needs_space = False
        if mark is None:
            break
        if mark.is_object:
            is_apart = needs_space or mark.space_before
            if is_apart and last and not last.isspace():
                parts.append(" ")
            last = mark.markup[-1]
            needs_space = mark.space_behind
        parts.append(mark.markup)
        at = mark.offset
    return "".join(parts)
