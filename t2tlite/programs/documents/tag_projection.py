"""Puts the inline tags of a text into its translation, by its word alignment.

The rule: an element encloses the smallest range of the translation that holds every
word aligned to a word inside the element. Punctuation before and behind a word is
aligned to punctuation there. Elements stay nested as they were. If the words of
neighbouring elements are mixed, each element encloses the longest row of its own words;
a word that is aligned to several of them belongs to none. An element without words, and
markup that is visible at its place, precedes the word that is aligned to the next word;
it stays inside its parent and outside its neighbours.
"""

from __future__ import annotations

import dataclasses
import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.sentences import SplitText

# a text, and the translation and alignment of each of its sentences
Translated = tuple[SplitText, Sequence[tuple[str, Alignment]]]

WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")
# Each word has so many parts: the core, or the whole word if it has no letter or digit,
# and the punctuation before and behind, which may be empty.
PARTS = 3
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
    is_object: bool = False  # whether it is visible at its place
    space_before: bool = False  # whether white space precedes an object
    space_behind: bool = False  # whether white space follows an object

    @property
    def begins_before(self) -> bool:
        """Whether it is the last part of an element that begins before the text."""
        return not self.start_tag

    @property
    def ends_behind(self) -> bool:
        """Whether it is the first part of an element that ends behind the text."""
        return not self.end_tag and self.start < self.end


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
    writer = _Writer(text)
    _AlignedWords(split, sentences).write(spans, writer)
    writer.add_text(len(text))
    return "".join(writer.parts)


# a range of parts of the translation, and the number of the span there
Placed = tuple[int, int, int]


