"""Splits HTML into text to translate and markup to keep.

A document is cut into runs (`html_runs.py`): texts that are translated by themselves,
each with the inline markup inside it. The model sees the text of a run with one space
for white space. Markup around runs and the white space there stay as they are. Inline
tags within a run are put into its translation (`tag_projection.py`).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from t2tlite.programs.documents.html_runs import Run, read_runs
from t2tlite.programs.documents.tag_projection import Translated


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
        self._parts = list(read_runs(document, inline))
        self._runs = [part for part in self._parts if isinstance(part, Run)]
        self.texts = [run.text for run in self._runs]

    @property
    def inline_tags(self) -> int:
        """How many pieces of markup are within runs."""
        return sum(run.tags for run in self._runs)

    def translated(self, translations: Iterator[Translated]) -> str:
        """The document with the next translations, one for each of `texts`."""
        sources = []
        for part in self._parts:
            if isinstance(part, Run):
                part = part.translated(*next(translations))
            sources.append(part)
        return "".join(sources)
