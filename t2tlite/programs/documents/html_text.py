"""Splits HTML into text to translate and markup to keep.

A run, which is translated by itself, is a row of neighbouring nodes without a block
such as <p> and <br>, or a line break of <pre>, at any depth. Neighbours are apart also
if their words would touch: `</a>` ends a run in `<a>The dog</a><a>The bird</a>`.
Elements that format letters, such as <b>, do not end a word, and neither does an
element beside text: `<b>H</b><i>ello</i>` and `<a>dog</a>s` are words. If all words are
in links, as in a menu, each link is a run. A row without a letter is markup.

The model sees the text of a run with one space for white space. Markup around it and
the white space there stay; tags within it are put into its translation
(`tag_projection.py`). The texts of attributes are before those of runs.
"""

import functools
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

from t2tlite.programs.documents.html_tree import (
    ATTRIBUTE,
    TEXT,
    Node,
    read_tree,
    visible,
)
from t2tlite.programs.documents.sentences import (
    LETTER_OR_DIGIT,
    SplitText,
    has_letter,
)
from t2tlite.programs.documents.tag_projection import Projection, Sentences, Translated

# These elements, and text, may begin and end within a word
FORMATTING = frozenset(
    "#text abbr b bdi bdo big em font i mark nobr small strong sub sup tt u wbr".split()
)
# the scripts that are written without spaces between words
WITHOUT_SPACES = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff]"
)
WORD_END = re.compile(r"(?:[^\W_]|[^\W\d_][.!?…,;:)。！？]+)\Z")
WORD_END_LENGTH = 8  # characters at the end of a text that show whether a word ends
OBJECT = "\ufffc"  # stands for an object in a text
ATTRIBUTES = frozenset("alt aria-label label placeholder title".split())
BUTTONS = frozenset("button reset submit".split())  # of <input>, which show their value


class PlainText(NamedTuple):
    """Plain text, with the interface of `HtmlText`."""

    text: str
    inline_tags: int = 0

    @property
    def texts(self) -> list[str]:
        return [self.text]

    def translated(self, translations: Iterator[Translated], language: str = "") -> str:
        """The text with its sentences' translations."""
        split, sentences = next(translations)
        return split.join([text for text, _ in sentences])


class HtmlText:
    """An HTML document. `texts` are the texts of its runs, without character
    references; `translated` replaces them.

    If tags are not `inline`, all markup separates runs.
    """

    def __init__(self, document: str, inline: bool = True) -> None:
        self.texts: list[str] = []
        self.inline_tags = 0  # elements and other markup within runs
        self._inline = inline
        self._parts: list[str | Node | Run] = []  # of a node its source
        # elements, and the attributes of each that are translated
        self._tags: list[tuple[Node, list[str]]] = []
        nodes = read_tree(document)
        for node in nodes:
            _measure(node)
        self._read_attributes(nodes)
        self._read(nodes)

    def translated(self, translations: Iterator[Translated], language: str = "") -> str:
        """The document with the next translations, one for each of `texts`, and the
        code of their language, if that is given.
        """
        for node, names in self._tags:
            plain = PlainText("")
            texts = {name: plain.translated(translations) for name in names}
            if node.name == "html" and language:
                texts["lang"] = language
            changed = functools.partial(_changed, texts)
            node.source = ATTRIBUTE.sub(changed, node.source)
        sources = []
        for part in self._parts:
            if isinstance(part, Run):
                part = part.translated(*next(translations))
            elif isinstance(part, Node):
                part = part.source
            sources.append(part)
        return "".join(sources)

    def _read_attributes(self, nodes: Sequence[Node]) -> None:
        """Reads the attributes that users see or hear."""
        for node in nodes:
            if node.is_translated:
                self._read_shown(node)
            self._read_attributes(node.children)

    def _read_shown(self, node: Node) -> None:
        shown = ATTRIBUTES
        kind = node.attributes.get("type", "").lower()
        if node.name == "input" and kind in BUTTONS:
            shown |= {"value"}
        names = []
        for name, value in node.attributes.items():
            if name in shown and has_letter(value):
                names.append(name)
                self.texts.append(value)
        if names or node.name == "html":
            self._tags.append((node, names))

    def _read(self, nodes: Sequence[Node]) -> None:
        """Reads neighbours, which those that separate cut into rows."""
        row: list[Node] = []
        for node in nodes:
            if node.separates or not (self._inline or node.name == TEXT):
                self._read_row(row)
                row = []
                self._read_inside(node)
            else:
                row.append(node)
        self._read_row(row)

    def _read_inside(self, node: Node) -> None:
        self._parts.append(node)
        self._read(node.children)
        self._parts.append(node.end)

    def _read_row(self, row: Sequence[Node]) -> None:
        """Reads a row as runs and what is between them."""
        cuts = _cuts_of_menu(row) or _cuts(row)
        for start, end in pairwise([0, *cuts, len(row)]):
            nodes = row[start:end]
            left = right = 0
            for index, node in enumerate(nodes):
                if node.text.strip(f" {OBJECT}"):
                    left = left if right else index
                    right = index + 1
            if not has_letter("".join([node.text for node in nodes])):
                right = left
            self._keep(nodes[:left])
            if right == left + 1 and nodes[left].children:
                self._read_inside(nodes[left])
            elif left < right:
                run = Run(nodes[left:right])
                self._parts.append(run)
                self.texts.append(run.text)
                self.inline_tags += run.tags
            self._keep(nodes[right:])

    def _keep(self, nodes: Sequence[Node]) -> None:
        for node in nodes:
            self._parts.append(node)
            self._keep(node.children)
            self._parts.append(node.end)


