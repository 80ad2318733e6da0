"""Reads HTML as text, start tags and end tags, which together are the document.

Markup ends where the HTML standard's tokenizer (13.2.5) ends it. Every start tag has an
end tag, without characters where the document has none: <p>, <li> and others end at
start tags that end them in browsers, and an element that is still open ends with the
one around it. So elements are always nested. Other end tags, comments, void elements,
scripts, and untouched elements within a text are points.
"""

from __future__ import annotations

import collections
import enum
import html
import re
import string
from collections.abc import Iterator
from typing import NamedTuple

from t2tlite.vocabularies.normalisation import IGNORED

VOID = frozenset(
    "area base br col embed frame hr img input link meta param source track wbr".split()
)
# visible at their place, like untouched elements
VISIBLE_VOID = frozenset("embed img input".split())
# their start tags end an open <p>
PARAGRAPH_ENDS = frozenset(
    "address article aside blockquote center details dialog dir div dl fieldset"
    " figcaption figure footer form h1 h2 h3 h4 h5 h6 header hgroup hr listing main"
    " menu nav ol p plaintext pre search section summary table ul xmp".split()
)
BLOCKS = PARAGRAPH_ENDS | frozenset(
    "base body br button caption col colgroup dd dt frame frameset head html iframe"
    " legend li link meta noembed noframes noscript optgroup option select tbody td"
    " template textarea tfoot th thead title tr".split()
)
# never translated, unless translate="yes" says so
UNTOUCHED = frozenset("code kbd math ruby samp svg var".split())
PREFORMATTED = frozenset("listing pre textarea".split())
# The content of these elements is not markup. <noscript> is read as by a browser
# without scripts, whose user sees it.
RAW_TEXT = frozenset("script style xmp iframe noembed noframes plaintext".split())
ESCAPABLE_TEXT = frozenset("title textarea".split())  # has character references

# tags inside these elements end none around them
SCOPES = frozenset("button caption math object svg table td template th".split())
LISTS = frozenset("datalist dir dl menu ol select ul".split())
TABLE_ROWS = frozenset("td th tr".split())
TERMS = frozenset("dd dt p".split())
# the elements that a start tag ends
ENDED_BY_START = {
    **dict.fromkeys(PARAGRAPH_ENDS, frozenset("p")),
    **dict.fromkeys(("dd", "dt"), TERMS),
    **dict.fromkeys(("td", "th"), TABLE_ROWS - {"tr"}),
    **dict.fromkeys(
        ("tbody", "thead", "tfoot"), TABLE_ROWS | {"tbody", "thead", "tfoot"}
    ),
    "tr": TABLE_ROWS,
    "li": frozenset(["p", "li"]),
    "option": frozenset(["option"]),
}
LOOK_AT = 50  # open elements, the innermost, among which a start tag may end one

SPACE = r"[ \t\n\f\r]*+"
TAG_NAME = r"(?:=[^ \t\n\f\r/>=]*+|[^ \t\n\f\r/>=]++)"
VALUE = r"""(?:"[^"]*+"|'[^']*+'|(?!["'])[^ \t\n\f\r>]*+)"""
ATTRIBUTE = re.compile(f"({TAG_NAME})(?:{SPACE}={SPACE}({VALUE}))?+")
MARKUP = re.compile(
    rf"""
    <(?P<end>/?)(?P<name>[a-zA-Z][^ \t\n\f\r/>]*+)
        (?P<attributes>
            (?:[ \t\n\f\r/]*+ {TAG_NAME} (?:{SPACE}={SPACE}{VALUE}|(?!{SPACE}=)) )*+
        )
        (?P<slash>[ \t\n\f\r/]*+)>
    | </?[a-zA-Z].*  # a tag without an end
    | <!--(?:-?>|.*?--!?>|.*)
    | <[!?][^>]*+>?
    | </(?=[^a-zA-Z])[^>]*+>?
    """,
    re.VERBOSE | re.DOTALL,
)
END_TAG = r"</{}(?=[\t\n\f\r />])"
SCRIPT_STEP = re.compile(
    r"<!--|-->|<(/?)script(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII
)
LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
LINE_BREAK = re.compile(r"(\r\n?|\n|&#(?:0*1[03]|[xX]0*[aAdD])(?![0-9a-fA-F]);?)")
# Python's `unescape` refuses a number of thousands of digits
LONG_NUMBER = re.compile(r"&#0*(\d{1,8})\d*", re.ASCII)


