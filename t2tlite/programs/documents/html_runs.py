"""Cuts the text between two blocks of HTML into runs, each translated by itself.

A run ends where the words of neighbouring elements would touch: behind `</a>` in
`<a>The dog</a><a>The bird</a>`, and behind a sentence in `<span>We cry.</span>The dog`.
Elements that format letters, such as <b>, do not end a word, and neither does an
element whose tag stands at one side of the word alone: `<b>H</b><i>ello</i>` and
`<a>dog</a>s` are words.

If all words are in links, as in a menu, each link is a run.

Markup before the first and behind the last word is outside the run, unless that would
separate the two tags of an element around a part of the run.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from t2tlite.programs.documents.html_tokens import unescape
from t2tlite.programs.documents.sentences import LETTER_OR_DIGIT, OPENING
from t2tlite.programs.documents.tag_projection import CLOSING_MARKS, Mark, Role
from t2tlite.vocabularies.normalisation import IGNORED

# These elements may begin and end within a word
FORMATTING = frozenset(
    "abbr b bdi bdo big em font i mark nobr small strong sub sup tt u wbr".split()
)
# the scripts that are written without spaces between words
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
SENTENCE_END = re.compile(r"(?:[^\W\d_]{2}[.!?…]+|[。！？])[\"'”’»)\]」』）]*\Z")
LOOK_AT = 40  # characters at the end of a text that show whether a sentence ends
CHARACTER_REFERENCE = re.compile(r"&#?\w{1,12};?")
REFERENCE_AT_END = re.compile(r"&#?\w{1,12};\Z")


class Item(NamedTuple):
    """A text or a piece of inline markup, from offset `start` to `end`; of a text
    without the white space at its ends.
    """

    start: int
    end: int
    text: str = ""  # visible characters, with one space for white space inside
    space_before: bool = False  # whether the text begins with white space
    space_behind: bool = False
    markup: str = ""
    name: str = ""  # of a tag
    role: Role = Role.POINT
    element: int = -1  # a number that both tags of an element share
    is_object: bool = False  # whether the markup is visible at its place

    @classmethod
    def of_text(cls, document: str, start: int, end: int) -> Item:
        written = IGNORED.sub("", unescape(document[start:end]))
        return cls(
            *_without_space(document, start, end),
            text=" ".join(written.split()),
            space_before=written[:1].isspace(),
            space_behind=written[-1:].isspace(),
        )


class Run(NamedTuple):
    """A text to translate and the markup within it."""

    start: int  # in the document
    end: int
    text: str
    marks: list[Mark]


def find_runs(items: Sequence[Item]) -> Iterator[Run]:
    """The runs of the text and inline markup between two blocks; those without a letter
    or digit are left out.
    """
    start = 0
    cuts = _link_cuts(items) if _is_menu(items) else _cuts(items)
    for cut in [*cuts, len(items)]:
        part = items[start:cut]
        start = cut
        if any(LETTER_OR_DIGIT.search(item.text) for item in part):
            yield _run(_without_edges(part))


def _without_space(document: str, start: int, end: int) -> tuple[int, int]:
    """Where a text begins and ends without the white space around it."""
    while start < end:
        if document[start].isspace():
            start += 1
            continue
        reference = CHARACTER_REFERENCE.match(document, start, end)
        if reference is None or not unescape(reference[0]).isspace():
            break
        start = reference.end()
    while start < end:
        if document[end - 1].isspace():
            end -= 1
            continue
        reference = REFERENCE_AT_END.search(document, max(start, end - 16), end)
        if reference is None or not unescape(reference[0]).isspace():
            break
        end = reference.start()
    return start, end


def _cuts(items: Sequence[Item]) -> Iterator[int]:
    """The indices of the items with which another run begins."""
    last = None  # the last text
    has_space = False  # since then
    markup: list[int] = []  # since then
    for index, item in enumerate(items):
        if item.markup:
            markup.append(index)
            continue
        has_space = has_space or item.space_before
        if not item.text:
            continue
        if last is not None and markup and not has_space:
            cut = _cut_between(items, last, markup, item)
            if cut is not None:
                yield cut
        last = item
        has_space = item.space_behind
        markup = []


def _is_menu(items: Sequence[Item]) -> bool:
    """Whether all words are in links, and there are several."""
    links: set[int] = set()
    link = None  # the open one
    for item in items:
        if item.name == "a" and item.role is Role.OPENING:
            link = item.element
        elif item.name == "a" and item.role is Role.CLOSING:
            link = None
        elif LETTER_OR_DIGIT.search(item.text):
            if link is None:
                return False
            links.add(link)
    return len(links) > 1


def _link_cuts(items: Sequence[Item]) -> Iterator[int]:
    """The indices of the items at which links begin and end, each with the elements
    around it.
    """
    markup: list[int] = []  # since the last word
    for index, item in enumerate(items):
        if item.markup:
            markup.append(index)
        elif LETTER_OR_DIGIT.search(item.text):
            closed, opened = _unmatched(items, markup)
            if any(items[tag].name == "a" for tag in closed) and opened:
                yield closed[-1] + 1
                yield opened[0]
            markup = []


def _unmatched(
    items: Sequence[Item], markup: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The closing tags in some markup whose elements begin before it, and the opening
    tags whose elements end behind it.
    """
    opened: list[int] = []
    closed: list[int] = []
    for index in markup:
        role = items[index].role
        if role is Role.OPENING:
            opened.append(index)
        elif role is Role.CLOSING and opened:
            opened.pop()
        elif role is Role.CLOSING:
            closed.append(index)
    return closed, opened


