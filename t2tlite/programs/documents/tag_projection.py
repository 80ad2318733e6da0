"""Puts the inline tags of a text into its translation, by its word alignment.

The rule: an element encloses the smallest range of the translation that holds every
word aligned to a word inside the element, and begins and ends with punctuation if the
element does. Elements stay nested as they were. If the words of neighbouring elements
are mixed, each element encloses the longest row of its own words; a word that is
aligned to several of them belongs to none. An element without words, and markup that is
visible at its place, precedes the word that is aligned to the next word; it stays
inside its parent and outside its neighbours.
"""

import html
import itertools
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.html_tree import TEXT, Node
from t2tlite.programs.documents.sentences import SplitText

Sentences = Sequence[tuple[str, Alignment]]  # the translation of each
Translated = tuple[SplitText, Sentences]  # a text, and those of its sentences

WORD = re.compile(r"\S+")
# of a word: from its first to its last letter or digit
CORE = re.compile(r"[^\W_](?:.*[^\W_])?")


class Word(NamedTuple):
    """Where a word of a text is, and its core, which is the word without punctuation;
    of a word without a letter or digit, the whole.
    """

    start: int
    core_start: int
    core_end: int
    end: int


class Placed(NamedTuple):
    """Where a node is in the translation, in characters. At one place those without
    words come first.
    """

    start: int
    has_words: bool
    number: int  # of the node
    end: int


class Projection:
    """The words of a text and of its translation, and how they are aligned; and the
    translation as HTML, as far as it is written.
    """

    def __init__(self, split: SplitText, sentences: Sentences) -> None:
        self._text = split.join([segment.sentence for segment in split.segments])
        self._translation = split.join([text for text, _ in sentences])
        self._source: list[Word] = []
        self._target: list[Word] = []
        self._aligned: list[list[int]] = []  # of each source word the target words
        self._source_at = 0
        self._target_at = 0
        for segment, translated in zip(split.segments, sentences, strict=True):
            self._add_words(segment.before, segment.before)
            self._add_words(segment.sentence, *translated)
        self._add_words(split.after, split.after)
        self._core_starts = [word.core_start for word in self._source]
        self._core_ends = [word.core_end for word in self._source]
        # the first target word aligned to each source word or one behind it
        self._next: list[int | None] = [None]
        for words in reversed(self._aligned):
            self._next.append(min(words, default=self._next[-1]))
        self._next.reverse()
        self._parts: list[str] = []
        self._at = 0  # what is written of the translation
        self._is_behind_object = False

    def html(self, nodes: Sequence[Node]) -> str:
        """The translation as HTML, with the markup of the text by the rule above."""
        end = len(self._translation)
        self._write(nodes, end)
        self._add_text(end)
        return "".join(self._parts)

    def _add_words(
        self, source: str, target: str, alignment: Alignment | None = None
    ) -> None:
        """Adds the words of a sentence, or of text that stays as it is."""
        first_source = len(self._source)
        first_target = len(self._target)
        self._source += _words(source, self._source_at)
        self._target += _words(target, self._target_at)
        count = len(self._source) - first_source
        if alignment is None:
            alignment = [(i, i) for i in range(count)]
        self._aligned += [[] for _ in range(count)]
        for i, j in alignment:
            self._aligned[first_source + i].append(first_target + j)
        self._source_at += len(source)
        self._target_at += len(target)

    def _write(self, nodes: Sequence[Node], end: int) -> None:
        """Adds the markup inside a range that ends at an offset, and the text before
        and between it. A space separates objects from letters and digits.
        """
        nodes = [node for node in nodes if node.name != TEXT]
        for place in self._placed(nodes, self._at, end):
            node = nodes[place.number]
            self._add_text(place.start)
            if not node.is_object:
                self._parts.append(node.source)
                self._write(node.children, place.end)
                self._add_text(place.end)
                self._parts.append(node.end)
                continue
            is_behind_word = self._translation[: self._at][-1:].isalnum()
            if is_behind_word and not self._is_behind_object:
                self._parts.append(" ")
            self._parts += node.sources()
            self._is_behind_object = True

    def _add_text(self, end: int) -> None:
        """Adds the text up to an offset."""
        piece = self._translation[self._at : end]
        if not piece:
            return
        if self._is_behind_object and piece[0].isalnum():
            self._parts.append(" ")
        self._parts.append(html.escape(piece, quote=False))
        self._at = end
        self._is_behind_object = False

    def _placed(self, nodes: Sequence[Node], start: int, end: int) -> list[Placed]:
        """Where nodes are in a range of the translation, in order."""
        placed = []
        rows = self._rows(nodes, start, end)
        for number, row in rows.items():
            content = self._text[nodes[number].start : nodes[number].stop].strip()
            first = self._target[row[0]]
            last = self._target[row[-1]]
            low = first.core_start if content[0].isalnum() else first.start
            high = last.core_end if content[-1].isalnum() else last.end
            placed.append(Placed(low, True, number, high))
        placed.sort()
        starts = [each.start for each in placed]
        ends = [each.end for each in placed]
        for number, node in enumerate(nodes):
            if number in rows:
                continue
            place = min(max(self._place(node.start, end), start), end)
            before = bisect_left(starts, place) - 1
            if before >= 0 and place < ends[before]:
                place = starts[before]
            placed.append(Placed(place, False, number, place))
        return sorted(placed)

    def _rows(
        self, nodes: Sequence[Node], start: int, end: int
    ) -> dict[int, list[int]]:
        """The longest row of each node's own words within a range of the translation,
        by the node's number.
        """
        owners: dict[int, int] = {}
        shared: set[int] = set()
        for number, node in enumerate(nodes):
            if node.start == node.stop:
                continue
            low = bisect_right(self._core_ends, node.start)
            high = bisect_left(self._core_starts, node.stop)
            words = set(itertools.chain.from_iterable(self._aligned[low:high]))
            shared |= words & owners.keys()
            owners.update(dict.fromkeys(words, number))
        claimed = sorted(owners.keys() - shared)
        low = bisect_left(claimed, start, key=lambda i: self._target[i].core_start)
        high = bisect_right(claimed, end, key=lambda i: self._target[i].core_end)
        rows: dict[int, list[int]] = {}
        inside = claimed[low:high]
        for number, group in itertools.groupby(inside, key=owners.__getitem__):
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
        places = (match.start(), *core.span(), match.end())
        yield Word(*[offset + place for place in places])
