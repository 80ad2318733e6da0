"""Puts the inline tags of a sentence into its translation, by its word alignment.

The rule: a tag encloses the smallest range of target words that holds all that are
aligned to a source word inside it. A tag without words goes before the word that is
aligned to the next source word, within what encloses it. Punctuation before the first
word of a range and behind its last is inside if the tag encloses punctuation there in
the source, or begins or ends with the sentence. Where the ranges of two tags overlap,
the one that begins first is extended, so that tags are nested. A tag whose other half
is in another sentence begins before, or ends behind, all words inside it.

Each tag and each word is looked at a limited number of times, except that NumPy finds
the range of the words inside a tag; for as many words as a request may have, that takes
microseconds.
"""

from __future__ import annotations

import collections
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.decoding.alignment import Alignment

TAG = re.compile(r"<(/?)([a-z][^\s/>]*)", re.IGNORECASE)
# the last with content
EMPTY_TAGS = frozenset(
    "area embed img input param source track wbr script style".split()
)
# the end of an attribute, as in <a href=t2t.org/>
UNQUOTED_SLASH = re.compile(r"=[^\s\"'=]*/>\Z")
WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")
# Places where a tag may stand in a target word: an opening tag at an even one, a
# closing tag at an odd one
BEFORE, BEHIND_PREFIX, BEFORE_CORE, BEHIND_CORE, BEFORE_SUFFIX, BEHIND, PLACES = range(
    7
)


class Mark(NamedTuple):
    """Markup in a text."""

    offset: int  # in characters of the text
    markup: str


class Word(NamedTuple):
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
    """Places from that of an opening tag to that of its closing tag; equal where a tag
    has no words.
    """

    low: int
    high: int
    before: str  # the opening tag, or all markup of a tag without words
    behind: str = ""


def project(
    source: str, marks: Sequence[Mark], target: str, alignment: Alignment
) -> list[Mark]:
    """The marks of a sentence in its translation, by the rule above.

    >>> project("a b", [Mark(2, "<i>"), Mark(3, "</i>")], "B A", [(1, 0), (0, 1)])
    [Mark(offset=0, markup='<i>'), Mark(offset=1, markup='</i>')]
    """
    if not marks:
        return []
    words = _words(target)
    end = len(words) * PLACES
    offsets = [offset for word in words for offset in word.offsets] + [len(target)]
    places = _Places(source, alignment, end)
    partners = _partners(marks)
    halves = [i for i, partner in enumerate(partners) if partner is None]
    projected: list[Mark] = []
    first, low = 0, 0
    for half in [*halves, len(marks)]:  # what is between two halves stays between them
        high = (
            end
            if half == len(marks)
            else min(max(low, places.of_half(marks[half])), end)
        )
        ranges = _ranges(marks, partners, range(first, half), places, (low, high))
        projected += [Mark(offsets[place], markup) for place, markup in _nested(ranges)]
        if half < len(marks):
            projected.append(Mark(offsets[high], marks[half].markup))
        first, low = half + 1, high
    return projected


def _words(text: str) -> list[Word]:
    words = []
    for match in WORD.finditer(text):
        core = CORE.search(text, *match.span()) or match
        words.append(Word(match.start(), core.start(), core.end(), match.end()))
    return words