class Kind(enum.Enum):
    """What a piece is."""

    TEXT = enum.auto()  # with character references
    START = enum.auto()
    END = enum.auto()
    POINT = enum.auto()


class Piece(NamedTuple):
    """Text or markup."""

    kind: Kind
    source: str
    name: str = ""  # of a tag, in lower case
    is_translated: bool = True  # whether its text, or its element's text, is
    text: str = ""  # the visible characters, with one space for white space
    is_object: bool = False  # whether this point is visible at its place

    @property
    def separates(self) -> bool:
        """Whether the texts before and behind are translated apart."""
        is_markup = self.kind is not Kind.TEXT
        return not self.is_translated or (is_markup and self.name in BLOCKS)


class _Open(NamedTuple):
    """An element that has no end yet."""

    name: str
    start: int  # the index of its start tag
    is_translated: bool
    is_preformatted: bool
    begins_untouched: bool  # whether it is not translated and the element around it is


def read(document: str) -> list[Piece]:
    """The pieces of a document, in order; joined they are the document.

    >>> [piece.source for piece in read("<p>Hi<br><p>you")]
    ['<p>', 'Hi', '<br>', '', '<p>', 'you', '']
    """
    reader = _Reader()
    at = 0
    while markup := MARKUP.search(document, at):
        if at < markup.start():
            reader.add_text(document[at : markup.start()])
        at = markup.end()
        name = _lower(markup["name"] or "")
        if not name:
            reader.add(markup[0])
        elif markup["end"]:
            reader.end(name, markup[0])
        elif name in RAW_TEXT:
            end = MARKUP.match(document, _content_end(document, at, name))
            at = end.end() if end else len(document)
            reader.start(name, document[markup.start() : at], "", True)
        else:
            is_closed = name in VOID or markup["slash"].endswith("/")
            is_closed = is_closed and name not in ESCAPABLE_TEXT
            reader.start(name, markup[0], markup["attributes"], is_closed)
            if name in ESCAPABLE_TEXT:
                start = at
                at = _content_end(document, at, name)
                reader.add_text(document[start:at])
    if at < len(document):
        reader.add_text(document[at:])
    reader.end_all()
    return reader.pieces


def unescape(text: str) -> str:
    """A text with its character references replaced, as browsers do: no number of
    eight digits is a character, however many follow.
    """
    return html.unescape(LONG_NUMBER.sub(r"&#\1", text))


def visible(source: str) -> str:
    """The visible characters and white space of a text with character references."""
    return IGNORED.sub("", unescape(source))


