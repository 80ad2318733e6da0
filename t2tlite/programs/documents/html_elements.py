"""Where the elements of an HTML document begin and end, and which are not translated.

Elements begin and end as in browsers: void elements have no content, <p>, <li>, <td>
and others end without end tags, and an end tag inside a table cell does not end an
element around the cell. An end tag of an inline element does not end the block or the
untouched element around the tag. Unlike in browsers, elements are neither moved nor
repeated.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from t2tlite.programs.documents.html_tokens import (
    FOREIGN,
    INTEGRATION_POINTS,
    Kind,
    Token,
)

VOID = frozenset(
    "area base br col embed frame hr img input link meta param source track wbr".split()
)
BLOCKS = frozenset(
    "address article aside base blockquote body br button caption center col colgroup"
    " dd details dialog dir div dl dt fieldset figcaption figure footer form frame"
    " frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link"
    " listing main menu meta nav noembed noframes noscript ol optgroup option p"
    " plaintext pre search section select summary table tbody td template textarea"
    " tfoot th thead title tr ul xmp".split()
)
# never translated, unless translate="yes" says so
UNTOUCHED = frozenset("code kbd math ruby samp svg var".split())
PREFORMATTED = frozenset("listing pre textarea".split())

# an end tag does not end an element around the innermost of these
SCOPES = frozenset(
    "applet caption html marquee math object svg table td template th".split()
)
CELLS = frozenset("td th".split())
ROWS = CELLS | {"tr"}
GROUPS = ROWS | {"tbody", "thead", "tfoot", "caption", "colgroup"}
TERMS = frozenset("dd dt".split())
# For a start tag: the elements that it ends, and the elements around which it ends none
ENDED_BY_START = {
    "li": (frozenset(["li"]), frozenset("ol ul menu dir".split())),
    **dict.fromkeys(TERMS, (TERMS, frozenset(["dl"]))),
    "option": (frozenset(["option"]), frozenset("select datalist".split())),
    "optgroup": (frozenset("option optgroup".split()), frozenset(["select"])),
    **dict.fromkeys(CELLS, (CELLS, frozenset(["table"]))),
    "tr": (ROWS, frozenset(["table"])),
    **dict.fromkeys(("tbody", "thead", "tfoot"), (GROUPS, frozenset(["table"]))),
    "a": (frozenset(["a"]), BLOCKS),
    "button": (frozenset(["button"]), frozenset()),
    "body": (frozenset(["head"]), frozenset()),
}
PARAGRAPH_ENDS = frozenset(
    "address article aside blockquote center details dialog dir div dl dd dt fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr li listing main"
    " menu nav ol p plaintext pre search section summary table ul xmp".split()
)
YES = frozenset(["", "yes"])


class Elements(NamedTuple):
    """Properties of each token of a document, by index."""

    partners: list[int | None]  # the other tag of its element, or None
    ends: list[int]  # of a start tag: the index behind its element's last token
    is_translated: list[bool]  # whether its text, or its element's text, is translated
    is_preformatted: list[bool]  # whether white space in its text counts
    separates: list[bool]  # of a start tag: whether its content has blocks of text


@dataclasses.dataclass
class _Open:
    """An element that has no end yet."""

    index: int  # of its start tag
    name: str
    is_barrier: bool  # against end tags of inline elements outside
    is_closed: bool = False  # by an end tag that came too early


class _OpenElements:
    """The open elements, the innermost last."""

    def __init__(self, size: int) -> None:
        self.partners: list[int | None] = [None] * size
        self.ends = list(range(1, size + 1))
        self._stack: list[_Open] = []
        self._by_name: dict[str, list[int]] = defaultdict(list)  # places in the stack
        self._barriers: list[int] = []  # places of blocks and untouched elements
        self._scopes: list[int] = []

    def start(self, index: int, token: Token) -> None:
        """Opens an element after closing the elements that its start tag ends."""
        if token.breaks_out:
            self._break_out(index)
        self._end_by_start(index, token.name)
        if token.name in VOID:
            return
        place = len(self._stack)
        is_untouched = _translates(token, True) is False
        is_barrier = token.name in BLOCKS or is_untouched
        self._stack.append(_Open(index, token.name, is_barrier))
        self._by_name[token.name].append(place)
        if is_barrier:
            self._barriers.append(place)
        if token.name in SCOPES:
            self._scopes.append(place)

    def end(self, index: int, name: str) -> None:
        """Closes the innermost element of this name, if the end tag can close it."""
        if not self._by_name[name]:
            return
        place = self._by_name[name][-1]
        if name not in SCOPES and self._is_below(self._scopes, place):
            return
        element = self._stack[place]
        if (
            name in BLOCKS
            or name in SCOPES
            or not self._is_below(self._barriers, place)
        ):
            self._pop(place + 1, index)
        self.partners[element.index] = index
        self.partners[index] = element.index
        self.ends[element.index] = index + 1
        element.is_closed = True
        self._by_name[name].pop()
        while self._stack and self._stack[-1].is_closed:
            self._drop()

    def finish(self, index: int, tokens: Sequence[Token]) -> None:
        """Closes all elements at the end of the document."""
        self._pop(0, index)
        for start, partner in enumerate(self.partners):
            if partner is None and tokens[start].self_closing:
                self.ends[start] = start + 1

    def _break_out(self, index: int) -> None:
        """Closes every <svg> and <math> around the tag, up to an integration point."""
        while True:
            place = max(self._places(FOREIGN), default=-1)
            if place <= max(self._places(INTEGRATION_POINTS), default=-1):
                return
            self._pop(place, index)

    def _places(self, names: Iterable[str]) -> list[int]:
        """The place of the innermost open element of each name."""
        return [self._by_name[name][-1] for name in names if self._by_name[name]]

    def _end_by_start(self, index: int, name: str) -> None:
        if name in PARAGRAPH_ENDS and self._by_name["p"]:
            place = self._by_name["p"][-1]
            buttons = self._by_name["button"]
            if not self._is_below(self._scopes, place) and not self._is_below(
                buttons, place
            ):
                self._pop(place, index)
        ended, around = ENDED_BY_START.get(name, (frozenset(), frozenset()))
        limit = max(self._places(around), default=-1)
        inside = [place for place in self._places(ended) if place > limit]
        if inside:
            self._pop(min(inside), index)

    @staticmethod
    def _is_below(places: Sequence[int], place: int) -> bool:
        """Whether the innermost of these places is inside `place`."""
        return bool(places) and places[-1] > place

    def _pop(self, place: int, index: int) -> None:
        """Closes the elements from this place in the stack on, before token `index`."""
        while len(self._stack) > place:
            element = self._stack[-1]
            if not element.is_closed:
                self.ends[element.index] = index
                self._by_name[element.name].pop()
            self._drop()

    def _drop(self) -> None:
        """Takes the innermost element from the stack."""
        element = self._stack.pop()
        if element.is_barrier:
            self._barriers.pop()
        if element.name in SCOPES:
            self._scopes.pop()


def find_elements(tokens: Sequence[Token]) -> Elements:
    """The elements of a document, given its tokens."""
    elements = _OpenElements(len(tokens))
    for index, token in enumerate(tokens):
        if token.kind is Kind.START:
            elements.start(index, token)
        elif token.kind is Kind.END:
            elements.end(index, token.name)
    elements.finish(len(tokens), tokens)
    return _with_properties(tokens, elements.partners, elements.ends)


class _Region(NamedTuple):
    """Properties that the tokens before `end` inherit."""

    end: int
    is_translated: bool
    is_preformatted: bool


def _with_properties(
    tokens: Sequence[Token], partners: list[int | None], ends: list[int]
) -> Elements:
    is_translated: list[bool] = []
    is_preformatted: list[bool] = []
    separators: list[bool] = []
    regions = [_Region(len(tokens), True, False)]
    for index, token in enumerate(tokens):
        while len(regions) > 1 and regions[-1].end <= index:
            regions.pop()
        around = regions[-1]
        region = around
        if token.kind is Kind.START:
            region = _Region(
                ends[index],
                _translates(token, around.is_translated),
                around.is_preformatted or token.name in PREFORMATTED,
            )
            if ends[index] > index + 1:
                regions.append(region)
        is_translated.append(region.is_translated)
        is_preformatted.append(region.is_preformatted)
        is_block = token.kind in (Kind.START, Kind.END) and token.name in BLOCKS
        is_exception = region.is_translated and not around.is_translated
        separators.append(is_block or is_exception)
    counts = list(itertools.accumulate(separators, initial=0))
    separates = []
    for index, end in enumerate(ends):
        separates.append(counts[end] > counts[index])
    return Elements(partners, ends, is_translated, is_preformatted, separates)


def _translates(token: Token, inherited: bool) -> bool:
    """Whether the text of an element is translated."""
    if "notranslate" in token.attributes.get("class", "").split():
        return False
    translate = token.attributes.get("translate", "inherit").lower()
    if translate in YES:
        return True
    if translate == "no" or token.name in UNTOUCHED:
        return False
    return inherited