def _cut_between(
    items: Sequence[Item], last: Item, markup: Sequence[int], following: Item
) -> int | None:
    """Where a run ends in the markup between two texts, or None if it does not."""
    if any(items[index].is_object for index in markup):
        return None
    closed, opened = _unmatched(items, markup)
    names = {items[index].name for index in [*closed, *opened]}
    are_siblings = bool(closed) and bool(opened)
    may_end_words = not names <= FORMATTING
    touches = are_siblings and may_end_words and _are_words(last, following, names)
    is_sentence = (are_siblings or may_end_words) and _ends_sentence(last, following)
    if not names or not (touches or is_sentence):
        return None
    return closed[-1] + 1 if closed else opened[0]


def _are_words(last: Item, following: Item, names: set[str]) -> bool:
    """Whether two texts that touch are words by themselves."""
    before = last.text[-1]
    behind = following.text[0]
    if WITHOUT_SPACES.match(before) and WITHOUT_SPACES.match(behind):
        return names == {"a"}
    if before.isalnum():
        return behind.isalnum()
    if before not in CLOSING_MARKS or before in "'’":
        return False
    if behind.isdigit() and last.text[-2:-1].isdigit():
        return False  # a number: 3.99
    return behind.isalnum() or behind in OPENING


def _ends_sentence(last: Item, following: Item) -> bool:
    """Whether a sentence ends between two texts that touch."""
    behind = following.text[0]
    begins = behind.isalpha() and not behind.islower()
    ends = SENTENCE_END.search(last.text[-LOOK_AT:])
    return ends is not None and (begins or behind in "([„‚¿¡“‘«")


def _without_edges(items: Sequence[Item]) -> Sequence[Item]:
    """The items of a run from the first to the last that must be in it."""
    tags: dict[tuple[int, Role], int] = {}
    for index, item in enumerate(items):
        tags[item.element, item.role] = index
    texts = list(itertools.accumulate((bool(item.text) for item in items), initial=0))
    left = 0
    right = len(items)
    while True:
        new_left = _past_first(items, tags, texts, left)
        new_right = _past_last(items, tags, texts, right)
        if (new_left, new_right) != (left, right):
            left = new_left
            right = new_right
        elif tags.get((items[left].element, Role.CLOSING)) == right - 1:
            left += 1
            right -= 1
        else:
            return items[left:right]


def _past_first(
    items: Sequence[Item],
    tags: Mapping[tuple[int, Role], int],
    texts: Sequence[int],
    left: int,
) -> int:
    """Behind markup at `left` that need not be in the run, or `left`."""
    item = items[left]
    if item.text:
        return left
    closing = tags.get((item.element, Role.CLOSING))
    if item.role is not Role.OPENING or closing is None:
        return left + 1
    return closing + 1 if texts[closing] == texts[left] else left


def _past_last(
    items: Sequence[Item],
    tags: Mapping[tuple[int, Role], int],
    texts: Sequence[int],
    right: int,
) -> int:
    """Where markup before `right` that need not be in the run begins, or `right`."""
    item = items[right - 1]
    if item.text:
        return right
    opening = tags.get((item.element, Role.OPENING))
    if item.role is not Role.CLOSING or opening is None:
        return right - 1
    return opening if texts[opening] == texts[right] else right


def _run(items: Sequence[Item]) -> Run:
    """The run of these items; white space is one space, and none at its ends."""
    text = _Text()
    for item in items:
        if item.markup:
            text.add_markup(item)
        else:
            text.add_text(item)
    return Run(items[0].start, items[-1].end, *text.finished())


class _Text:
    """The text of a run and its marks, while its items are added."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._last = ""  # the last character
        self._marks: list[Mark] = []
        self._objects: list[int] = []  # indices of marks since the last text

    def add_markup(self, item: Item) -> None:
        space_before = self._last == " "
        if self._objects:
            space_before = self._marks[self._objects[-1]].space_behind
        if item.is_object:
            self._objects.append(len(self._marks))
        mark = Mark(
            self._length,
            item.markup,
            item.role,
            item.element,
            item.is_object,
            space_before,
        )
        self._marks.append(mark)

    def add_text(self, item: Item) -> None:
        if item.space_before:
            self._add_space()
        if not item.text:
            return
        if self._objects:
            self._meet_objects(item.text[0])
        self._add(item.text)
        self._objects = []
        if item.space_behind:
            self._add_space()

    def finished(self) -> tuple[str, list[Mark]]:
        """The text and its marks, without a space at the end."""
        text = "".join(self._parts).rstrip(" ")
        marks = []
        for mark in self._marks:
            marks.append(mark._replace(offset=min(mark.offset, len(text))))
        return text, marks

    def _add(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
        self._last = text[-1]

    def _add_space(self) -> None:
        """Adds white space, and records it for an object before it."""
        if self._objects:
            index = self._objects[-1]
            self._marks[index] = self._marks[index]._replace(space_behind=True)
        if self._length and self._last != " ":
            self._add(" ")

    def _meet_objects(self, character: str) -> None:
        """Joins or separates the words on both sides of objects, which have no text."""
        first = self._marks[self._objects[0]]
        last = self._marks[self._objects[-1]]
        has_space = first.space_before or last.space_behind
        if not has_space and self._last.isalnum() and character.isalnum():
            self._add(" ")
        if self._last != " " or last.space_behind or character not in CLOSING_MARKS:
            return
        self._parts[-1] = self._parts[-1].removesuffix(" ")
        self._length -= 1
        self._last = ""
        for index in range(len(self._marks) - 1, -1, -1):
            mark = self._marks[index]
            if mark.offset <= self._length:
                break
            self._marks[index] = mark._replace(offset=self._length)
