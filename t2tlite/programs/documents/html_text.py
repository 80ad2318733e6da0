"""Splits HTML into text to translate and markup to keep.

A document is cut into runs: texts that are translated by themselves, each with the
inline markup inside it. Blocks such as <p> and <br>, the lines of <pre>, and
neighbouring inline elements (`html_runs.py`) end a run. The model sees the text of a
run with one space for white space. A run without a letter or digit, markup around runs
and the white space there stay as they are. Inline tags within a run are put into its
translation (`tag_projection.py`).
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from t2tlite.decoding.alignment import Alignment
from t2tlite.programs.documents.html_elements import BLOCKS, Elements, find_elements
from t2tlite.programs.documents.html_runs import Item, Run, find_runs
from t2tlite.programs.documents.html_tokens import RAW_TEXT, Kind, Token, tokens
from t2tlite.programs.documents.sentences import SplitText
from t2tlite.programs.documents.tag_projection import Mark, Role, project, with_marks

# visible at their place, like untouched elements
VISIBLE_VOID = frozenset("embed img input".split())
LINE_BREAK = re.compile(r"\r\n?|\n|&#(?:0*1[03]|[xX]0*[aAdD])(?![0-9a-fA-F]);?")

# a text, and the translation and alignment of each of its sentences
Translated = tuple[SplitText, Sequence[tuple[str, Alignment]]]


class PlainText(NamedTuple):
    """Plain text, with the interface of `HtmlText`."""

    text: str
    inline_tags: int = 0

    @property
    def texts(self) -> list[str]:
        return [self.text]

    def translated(self, translations: Iterator[Translated]) -> str:
        """The text with its sentences' translations."""
        split, sentences = next(translations)
        return split.join([text for text, _ in sentences])


class HtmlText:
    """An HTML document. `texts` are the texts of its runs, without character
    references; `translated` replaces them.

    If tags are not `inline`, all markup separates runs.
    """

    def __init__(self, document: str, inline: bool = True) -> None:
        self._document = document
        self._runs: list[Run] = []
        for items in _blocks(document, inline):
            self._runs += find_runs(items)
        self.texts = [run.text for run in self._runs]

    @property
    def inline_tags(self) -> int:
        """How many pieces of markup are within runs."""
        return sum(len(run.marks) for run in self._runs)

    def translated(self, translations: Iterator[Translated]) -> str:
        """The document with the next translations, one for each of `texts`."""
        parts: list[str] = []
        at = 0
        for run in self._runs:
            parts.append(self._document[at : run.start])
            parts.append(_translated_run(run, *next(translations)))
            at = run.end
        return "".join([*parts, self._document[at:]])


def _translated_run(
    run: Run, split: SplitText, sentences: Sequence[tuple[str, Alignment]]
) -> str:
    """A run as HTML, with translations in place of the sentences."""
    offsets = [mark.offset for mark in run.marks]
    parts: list[str] = []
    marks: list[Mark] = []
    at = 0  # in the text of the run
    length = 0  # of the parts
    next_mark = 0  # the first that is not in `marks`
    for (before, sentence), (text, alignment) in zip(
        split.segments, sentences, strict=True
    ):
        start = at + len(before)
        end = start + len(sentence)
        first = bisect_left(offsets, start, next_mark)
        behind = bisect_right(offsets, end, first)
        marks += _moved(run.marks[next_mark:first], length - at)
        parts += [before, text]
        length += len(before)
        inside = _moved(run.marks[first:behind], -start)
        marks += _moved(project(sentence, inside, text, alignment), length)
        at = end
        length += len(text)
        next_mark = behind
    marks += _moved(run.marks[next_mark:], length - at)
    return with_marks("".join([*parts, run.text[at:]]), marks)


def _moved(marks: Sequence[Mark], distance: int) -> list[Mark]:
    return [mark._replace(offset=mark.offset + distance) for mark in marks]


def _blocks(document: str, inline: bool) -> Iterator[list[Item]]:
    """Yields the text and the inline markup between two blocks."""
    document_tokens = list(tokens(document))
    elements = find_elements(document_tokens)
    items: list[Item] = []
    index = 0
    while index < len(document_tokens):
        token = document_tokens[index]
        behind = index + 1
        if token.kind is Kind.TEXT and elements.is_translated[index]:
            lines = _lines(document, token, elements.is_preformatted[index])
            for number, (start, end) in enumerate(lines):
                if number:
                    yield items
                    items = []
                items.append(Item.of_text(document, start, end))
        else:
            markup = _inline_markup(document_tokens, elements, index)
            if markup is not None:
                behind, role, is_object = markup
                end = document_tokens[behind - 1].end
                item = Item(
                    token.start,
                    end,
                    markup=document[token.start : end],
                    name=token.name,
                    role=role,
                    element=_element_of(elements, index),
                    is_object=is_object,
                )
                items.append(item)
            if markup is None or not inline:
                yield items
                items = []
        index = behind
    yield items


def _lines(document: str, token: Token, is_preformatted: bool) -> list[tuple[int, int]]:
    """Offsets of the lines of a text; it is one line where white space does not
    count.
    """
    if not is_preformatted:
        return [(token.start, token.end)]
    starts = [token.start]
    ends = []
    for line_break in LINE_BREAK.finditer(document, token.start, token.end):
        ends.append(line_break.start())
        starts.append(line_break.end())
    return list(zip(starts, [*ends, token.end], strict=True))


def _inline_markup(
    document_tokens: Sequence[Token], elements: Elements, index: int
) -> tuple[int, Role, bool] | None:
    """Returns the index behind the inline markup that begins at a token, its role, and
    whether it is visible at its place. Returns None if the token separates blocks, or
    is inside an element that is not translated.
    """
    token = document_tokens[index]
    if token.kind is Kind.OTHER and elements.is_translated[index]:
        return index + 1, Role.POINT, False
    if token.kind is Kind.START and token.name in RAW_TEXT - BLOCKS:
        return elements.ends[index], Role.POINT, False
    if token.kind is Kind.START and not elements.is_translated[index]:
        if elements.separates[index]:
            return None
        return elements.ends[index], Role.POINT, True
    if token.kind not in (Kind.START, Kind.END) or token.name in BLOCKS:
        return None
    if not elements.is_translated[index]:
        return None
    if token.kind is Kind.END:
        return index + 1, Role.CLOSING, False
    if elements.ends[index] == index + 1 and elements.partners[index] is None:
        return index + 1, Role.POINT, token.name in VISIBLE_VOID
    return index + 1, Role.OPENING, False


def _element_of(elements: Elements, index: int) -> int:
    """The number of the element that a tag belongs to: that of its start tag."""
    partner = elements.partners[index]
    return index if partner is None else min(index, partner)
