"""Cuts HTML into runs, each translated by itself.

Blocks such as <p> and <br>, and the lines of <pre>, end a run. So do neighbouring
elements whose words would touch: a run ends behind `</a>` in
`<a>The dog</a><a>The bird</a>`, and behind a sentence in `<span>We cry.</span>The dog`.
Elements that format letters, such as <b>, do not end a word, and neither does an
element whose tag stands at one side of the word alone: `<b>H</b><i>ello</i>` and
`<a>dog</a>s` are words. If all words are in links, as in a menu, each link is a run.

Markup before the first and behind the last word is outside the run, unless that would
separate the two tags of an element around a part of the run. A run without a letter or
digit is markup.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator, Sequence

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.html_pieces import Kind, Piece, read, visible
from t2tlite.programs.documents.sentences import LETTER_OR_DIGIT, OPENING, SplitText
from t2tlite.programs.documents.tag_projection import CLOSING_MARKS, Span, project

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


def read_runs(document: str, inline: bool) -> Iterator[str | Run]:
    """The runs of a document, and the markup and white space between them. If tags are
    not `inline`, all markup separates runs.
    """
    row: list[Piece] = []
    for piece in read(document):
        if piece.separates or not (inline or piece.kind is Kind.TEXT):
            yield from _runs(row)
            yield piece.source
            row = []
        else:
            row.append(piece)
    yield from _runs(row)


def _runs(row: Sequence[Piece]) -> Iterator[str | Run]:
    """The runs between two blocks, and what is between them."""
    is_menu = _is_menu(row)
    start = 0
    for cut in [*_cuts(row, is_menu), len(row)]:
        pieces = row[start:cut]
        start = cut
        left = right = len(pieces)
        if any(_has_words(piece) for piece in pieces):
            left, right = _bounds(pieces)
            yield _sources(pieces[:left])
            yield Run(pieces[left:right])
        else:
            right = 0
        yield _sources(pieces[right:])


def _has_words(piece: Piece) -> bool:
    return LETTER_OR_DIGIT.search(piece.text) is not None


def _sources(pieces: Sequence[Piece]) -> str:
    return "".join(piece.source for piece in pieces)


def _is_menu(row: Sequence[Piece]) -> bool:
    """Whether all words are in links, and there are several."""
    links: set[int] = set()
    link = None  # the open one
    for index, piece in enumerate(row):
        if piece.name == "a":
            link = index if piece.kind is Kind.START else None
        elif _has_words(piece):
            if link is None:
                return False
            links.add(link)
    return len(links) > 1


def _cuts(row: Sequence[Piece], is_menu: bool) -> Iterator[int]:
    """The indices of the pieces with which another run begins."""
    last = None  # the last text, or in a menu the last words
    has_space = False  # since then
    markup: list[int] = []  # since then
    for index, piece in enumerate(row):
        text = piece.text
        if piece.kind is not Kind.TEXT:
            markup.append(index)
        elif is_menu and _has_words(piece):
            closed, opened = _unmatched(row, markup)
            names = [row[tag].name for tag in closed]
            if "a" in names and opened:
                yield closed[-1] + 1
                yield opened[0]
            markup = []
        elif not text.strip():
            has_space = has_space or bool(text)
        elif not is_menu:
            has_space = has_space or text[0] == " "
            if last is not None and markup and not has_space:
                yield from _cut_between(row, last, markup, text)
            last = text
            has_space = text[-1] == " "
            markup = []


def _unmatched(
    row: Sequence[Piece], markup: Sequence[int]
) -> tuple[list[int], list[int]]:
    """The end tags in some markup whose elements begin before it, and the start tags
    whose elements end behind it.
    """
    opened: list[int] = []
    closed: list[int] = []
    for index in markup:
        kind = row[index].kind
        if kind is Kind.START:
            opened.append(index)
        elif kind is Kind.END and opened:
            opened.pop()
        elif kind is Kind.END:
            closed.append(index)
    return closed, opened


def _cut_between(
    row: Sequence[Piece], last: str, markup: Sequence[int], following: str
) -> Iterator[int]:
    """Where a run ends in the markup between two texts that touch, if it does."""
    if any(row[index].is_object for index in markup):
        return
    closed, opened = _unmatched(row, markup)
    names = {row[index].name for index in [*closed, *opened]}
    are_siblings = bool(closed) and bool(opened)
    may_end_words = not names <= FORMATTING
    touches = are_siblings and may_end_words and _are_words(last, following, names)
    is_sentence = (are_siblings or may_end_words) and _ends_sentence(last, following)
    if names and (touches or is_sentence):
        yield closed[-1] + 1 if closed else opened[0]


def _are_words(last: str, following: str, names: set[str]) -> bool:
    """Whether two texts that touch are words by themselves."""
    before = last[-1]
    behind = following[0]
    if WITHOUT_SPACES.match(before) and WITHOUT_SPACES.match(behind):
        return names == {"a"}
    if before.isalnum():
        return behind.isalnum()
    if before not in CLOSING_MARKS or before in "'’":
        return False
    if behind.isdigit() and last[-2:-1].isdigit():
        return False  # a number: 3.99
    return behind.isalnum() or behind in OPENING


def _ends_sentence(last: str, following: str) -> bool:
    """Whether a sentence ends between two texts that touch."""
    behind = following[0]
    begins = behind.isalpha() and not behind.islower()
    ends = SENTENCE_END.search(last[-LOOK_AT:])
    return ends is not None and (begins or behind in "([„‚¿¡“‘«")


def _bounds(pieces: Sequence[Piece]) -> tuple[int, int]:
    """The first item of a run, and behind the last: all text, and both tags of elements
    that begin or end in it.
    """
    texts = [index for index, piece in enumerate(pieces) if piece.text.strip()]
    left = texts[0]
    right = texts[-1] + 1
    opened: list[int] = []
    for index, piece in enumerate(pieces):
        if piece.kind is Kind.START:
            opened.append(index)
        elif piece.kind is Kind.END and opened:
            start = opened.pop()
            if start < texts[0] < index <= texts[-1]:
                left = min(left, start)
            elif texts[0] < start < texts[-1] < index:
                right = index + 1
    return left, right


class Run:
    """A text to translate and the elements in it. White space is added to the text with
    the word behind it.
    """

    def __init__(self, pieces: Sequence[Piece]) -> None:
        self.tags = sum(piece.kind is not Kind.TEXT for piece in pieces)
        texts = [piece for piece in pieces if piece.kind is Kind.TEXT]
        first = visible(texts[0].source)
        last = visible(texts[-1].source)
        self._before = first[: len(first) - len(first.lstrip())]  # white space
        self._behind = last[len(last.rstrip()) :]
        self._parts: list[str] = []
        self._length = 0
        self._has_space = False  # since the last word
        self._objects: list[Span] = []  # since the last word
        self._open = [Span(0, "")]  # the innermost last; the first is the run
        for piece in pieces:
            self._add(piece)
        while len(self._open) > 1:
            self._open[-1].ends_behind = True
            self._end("")
        self.text = "".join(self._parts)

    def translated(
        self, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
    ) -> str:
        """The run as HTML, with translations in place of its sentences."""
        translation = project(self._open[0].inside, split, sentences)
        before = _escaped(self._before)
        return f"{before}{translation}{_escaped(self._behind)}"

    def _add(self, piece: Piece) -> None:
        kind = piece.kind
        if kind is Kind.TEXT:
            self._add_text(piece.text)
        elif kind is Kind.END:
            self._end(piece.source)
        else:
            span = Span(self._length, piece.source, self._length)
            self._open[-1].inside.append(span)
            if kind is Kind.START:
                self._open.append(span)
            elif piece.is_object:
                span.is_object = True
                span.space_before = self._has_space
                if self._objects:
                    span.space_before = self._objects[-1].space_behind
                self._objects.append(span)

    def _end(self, source: str) -> None:
        if len(self._open) > 1:
            span = self._open.pop()
        else:  # its start tag is before the run
            run = self._open[0]
            span = Span(0, "", inside=run.inside, begins_before=True)
            run.inside = [span]
        span.end = self._length
        span.end_tag = source

    def _add_text(self, text: str) -> None:
        word = text.strip()
        begins_with_space = text[:1] == " "
        if self._objects:
            last = self._objects[-1]
            last.space_behind = last.space_behind or begins_with_space
        self._has_space = self._has_space or begins_with_space
        if not word:
            return
        if self._objects:  # they have no text, and join or separate the words
            before = self._parts[-1] if self._parts else " "
            are_words = before[-1].isalnum() and word[0].isalnum()
            self._has_space = self._has_space or are_words
            if word[0] in CLOSING_MARKS and not self._objects[-1].space_behind:
                self._has_space = False
        if self._has_space and self._parts:
            word = f" {word}"
        self._parts.append(word)
        self._length += len(word)
        self._has_space = text[-1] == " "
        self._objects = []


def _escaped(text: str) -> str:
    return html.escape(text, quote=False).replace("\xa0", "&nbsp;")
