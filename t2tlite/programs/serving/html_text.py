"""The text of an HTML document and its markup, apart: what is translated, and what is
left as it is.

Tags, comments, declarations, and scripts and style sheets with their content stay as
they are. Tags such as <p> and <br> separate blocks of text. Each block is translated by
itself, if it has a letter or a digit; other markup within a block is put into its
translation (`tag_projection.py`).
"""

from __future__ import annotations

import html
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
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
    "address article aside base blockquote body br button caption center col colgroup"
    " dd details dialog dir div dl dt fieldset figcaption figure footer form frame"
    " frameset h1 h2 h3 h4 h5 h6 head header hgroup hr html iframe legend li link main"
    " menu meta nav noscript ol optgroup option p pre search section select summary"
    " table tbody td template textarea tfoot th thead title tr ul".split()
)
TRANSLATABLE = re.compile(r"[^\W_]")  # text without a letter or digit is left as it is
LINE_BREAK = re.compile(r"[\r\n]")

# of each sentence the translation and alignment
Translated = tuple[SplitText, Sequence[tuple[str, Alignment]]]


class PlainText(NamedTuple):
    """A text that is translated as it is, with the interface of `HtmlText`."""

    text: str
    inline_tags: int = 0

    @property
    def texts(self) -> list[str]:
        return [self.text]

    def translated(self, translations: Iterator[Translated]) -> str:
        """The text with its sentences' translations."""
        split, sentences = next(translations)
        return split.join([text for text, _ in sentences])


class Block(NamedTuple):
    """A piece of text, without character references, and the markup within it."""

    start: int  # in the document
    end: int
    text: str
    marks: list[Mark]

    def translated(
        self, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
    ) -> str:
        """The block as HTML, with translations in place of the sentences."""
        offsets = [mark.offset for mark in self.marks]
        parts: list[str] = []
        marks: list[Mark] = []
        # in the text; of the parts; the first mark that is not in the result
        at, length, next_mark = 0, 0, 0
        for (before, sentence), (text, alignment) in zip(
            split.segments, sentences, strict=True
        ):
            start = at + len(before)
            end = start + len(sentence)
            first = bisect_left(offsets, start, next_mark)
            behind = bisect_right(offsets, end, first)
            marks += _moved(self.marks[next_mark:first], length - at)
            parts += [self.text[at:start], text]
            length += len(before)
            inside = _moved(self.marks[first:behind], -start)
            marks += _moved(project(sentence, inside, text, alignment), length)
            at, length, next_mark = end, length + len(text), behind
        marks += _moved(self.marks[next_mark:], length - at)
        return _with_marks("".join([*parts, self.text[at:]]), marks)


class HtmlText:
    """A document: `texts` are its blocks, without character references; `translated`
    puts others there.

    If tags are not `inline`, all markup separates blocks.
    """

    def __init__(self, document: str, inline: bool = True) -> None:
        self._document = document
        self._blocks: list[Block] = []
        self.texts: list[str] = []
        start, at, length, preformatted = 0, 0, 0, not inline
        pieces: list[str] = []
        marks: list[Mark] = []
        for markup in [*MARKUP.finditer(document), None]:
            end, after = (
                (len(document), len(document)) if markup is None else markup.span()
            )
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
                self._blocks.append(Block(start, end, text, marks))
                self.texts.append(text if preformatted else LINE_BREAK.sub(" ", text))
            if tag and name == "pre" and inline:
                preformatted = not tag[1]
            start, length, pieces, marks = after, 0, [], []

    @property
    def inline_tags(self) -> int:
        """How many pieces of markup are within blocks."""
        return sum(len(block.marks) for block in self._blocks)

    def translated(self, translations: Iterator[Translated]) -> str:
        """The document with the next translations, one of each of `texts`, as its
        blocks.
        """
        parts = []
        at = 0
        for block in self._blocks:
            parts += [
                self._document[at : block.start],
                block.translated(*next(translations)),
            ]
            at = block.end
        return "".join([*parts, self._document[at:]])


def _moved(marks: Sequence[Mark], distance: int) -> list[Mark]:
    return [Mark(offset + distance, markup) for offset, markup in marks]


def _with_marks(text: str, marks: Sequence[Mark]) -> str:
    """Text as HTML, with the marks, which are in order."""
    parts = []
    at = 0
    for offset, markup in marks:
        parts += [html.escape(text[at:offset], quote=False), markup]
        at = offset
    return "".join([*parts, html.escape(text[at:], quote=False)])
