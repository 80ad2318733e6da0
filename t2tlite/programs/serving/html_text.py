"""The text of an HTML document and its markup, apart: what is translated, and what is left as it is.

Tags, comments, declarations, and scripts and style sheets with their content stay as they are. Each piece of
text between two tags is translated by itself, if it has a letter or a digit.
"""

from __future__ import annotations

import html
import re
from collections.abc import Sequence

MARKUP = re.compile(
    r"""<!--.*?(?:-->|\Z)
      | <(script|style)\b(?:[^<>"']|"[^"]*"|'[^']*')*>.*?(?:</\1\s*>|\Z)
      | </?[a-z](?:[^<>"']|"[^"]*"|'[^']*')*>
      | <[!?][^<>]*>""",
    re.DOTALL | re.IGNORECASE | re.VERBOSE,
)


TRANSLATABLE = re.compile(r"[^\W_]")  # text without a letter or digit is left as it is


class HtmlText:
    """A document: `texts` are its pieces of text, without character references; `join` puts others in their place."""

    def __init__(self, document: str) -> None:
        self._markup = [""]  # before each piece of text, and behind the last
        self.texts: list[str] = []
        at = 0
        for markup in [*MARKUP.finditer(document), None]:
            start, end = (len(document), len(document)) if markup is None else markup.span()
            raw = document[at:start]
            if TRANSLATABLE.search(text := html.unescape(raw)):
                self.texts.append(text)
                self._markup.append("")
            else:
                self._markup[-1] += raw
            self._markup[-1] += document[start:end]
            at = end

    def join(self, texts: Sequence[str]) -> str:
        """The document with these as its pieces of text."""
        parts = [self._markup[0]]
        for text, markup in zip(texts, self._markup[1:], strict=True):
            parts += [html.escape(text, quote=False), markup]
        return "".join(parts)
