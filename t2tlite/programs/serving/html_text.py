"""The text of an HTML document and its markup, apart: what is translated, and what is left as it is.

Tags, comments, declarations, and scripts and style sheets with their content stay as they are. Tags such as <p> and
<br> separate blocks of text. Each block is translated by itself, if it has a letter or a digit; other markup within a
block is put into its translation (`tag_projection.py`).
"""

from __future__ import annotations

import html
import itertools
import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.serving.sentence_splitter import SplitText
from t2tlite.programs.serving.tag_projection import TAG, Mark, project

MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
      | <(script|style)\b(?:[^<>"']|"[^"]*"|'[^']*')*>.*?(?:</\1\s*>|\Z)
      | </?[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>
      | <[!?][^<>]*>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)
BLOCK_TAGS = frozenset(
    "address article aside base blockquote body br button caption center col colgroup dd details dialog dir div dl dt "
    "fieldset figcaption figure footer form frame frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend "
    "li link main menu meta nav noscript ol optgroup option p pre search section select summary table tbody td "
    "template textarea tfoot th thead title tr ul".split()
)
TRANSLATABLE = re.compile(r"[^\W_]")  # text without a letter or digit is left as it is
LINE_BREAK = re.compile(r"[\r\n]")


class Block(NamedTuple):
    """A piece of text, without character references, and the markup within it."""

    start: int  # in the document
    end: int
    text: str
    marks: list[Mark]

    def restore(self, split: SplitText, translations: Iterable[tuple[str, Alignment]]) -> str:
        """The block with translations, each with its word alignment, in place of the sentences."""
        parts: list[str] = []
        at, next_mark = 0, 0
        for (before, sentence), (text, alignment) in zip(split.segments, translations, strict=True):
            start = at + len(before)
            end = start + len(sentence)
            first = self._first_mark(next_mark, start - 1)
            next_mark_after = self._first_mark(first, end)
            parts.append(_with_marks(self.text[at:start], self._marks(next_mark, first, at)))
            marks = self._marks(first, next_mark_after, start)
            parts.append(_with_marks(text, project(sentence, marks, text, alignment) if marks else []))
            at, next_mark = end, next_mark_after
        return "".join([*parts, _with_marks(self.text[at:], self._marks(next_mark, len(self.marks), at))])

    def _first_mark(self, index: int, offset: int) -> int:
        """The first mark from this index on that is behind the offset."""
        while index < len(self.marks) and self.marks[index].offset <= offset:
            index += 1
        return index

    def _marks(self, first: int, end: int, offset: int) -> list[Mark]:
        """Marks, with offsets from there."""
        return [Mark(mark.offset - offset, mark.markup) for mark in self.marks[first:end]]


class HtmlText:
    """A document: `texts` are its blocks of text, without character references; `join` puts others in their place.

    If tags are not `inline`, all markup separates blocks.
    """

    def __init__(self, document: str, inline: bool = True) -> None:
        self._document = document
        self.blocks: list[Block] = []
        self.texts: list[str] = []
        start, at, length, preformatted = 0, 0, 0, not inline
        pieces: list[str] = []
        marks: list[Mark] = []
        for markup in [*MARKUP.finditer(document), None]:
            end, after = (len(document), len(document)) if markup is None else markup.span()
            pieces.append(html.unescape(document[at:end]))
            length += len(pieces[-1])
            at = after
            tag = markup and TAG.match(markup.group())
            name = tag[2].lower() if tag else ""
            if markup and inline and name not in BLOCK_TAGS:
                marks.append(Mark(length, markup.group()))
                continue
            text = "".join(pieces)
            if TRANSLATABLE.search(text):
                self.blocks.append(Block(start, end, text, marks))
                self.texts.append(text if preformatted else LINE_BREAK.sub(" ", text))
            if tag and name == "pre" and inline:
                preformatted = not tag[1]
            start, length, pieces, marks = after, 0, [], []

    @property
    def has_inline_tags(self) -> bool:
        """Whether there is markup within a block."""
        return any(block.marks for block in self.blocks)

    def join(self, blocks: Sequence[str]) -> str:
        """The document with these, which are HTML, as its blocks."""
        ends = [0, *(block.end for block in self.blocks)]
        starts = [*(block.start for block in self.blocks), len(self._document)]
        between = [self._document[end:start] for end, start in zip(ends, starts, strict=True)]
        return "".join(itertools.chain(*itertools.zip_longest(between, blocks, fillvalue="")))


def _with_marks(text: str, marks: Sequence[Mark]) -> str:
    """Text as HTML, with the marks, which are in order."""
    parts = []
    at = 0
    for offset, markup in marks:
        parts += [html.escape(text[at:offset], quote=False), markup]
        at = offset
    return "".join([*parts, html.escape(text[at:], quote=False)])