class _Reader:
    """The pieces so far, and the elements that are open, the innermost last."""

    def __init__(self) -> None:
        self.pieces: list[Piece] = []
        self._open = [_Open("", -1, True, False, False)]
        # where elements are in `_open`
        self._depths: dict[str, list[int]] = collections.defaultdict(list)  # by name
        self._scopes: list[int] = []
        self._barriers: list[int] = []  # against end tags of inline elements
        self._last_separator = -1  # an index of `pieces`

    def add(self, source: str, name: str = "") -> None:
        """Adds markup that neither opens nor closes an element."""
        around = self._open[-1]
        self._add(Piece(Kind.POINT, source, name, around.is_translated))

    def add_text(self, source: str) -> None:
        """Adds text. Each line break of preformatted text is a piece that separates."""
        around = self._open[-1]
        lines = LINE_BREAK.split(source) if around.is_preformatted else [source]
        for number, line in enumerate(lines):
            is_translated = around.is_translated and number % 2 == 0
            text = re.sub(r"\s+", " ", visible(line))
            self.pieces.append(Piece(Kind.TEXT, line, "", is_translated, text))

    def start(self, name: str, source: str, attributes: str, is_closed: bool) -> None:
        """Opens an element, after ending those that its start tag ends."""
        self._end_by_start(name)
        around = self._open[-1]
        is_translated = _is_translated(name, attributes, around.is_translated)
        if is_closed:
            is_object = name in VISIBLE_VOID or (
                around.is_translated and not is_translated
            )
            piece = Piece(Kind.POINT, source, name, around.is_translated)
            self._add(piece._replace(is_object=is_object))
            return
        element = _Open(
            name,
            len(self.pieces),
            is_translated,
            around.is_preformatted or name in PREFORMATTED,
            around.is_translated and not is_translated,
        )
        if is_translated and not around.is_translated:
            self._last_separator = len(self.pieces)
        self._add(Piece(Kind.START, source, name, is_translated))
        for depths in self._depth_lists(element):
            depths.append(len(self._open))
        self._open.append(element)

    def end(self, name: str, source: str) -> None:
        """Ends the innermost element of this name, and those inside it."""
        barriers = self._barriers
        if name in BLOCKS:
            barriers = [] if name in SCOPES else self._scopes
        depths = self._depths[name]
        if depths and (not barriers or barriers[-1] <= depths[-1]):
            while len(self._open) > depths[-1] + 1:
                self._end_innermost("")
            self._end_innermost(source)
            return
        self.add(source, name)

    def end_all(self) -> None:
        while len(self._open) > 1:
            self._end_innermost("")

    def _end_by_start(self, name: str) -> None:
        ended = ENDED_BY_START.get(name)
        if ended is None:
            return
        count = 0
        innermost = self._open[: -LOOK_AT - 1 : -1]
        for number, element in enumerate(innermost, 1):
            if element.name in ended:
                count = number
            elif element.name in SCOPES or element.name in LISTS:
                break
        for _ in range(count):
            self._end_innermost("")

    def _depth_lists(self, element: _Open) -> Iterator[list[int]]:
        """The lists that have the depth of an element."""
        yield self._depths[element.name]
        if element.name in SCOPES:
            yield self._scopes
        if element.name in BLOCKS or element.begins_untouched:
            yield self._barriers

    def _end_innermost(self, source: str) -> None:
        element = self._open.pop()
        for depths in self._depth_lists(element):
            depths.pop()
        piece = Piece(Kind.END, source, element.name, element.is_translated)
        self._add(piece)
        if element.begins_untouched and self._last_separator < element.start:
            pieces = self.pieces[element.start :]
            del self.pieces[element.start :]
            source = "".join(piece.source for piece in pieces)
            self.pieces.append(Piece(Kind.POINT, source, element.name, is_object=True))

    def _add(self, piece: Piece) -> None:
        if piece.name in BLOCKS:
            self._last_separator = len(self.pieces)
        self.pieces.append(piece)


def _is_translated(name: str, attributes: str, inherited: bool) -> bool:
    """Whether the text of an element is translated."""
    values: dict[str, str] = {}
    if "translate" in attributes.lower():
        values = read_attributes(attributes)
    if "notranslate" in values.get("class", "").split():
        return False
    translate = values.get("translate", "inherit").lower()
    if translate in ("", "yes"):
        return True
    if translate == "no" or name in UNTOUCHED:
        return False
    return inherited


def read_attributes(source: str) -> dict[str, str]:
    """The attributes of a tag by their names, which are in lower case."""
    values: dict[str, str] = {}
    for name, value in ATTRIBUTE.findall(source):
        if value.startswith(("'", '"')):
            value = value[1:-1]
        values.setdefault(_lower(name), unescape(value))
    return values


def _lower(name: str) -> str:
    """A name with its ASCII letters in lower case; no other letter is changed."""
    return name.translate(LOWER)


def _content_end(document: str, start: int, name: str) -> int:
    """Where the content of an element without markup inside ends."""
    if name == "plaintext":
        return len(document)
    if name == "script":
        return _script_end(document, start)
    end_tag = re.compile(END_TAG.format(name), re.IGNORECASE | re.ASCII)
    end = end_tag.search(document, start)
    return end.start() if end else len(document)


def _script_end(document: str, start: int) -> int:
    """Where a script ends: at its first end tag outside a comment in which another
    script begins.
    """
    is_comment = False
    is_nested = False
    at = start
    while step := SCRIPT_STEP.search(document, at):
        at = step.end()
        if step[0] == "<!--":
            is_comment = True
            at = step.start() + len("<!")  # the same hyphens may end it
        elif step[0] == "-->":
            is_comment = False
            is_nested = False
        elif step[1]:
            if not is_nested:
                return step.start()
            is_nested = False
        elif is_comment:
            is_nested = True
    return len(document)