class _Words:
    """The parts of words, by their order: where each begins and ends."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.ends: list[int] = []

    def add(self, text: str, offset: int) -> None:
        """Adds the words of a text that begins at an offset."""
        for match in WORD.finditer(text):
            core = CORE.search(text, *match.span()) or match
            places = [match.start(), core.start(), core.end(), match.end()]
            self.starts += [offset + place for place in places[:-1]]
            self.ends += [offset + place for place in places[1:]]

    def has(self, part: int) -> bool:
        """Whether there is a part with characters."""
        return part < len(self.starts) and self.starts[part] < self.ends[part]


class _AlignedWords:
    """The words of a text and of its translation, and how they are aligned."""

    def __init__(
        self, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
    ) -> None:
        self._source = _Words()
        self._target = _Words()
        pairs: list[tuple[int, int]] = []  # of words, by the first part of each
        source_start = 0
        target_start = 0
        for (before, source), (target, alignment) in zip(
            split.segments, sentences, strict=True
        ):
            source_part = len(self._source.starts)
            target_part = len(self._target.starts)
            self._source.add(source, source_start + len(before))
            self._target.add(target, target_start + len(before))
            for source_word, target_word in alignment:
                pairs.append(
                    (
                        source_part + PARTS * source_word,
                        target_part + PARTS * target_word,
                    )
                )
            source_start += len(before) + len(source)
            target_start += len(before) + len(target)
        self._count = len(self._target.starts)
        self._aligned: list[list[int]] = [[] for _ in self._source.starts]
        for source_part, target_part in pairs:
            for place in range(PARTS):
                part = target_part + place
                if self._source.has(source_part + place) and self._target.has(part):
                    self._aligned[source_part + place].append(part)
        # the first part that is aligned to a part of the source or to one behind
        self._next = [self._count]
        for parts in reversed(self._aligned):
            self._next.append(min(parts, default=self._next[-1]))
        self._next.reverse()

    def write(self, spans: Sequence[Span], writer: _Writer) -> None:
        """Writes the tags of the spans of a text."""
        self._write(spans, (0, self._count), writer, len(writer.text))

    def _write(
        self, spans: Sequence[Span], around: tuple[int, int], writer: _Writer, end: int
    ) -> None:
        """Writes the spans inside a range of parts, which ends at the offset `end`."""
        for low, high, number in self._placed(spans, *around):
            span = spans[number]
            start = end
            if low < self._count:
                start = min(self._target.starts[low], end)
            writer.add_text(start)
            if span.is_object:
                writer.add_object(span)
                continue
            stop = self._target.ends[high - 1] if low < high else start
            writer.parts.append(span.start_tag)
            self._write(span.inside, (low, high), writer, stop)
            writer.add_text(stop)
            writer.parts.append(span.end_tag)

    def _placed(self, spans: Sequence[Span], lowest: int, highest: int) -> list[Placed]:
        """The range of parts of each span within a range, with the span's number. They
        are in order and do not overlap. A range without words is empty.
        """
        first_owners: dict[int, int] = {}  # of parts of the translation
        last_owners: dict[int, int] = {}
        claims = []
        for number, span in enumerate(spans):
            claims.append(dict.fromkeys(self._aligned_to(span), number))
        for claim in claims:
            last_owners.update(claim)
        for claim in reversed(claims):
            first_owners.update(claim)
        owners = dict(first_owners.items() & last_owners.items())
        parts = sorted(owners)
        within = slice(bisect_left(parts, lowest), bisect_left(parts, highest))
        rows: dict[int, list[int]] = {}  # of each span the longest
        for number, row in itertools.groupby(parts[within], key=owners.__getitem__):
            owned = list(row)
            if len(owned) > len(rows.get(number, ())):
                rows[number] = owned
        placed = [(row[0], row[-1] + 1, number) for number, row in rows.items()]
        placed.sort()
        lows = [low for low, _, _ in placed]
        behinds = [behind for _, behind, _ in placed]
        for number, span in enumerate(spans):
            if number not in rows:
                low = min(max(self._place(span.start), lowest), highest)
                before = bisect_left(lows, low)  # spans
                if before and low < behinds[before - 1]:
                    low = lows[before - 1]
                placed.append((low, low, number))
        placed = _between_parts(spans, placed, lowest, highest)
        # at one place markup without words comes first, in the order of the source
        return sorted(placed, key=lambda item: (item[0], item[1] > item[0], item[2]))

    def _aligned_to(self, span: Span) -> list[int]:
        """The parts aligned to a span's. Of a word whose core is outside, punctuation
        is inside if nothing else is.
        """
        first = bisect_right(self._source.ends, span.start)
        behind = bisect_left(self._source.starts, span.end)
        if first + 1 < behind and first % PARTS == PARTS - 1:
            first += 1
        if first + 1 < behind and (behind - 1) % PARTS == 0:
            behind -= 1
        if span.start == span.end:
            behind = first
        return list(itertools.chain.from_iterable(self._aligned[first:behind]))

    def _place(self, offset: int) -> int:
        """Where markup without words is in the translation."""
        part = bisect_right(self._source.ends, offset)
        place = self._next[part]
        if part == len(self._source.starts) or place == self._count:
            return place
        if offset <= self._source.starts[part - part % PARTS]:
            place -= place % PARTS  # before the whole word
        return place


def _between_parts(
    spans: Sequence[Span], placed: Sequence[Placed], lowest: int, highest: int
) -> list[Placed]:
    """The spans between the parts of elements that begin before the text or end behind
    it, which reach to the limits.
    """
    begins = lowest
    ends = highest
    last = len(spans) - 1
    for low, high, number in placed:
        if number == 0 and spans[0].begins_before:
            begins = high
        elif number == last and spans[last].ends_behind:
            ends = low
    ends = max(begins, ends)
    between = []
    for low, high, number in placed:
        if number == 0 and spans[0].begins_before:
            low = lowest
        elif number == last and spans[last].ends_behind:
            low = ends
            high = highest
        else:
            low = min(max(low, begins), ends)
            high = min(max(high, begins), ends)
        between.append((low, high, number))
    return between


class _Writer:
    """A text as HTML with tags, in order. Objects have white space around them as in
    the source.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.parts: list[str] = []
        self._at = 0
        self._last = " "  # the last visible character
        self._needs_space = False

    def add_text(self, end: int) -> None:
        """Adds the text up to an offset."""
        piece = self.text[self._at : end]
        self._at = end
        if not piece:
            return
        joins = piece[0].isspace() or piece[0] in CLOSING_MARKS
        if self._needs_space and not joins:
            self.parts.append(" ")
        self.parts.append(html.escape(piece, quote=False))
        self._last = piece[-1]
        self._needs_space = False

    def add_object(self, span: Span) -> None:
        """Adds an object."""
        if (self._needs_space or span.space_before) and not self._last.isspace():
            self.parts.append(" ")
        self.parts.append(span.start_tag)
        self._last = span.start_tag[-1]
        self._needs_space = span.space_behind
