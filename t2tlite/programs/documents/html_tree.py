"""Reads HTML as a tree of nodes, whose sources, in order, are the document.

Markup ends where the HTML standard's tokenizer (13.2.5) ends it. <p>, <li> and others
end at start tags that end them in browsers, and an element without an end tag ends with
the one around it. Other end tags, comments, void elements, scripts, and what is nested
too deep are nodes without children.
"""

from __future__ import annotations

import dataclasses
import html
import re
import string
from collections import Counter
from collections.abc import Iterator

from t2tlite.vocabularies.normalisation import IGNORED

TEXT = "#text"
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
CELLS = frozenset("td th".split())
# the elements that a start tag ends
ENDED_BY_START = {
    **dict.fromkeys(PARAGRAPH_ENDS, frozenset("p")),
    **dict.fromkeys(("dd", "dt"), frozenset("dd dt p".split())),
    **dict.fromkeys(CELLS, CELLS),
    **dict.fromkeys(
        ("tbody", "thead", "tfoot"), CELLS | {"tr", "tbody", "thead", "tfoot"}
    ),
    "tr": CELLS | {"tr"},
    "li": frozenset(["p", "li"]),
    "option": frozenset(["option"]),
}
MAX_DEPTH = 128  # of elements

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


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """Text, an element, or other markup."""

    name: str  # in lower case; TEXT, or "" for a comment or declaration
    source: str  # of an element the start tag
    is_translated: bool = True  # whether its text is
    separates: bool = False  # whether the texts before and behind are translated apart
    # the visible characters that are translated, with one space for white space
    text: str = ""
    children: list[Node] = dataclasses.field(default_factory=list)
    end: str = ""  # the end tag, if the document has it
    # of what is inside, for the neighbours
    is_cut: bool = False  # whether it separates, or something inside does
    has_words: bool = False
    head: str = ""
    tail: str = ""
    is_formatted: bool = False  # whether it may begin and end within a word
    is_link: bool = False  # whether all words are in links

    @property
    def is_object(self) -> bool:
        """Whether it is visible at its place, between translated text."""
        return self.name in VISIBLE_VOID or not self.is_translated

    def sources(self) -> Iterator[str]:
        """The node as it is in the document."""
        yield self.source
        for child in self.children:
            yield from child.sources()
        yield self.end


def read_tree(document: str) -> list[Node]:
    """The nodes of a document that are inside no other.

    >>> [node.source for node in read_tree("<p>Hi<br><p>you")]
    ['<p>', '<p>']
    """
    reader = _Reader()
    at = 0
    while markup := MARKUP.search(document, at):
        reader.add_text(document[at : markup.start()])
        at = markup.end()
        name = _lower(markup["name"] or "")
        if not name:
            reader.add(name, markup[0])
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
    reader.add_text(document[at:])
    return reader.root.children


def unescape(text: str) -> str:
    """A text with its character references replaced, as browsers do: no number of
    eight digits is a character, however many follow.
    """
    return html.unescape(LONG_NUMBER.sub(r"&#\1", text))


def visible(source: str) -> str:
    """The visible characters and white space of a text with character references."""
    return IGNORED.sub("", unescape(source))


class _Reader:
    """The nodes so far, and the elements that are open, the innermost last."""

    def __init__(self) -> None:
        self.root = Node("", "")
        self._open = [self.root]
        self._names: Counter[str] = Counter()  # of the open elements
        self._preformatted = 0  # open elements

    def add(self, name: str, source: str) -> Node:
        """Adds a node without children."""
        around = self._open[-1]
        node = Node(name, source, around.is_translated, name in BLOCKS)
        around.children.append(node)
        return node

    def add_text(self, source: str) -> None:
        """Adds text. Each line break of preformatted text is a node that separates."""
        lines = LINE_BREAK.split(source) if self._preformatted else [source]
        for number, line in enumerate(lines):
            if not line:
                continue
            node = self.add(TEXT, line)
            node.separates = number % 2 == 1
            if node.is_translated and not node.separates:
                node.text = re.sub(r"\s+", " ", visible(line))

    def start(self, name: str, source: str, attributes: str, is_closed: bool) -> None:
        """Opens an element, after ending those that its start tag ends."""
        self._end_by_start(name)
        around = self._open[-1]
        node = self.add(name, source)
        node.is_translated = _is_translated(name, attributes, around.is_translated)
        if is_closed or len(self._open) > MAX_DEPTH:
            return
        node.separates |= node.is_translated and not around.is_translated
        self._open.append(node)
        self._names[name] += 1
        self._preformatted += name in PREFORMATTED

    def end(self, name: str, source: str) -> None:
        """Ends the innermost element of this name, and those inside it, unless one of
        them keeps its end tags for itself.
        """
        for count, node in enumerate(reversed(self._open), 1):
            if not self._names[name]:
                break
            if node.name == name:
                self._end_innermost(count)
                node.end = source
                return
            if name in SCOPES:
                continue
            around = self._open[-count - 1]
            begins_untouched = around.is_translated and not node.is_translated
            if node.name in SCOPES or (
                name not in BLOCKS and (node.name in BLOCKS or begins_untouched)
            ):
                break
        self.add(name, source)

    def _end_by_start(self, name: str) -> None:
        ended = ENDED_BY_START.get(name)
        if not ended:
            return
        ending = 0
        for count, node in enumerate(reversed(self._open), 1):
            if node.name in ended:
                ending = count
            elif node.name in SCOPES or node.name in LISTS:
                break
        self._end_innermost(ending)

    def _end_innermost(self, count: int) -> None:
        for _ in range(count):
            node = self._open.pop()
            self._names[node.name] -= 1
            self._preformatted -= node.name in PREFORMATTED


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
    return inherited and translate != "no" and name not in UNTOUCHED


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