class _Places:
    """Where the tags of a source sentence go in its translation, whose places end at
    `end`.
    """

    def __init__(self, source: str, alignment: Alignment, end: int) -> None:
        self._words = _words(source)
        self._starts = [word.start for word in self._words]
        self._ends = [word.end for word in self._words]
        aligned: dict[int, list[int]] = collections.defaultdict(list)
        for source_word, target_word in alignment:
            aligned[source_word].append(target_word * PLACES)
        numbers = range(len(self._words))
        # end, -1: not aligned
        self._first = np.array([min(aligned[i], default=end) for i in numbers])
        self._last = np.array([max(aligned[i], default=-1) for i in numbers])
        # of each word, or else of the next that is aligned
        self._next = [*map(int, self._first), end]
        for i in reversed(numbers):
            if self._next[i] == end:
                self._next[i] = self._next[i + 1]

    def of_point(self, offset: int) -> int:
        """The place of a tag without words."""
        word = bisect_right(self._ends, offset)
        if word == len(self._words) or self._last[word] < 0:
            return self._next[word]
        start, _, core_end, _ = self._words[word]
        return self._next[word] + (
            BEFORE
            if offset <= start
            else BEFORE_CORE
            if offset < core_end
            else BEFORE_SUFFIX
        )

    def of_span(self, start: int, end: int) -> tuple[int, int]:
        """The places of a tag around these characters."""
        first, last = (
            bisect_right(self._ends, start),
            bisect_left(self._starts, end) - 1,
        )
        if start >= end or first > last:
            return (self.of_point(start),) * 2
        start, end = max(start, self._starts[first]), min(end, self._ends[last])
        after_core, before_core = (
            start >= self._words[first].core_end,
            end <= self._words[last].core_start,
        )
        if after_core and first < last:  # of this word, punctuation alone is inside
            first, after_core = first + 1, False
        if before_core and first < last:
            last, before_core = last - 1, False
        low, high = (
            int(self._first[first : last + 1].min()),
            int(self._last[first : last + 1].max()),
        )
        if high < 0:
            return (self.of_point(start),) * 2
        if after_core:
            return high + BEFORE_SUFFIX, high + BEHIND
        if before_core:
            return low + BEFORE, low + BEHIND_PREFIX
        opening = (
            BEFORE
            if start == self._starts[0] or start < self._words[first].core_start
            else BEFORE_CORE
        )
        closing = (
            BEHIND
            if end == self._ends[-1] or end > self._words[last].core_end
            else BEHIND_CORE
        )
        return low + opening, high + closing

    def of_half(self, mark: Mark) -> int:
        """The place of a tag whose other half is in another sentence."""
        if mark.markup.startswith("</"):
            return self.of_span(0, mark.offset)[1] if mark.offset else 0
        return self.of_span(mark.offset, self._ends[-1] if self._ends else 0)[0]


def _partners(marks: Sequence[Mark]) -> list[int | None]:
    """Of each tag the index of its other half, its own if it has none, or None if that
    is in another sentence.

    A tag that is not closed before the tag around it is has no other half.
    """
    partners: list[int | None] = list(range(len(marks)))
    opened: list[tuple[int, str]] = []
    names: collections.Counter[str] = collections.Counter()  # of the opened
    for i, (_, markup) in enumerate(marks):
        tag = TAG.match(markup)
        name = tag[2].lower() if tag else ""
        is_empty = name in EMPTY_TAGS or (
            markup.endswith("/>") and not UNQUOTED_SLASH.search(markup)
        )
        if tag is None or is_empty:
            continue
        if not tag[1]:
            opened.append((i, name))
            names[name] += 1
        elif names[name]:
            closed = ""
            while closed != name:
                opening, closed = opened.pop()
                names[closed] -= 1
            partners[opening], partners[i] = i, opening
        elif not opened:
            partners[i] = None
    for opening, _ in opened:
        partners[opening] = None
    return partners


def _ranges(
    marks: Sequence[Mark],
    partners: Sequence[int | None],
    indices: range,
    places: _Places,
    limits: tuple[int, int],
) -> list[Range]:
    """The ranges of some marks, in order: each within that of the tag around it, all
    within the limits.
    """
    ranges: list[Range] = []
    around = [limits]
    done = indices.start  # marks before this one are in a range
    for i in indices:
        partner = partners[i]
        if partner is None or i < done:
            continue
        if partner < i:  # a closing tag
            around.pop()
            continue
        least, most = around[-1]
        low, high = places.of_span(marks[i].offset, marks[partner].offset)
        low, high = (min(max(place, least), most) for place in (low, high))
        if low < high:
            ranges.append(Range(low, high, marks[i].markup, marks[partner].markup))
            around.append((low, high))
        else:
            done = partner + 1
            ranges.append(
                Range(low, low, "".join(mark.markup for mark in marks[i:done]))
            )
    return ranges


def _nested(ranges: Sequence[Range]) -> Iterator[tuple[int, str]]:
    """The markup of ranges by place, nested; a tag comes before those inside it.

    Ranges that are open lie on a stack, and those that end at the same place are
    counted together: when a range that begins later ends later than they do, they are
    extended at once.
    """
    behind: list[str] = []
    open_ends: list[tuple[int, int]] = []  # place and number, the last ends first
    for low, high, before, closing in sorted(ranges, key=lambda item: item.low):
        while open_ends and open_ends[-1][0] < low:
            place, number = open_ends.pop()
            for _ in range(number):
                yield place, behind.pop()
        yield low, before
        if low < high:
            number = 1
            while open_ends and open_ends[-1][0] <= high:
                number += open_ends.pop()[1]
            open_ends.append((high, number))
            behind.append(closing)
    for place, number in reversed(open_ends):
        for _ in range(number):
            yield place, behind.pop()