def _changed(texts: Mapping[str, str], attribute: re.Match[str]) -> str:
    """An attribute of a tag with its text, if there is one."""
    text = texts.get(attribute[1].lower())
    return attribute[0] if text is None else f'{attribute[1]}="{html.escape(text)}"'


def _measure(node: Node) -> None:
    """Records what the neighbours of a node must know of its text."""
    for child in node.children:
        _measure(child)
        node.separates |= child.separates
        node.text += child.text
    node.separates |= bool(_cuts(node.children))
    node.has_words = LETTER_OR_DIGIT.search(node.text) is not None
    node.is_link = node.name == "a" or _are_links(node.children)
    if node.is_object:
        # something inside is translated again
        node.separates |= node.has_words
        node.text = OBJECT


def _are_links(row: Sequence[Node]) -> bool:
    """Whether all words of a row are in links."""
    worded = [node.is_link for node in row if node.has_words]
    return bool(worded) and all(worded)


def _cuts_of_menu(row: Sequence[Node]) -> list[int]:
    """The indices around each link if all words of a row are in several links."""
    cuts = []
    for index, node in enumerate(row):
        if node.has_words:
            cuts += [index, index + 1]
    return cuts if len(cuts) > 2 and _are_links(row) else []


def _cuts(row: Sequence[Node]) -> list[int]:
    """The indices of the nodes whose words would touch those before."""
    cuts = []
    last: Node | None = None  # with text
    for index, node in enumerate(row):
        if last is not None and node.text and _touch(last, node):
            cuts.append(index)
        last = node if node.text else last
    return cuts


def _touch(last: Node, node: Node) -> bool:
    """Whether neighbours are apart although no white space is between them."""
    behind = node.text[0]
    names = {last.name, node.name}
    if TEXT in names or names <= FORMATTING or not behind.isalnum():
        return False
    if WITHOUT_SPACES.match(last.text[-1]) and WITHOUT_SPACES.match(behind):
        return last.name == node.name == "a"
    return WORD_END.search(last.text[-WORD_END_LENGTH:]) is not None


class Run:
    """A text to translate and the elements in it. White space is added to the text with
    the word behind it.
    """

    def __init__(self, nodes: Sequence[Node]) -> None:
        self.tags = 0
        self._nodes = nodes
        self._texts: list[str] = []  # as in the document
        self._parts: list[str] = []
        self._length = 0
        self._has_space = False  # since the last word or object
        self._is_behind_object = False
        self._read(nodes)
        self.text = "".join(self._parts)

    def translated(self, split: SplitText, sentences: Sentences) -> str:
        """The run as HTML, with translations in place of its sentences."""
        first = visible(self._texts[0])
        last = visible(self._texts[-1])
        before = first[: len(first) - len(first.lstrip())]
        behind = last[len(last.rstrip()) :]
        translation = Projection(split, sentences).html(self._nodes)
        return f"{_escaped(before)}{translation}{_escaped(behind)}"

    def _read(self, nodes: Sequence[Node]) -> None:
        """Adds the text of nodes, and records where in it each is."""
        for node in nodes:
            node.start = self._length
            if node.name == TEXT:
                self._add_text(node)
            elif node.is_object:
                if self._is_behind_object and self._has_space:
                    node.source = f" {node.source}"
                self._is_behind_object = True
                self._has_space = False
            else:
                self._read(node.children)
            if node.name != TEXT:
                self.tags += 1 + bool(node.end)
            node.stop = self._length

    def _add_text(self, node: Node) -> None:
        self._texts.append(node.source)
        self._has_space |= node.text.startswith(" ")
        words = node.text.strip()
        if not words:
            return
        # an object, which has no text, separates words
        is_apart = self._is_behind_object and words[0].isalnum()
        if self._parts and (is_apart or self._has_space):
            words = f" {words}"
        self._parts.append(words)
        self._length += len(words)
        self._is_behind_object = False
        self._has_space = node.text.endswith(" ")


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")
