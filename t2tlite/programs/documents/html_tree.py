"""Reads HTML as a tree of nodes, whose sources, in order, are the document.

Markup ends where the HTML standard's tokenizer (13.2.5) ends it. An element without an
end tag ends with the one around it; <p>, <li>, <td> and others also end where the next
one begins. Other end tags, comments, void elements, scripts, and what is nested too
deep are nodes without children.
"""

import dataclasses
import html
import re
from collections.abc import Iterator

from t2tlite.vocabularies.normalisation import IGNORED

TEXT = "#text"
VOID = frozenset(
    "area base br col embed frame hr img input link meta param source track wbr".split()
)
# visible at their place, like untouched elements
VISIBLE_VOID = frozenset("embed img input".split())
BLOCKS = frozenset(
    "address article aside base blockquote body br button caption center col colgroup"
    " dd details dialog dir div dl dt fieldset figcaption figure footer form frame"
    " frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link main"
    " menu meta nav noembed noframes noscript ol optgroup option p pre search section"
    " select summary table tbody td template textarea tfoot th thead title tr ul"
    " xmp".split()
)
# never translated
UNTOUCHED = frozenset("code kbd math ruby samp svg var".split())
PREFORMATTED = frozenset("pre textarea".split())
# The content of these elements is not markup. <noscript> is read as by a browser
# without scripts, whose user sees it.
RAW_TEXT = frozenset("script style xmp iframe noembed noframes".split())
ESCAPABLE_TEXT = frozenset("title textarea".split())  # has character references

CELLS = frozenset("td th".split())
ROWS = CELLS | {"tr"}
ROW_GROUPS = ROWS | frozenset("tbody thead tfoot".split())
# the elements that a start tag ends
ENDED_BY_START = {**dict.fromkeys(ROW_GROUPS, ROW_GROUPS), "tr": ROWS}
for kind in ("p", "li", "option", "dd dt", "td th"):
    ENDED_BY_START |= dict.fromkeys(kind.split(), frozenset(kind.split()))
# inside these elements a start tag ends none around them
CONTAINERS = BLOCKS - ENDED_BY_START.keys()
# inside these elements an end tag ends none around them but another of these
SCOPES = CELLS | frozenset("button caption math object svg table template".split())
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
LINE_BREAK = re.compile(r"(\r\n?|\n)")
# Python's `unescape` refuses a number of thousands of digits
LONG_NUMBER = re.compile(r"&#0*(\d{1,8})\d*", re.ASCII)


@dataclasses.dataclass(eq=False, slots=True)
class Node:
    """Text, an element, or other markup."""

    name: str  # in lower case; TEXT, or "" for a comment or declaration
    source: str  # of an element the start tag
    is_translated: bool = True  # whether its text is
    is_preformatted: bool = False
    separates: bool = False  # whether the texts before and behind are translated apart
    children: "list[Node]" = dataclasses.field(default_factory=list)
    end: str = ""  # the end tag, if the document has it
    text: str = ""  # what is visible and translated, with one space for white space
    attributes: dict[str, str] = dataclasses.field(default_factory=dict)
    has_words: bool = False
    is_link: bool = False  # whether all words are in links
    # where it is in the text with which it is translated, in characters
    start: int = 0
    stop: int = 0

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
        name = (markup["name"] or "").lower()
        if not name:
            reader.add(name, markup[0])
        elif markup["end"]:
            reader.end(name, markup[0])
        elif name in RAW_TEXT:
            end_tag = MARKUP.match(document, _content_end(document, at, name))
            at = end_tag.end() if end_tag else len(document)
            reader.add(name, document[markup.start() : at])
        elif name in ESCAPABLE_TEXT:
            reader.start(name, markup[0], markup["attributes"])
            start = at
            at = _content_end(document, at, name)
            reader.add_text(document[start:at])
        else:
            is_closed = name in VOID or markup["slash"].endswith("/")
            reader.start(name, markup[0], markup["attributes"], is_closed)
    reader.add_text(document[at:])
    return reader.root.children


def _content_end(document: str, start: int, name: str) -> int:
    """Where the content of an element without markup inside ends."""
    end_tag = re.compile(rf"</{name}(?=[\t\n\f\r />])", re.IGNORECASE | re.ASCII)
    end = end_tag.search(document, start)
    return end.start() if end else len(document)


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

    def add(self, name: str, source: str) -> Node:
        """Adds a node without children."""
        around = self._open[-1]
        node = Node(name, source, around.is_translated, around.is_preformatted)
        node.separates = name in BLOCKS
        around.children.append(node)
        return node

    def add_text(self, source: str) -> None:
        """Adds text. Each line break of preformatted text is a node that separates."""
        is_preformatted = self._open[-1].is_preformatted
        lines = LINE_BREAK.split(source) if is_preformatted else [source]
        for number, line in enumerate(lines):
            if not line:
                continue
            node = self.add(TEXT, line)
            node.separates = number % 2 == 1
            if node.is_translated and not node.separates:
                node.text = re.sub(r"\s+", " ", visible(line))

    def start(
        self, name: str, source: str, attributes: str, is_closed: bool = False
    ) -> None:
        """Opens an element, after ending those that its start tag ends."""
        ended = ENDED_BY_START.get(name, ())
        last = len(self._open)
        for depth in reversed(range(last)):
            if self._open[depth].name in ended:
                last = depth
            elif not ended or self._open[depth].name in CONTAINERS:
                break
        del self._open[last:]
        node = self.add(name, source)
        node.attributes = read_attributes(attributes)
        node.is_translated = _is_translated(node)
        node.is_preformatted |= name in PREFORMATTED
        if not is_closed and len(self._open) <= MAX_DEPTH:
            self._open.append(node)

    def end(self, name: str, source: str) -> None:
        """Ends the innermost element of this name, and those inside it, unless one of
        them keeps its end tags for itself.
        """
        keeping = SCOPES if name in BLOCKS else SCOPES | BLOCKS
        for depth in range(len(self._open) - 1, 0, -1):
            element = self._open[depth]
            if element.name == name:
                element.end = source
                del self._open[depth:]
                return
            if element.name in keeping and name not in SCOPES:
                break
        self.add(name, source)


def _is_translated(node: Node) -> bool:
    """Whether the text of an element is translated. Until now the node has what is true
    of the element around it.
    """
    translate = node.attributes.get("translate", "inherited").lower()
    if translate in ("yes", ""):
        return True
    classes = node.attributes.get("class", "").split()
    is_untouched = node.name in UNTOUCHED or "notranslate" in classes
    return node.is_translated and translate != "no" and not is_untouched


def read_attributes(source: str) -> dict[str, str]:
    """The attributes of a tag by their names, which are in lower case."""
    values: dict[str, str] = {}
    for name, value in ATTRIBUTE.findall(source):
        if value.startswith(("'", '"')):
            value = value[1:-1]
        values.setdefault(name.lower(), unescape(value))
    return values
