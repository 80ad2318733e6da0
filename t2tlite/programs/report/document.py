"""The report's template, whose values are escaped as Markdown, and the page made of it.

Text is plain: whatever Markdown or HTML would read as mark-up is escaped.
"""

import html
import re
import string
from collections.abc import Callable, Mapping
from typing import Any

from markdown_it import MarkdownIt

from t2tlite.programs.templates import fill_in, package_text

# not the _ inside a name
INLINE_MARKUP = re.compile(r"[\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_])")
# at the beginning of a text: a list, a rule, a quotation
BLOCK_MARKUP = re.compile(r"^(\d*)((?<=\d)[.)](?=\s|$)|[-+=](?=[-+=\s]|$)|>)")


class Verbatim(str):
    """Markdown or HTML, which is not escaped."""


def render(facts: Mapping[str, Any], filters: Mapping[str, Callable[..., Any]]) -> str:
    """The report in Markdown. The template also knows these filters."""
    every: dict[str, Callable[..., Any]] = {**filters}
    every |= {"code": code, "listing": listing, "html": Verbatim}
    template = "programs/report/report.md.jinja"
    return fill_in(template, facts, every, finalize=as_markdown) + "\n"


def to_html(title: str, markdown: str) -> str:
    """The document as one HTML file, which needs no other file, script or network, and
    is not allowed any.
    """
    body = MarkdownIt("commonmark").enable("table").render(markdown)
    page = string.Template(package_text("programs/report/page.html"))
    return page.substitute(title=html.escape(title), body=body)


def as_markdown(value: object) -> str:
    """A value on one line of Markdown; numbers in four digits or with thousands
    separated.
    """
    if isinstance(value, Verbatim):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"
    text = "" if value is None else _line(str(value))
    escaped = text.replace("&", "&amp;").replace("<", "&lt;")
    escaped = INLINE_MARKUP.sub(r"\\\g<0>", escaped)
    return BLOCK_MARKUP.sub(r"\1\\\2", escaped)


def code(value: object) -> str:
    """A file name, a hash or a command, in a cell of a table: there a bar would end the
    cell even inside code.
    """
    text = _line(str(value))
    if not text or "`" in text:
        return as_markdown(text)
    return Verbatim(f"`{text}`".replace("|", r"\|"))


def listing(text: str) -> Verbatim:
    """Lines to be shown as they are."""
    longest = max(re.findall("`+", text), key=len, default="")
    fence = "`" * max(3, 1 + len(longest))
    return Verbatim(f"{fence}\n{text.rstrip()}\n{fence}")


def _line(text: str) -> str:
    return re.sub(r"\s*[\r\n]+\s*", " ", text).strip()
