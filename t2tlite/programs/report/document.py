"""A document of tables, listings and drawings in Markdown, and the HTML page made from
it.

A document is a sequence of blocks. The functions below return blocks of
GitHub-flavoured Markdown; drawings are HTML, on the page only. Text is plain: whatever
Markdown or HTML would read as mark-up is escaped.
"""

from __future__ import annotations

import html
import importlib.resources
import re
import string
from collections.abc import Sequence

from markdown_it import MarkdownIt
from tabulate import tabulate

NUMBER = re.compile(r"[-+]?\d[\d,.]*(e[-+]?\d+)?( (s|MB))?$|$")  # or nothing
# not the _ inside a name
INLINE_MARKUP = re.compile(r"[\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_])")
# at the beginning of a paragraph: a list, a rule, a quotation
BLOCK_MARKUP = re.compile(r"^(\d*)([-+=>.)])")


class Code(str):
    """Text to be shown as code: a file name, a hash, a command."""


class Drawings(str):
    """Drawings in HTML, which Markdown leaves out."""


def heading(text: str, level: int) -> str:
    """A heading; level 1 is the title of the document."""
    return f"{'#' * level} {_inline(text)}"


def paragraph(*pieces: str) -> str:
    """Running text; the pieces follow one another without a space."""
    return BLOCK_MARKUP.sub(r"\1\\\2", "".join(map(_inline, pieces)).strip())


def numbered(texts: Sequence[str]) -> str:
    """A numbered list."""
    return "\n".join(
        f"{number}. {paragraph(text)}" for number, text in enumerate(texts, start=1)
    )


def listing(text: str) -> str:
    """Lines to be shown as they are."""
    fence = "`" * max([3, *(1 + len(ticks) for ticks in re.findall("`+", text))])
    return f"{fence}\n{text.rstrip()}\n{fence}"


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = ""
) -> str:
    """A table, each row as long as the header. Columns of numbers are aligned on the
    right.
    """
    aligned = []
    for column in zip(*rows, strict=True):
        numbers = [c for c in column if NUMBER.match(c) and not isinstance(c, Code)]
        is_numeric = any(column) and len(numbers) == len(column)
        aligned.append("right" if is_numeric else "left")
    cells = [[_cell(cell) for cell in row] for row in rows]
    made = tabulate(
        cells, list(map(_cell, header)), "pipe", colalign=aligned, disable_numparse=True
    )
    return f"{paragraph(caption)}:\n\n{made}" if caption else made


def folded(summary: str, block: str) -> str:
    """A long block, which a click opens."""
    return (
        f"<details><summary>{html.escape(summary)}</summary>\n\n{block}\n\n</details>"
    )


def drawings(svgs: Sequence[str], captions: Sequence[str] = ()) -> Drawings:
    """SVG drawings side by side as far as there is room, each with its caption if there
    are captions.
    """
    captions = [
        f"<figcaption>{html.escape(text)}</figcaption>" for text in captions
    ] or [""] * len(svgs)
    figures = [
        f"<figure>{caption}{svg}</figure>"
        for caption, svg in zip(captions, svgs, strict=True)
    ]
    return Drawings(
        f'<div class="drawings">{"".join(figures)}</div>'.replace("\n", " ")
    )


def to_markdown(blocks: Sequence[str]) -> str:
    """The document as Markdown."""
    return (
        "\n\n".join(block for block in blocks if not isinstance(block, Drawings)) + "\n"
    )


def to_html(title: str, blocks: Sequence[str]) -> str:
    """The document as one HTML file, which needs no other file, script or network, and
    is not allowed any.
    """
    body = MarkdownIt("commonmark").enable("table").render("\n\n".join(blocks))
    page = (
        importlib.resources.files("t2tlite.programs.report")
        .joinpath("page.html")
        .read_text(encoding="utf-8")
    )
    return string.Template(page).substitute(title=html.escape(title), body=body)


def _inline(text: str) -> str:
    """Text on one line of Markdown."""
    line = re.sub(r"[\r\n]+", " ", text)
    if isinstance(text, Code) and line and "`" not in line:
        return f"`{line}`"
    return INLINE_MARKUP.sub(
        r"\\\g<0>", line.replace("&", "&amp;").replace("<", "&lt;")
    )


def _cell(text: str) -> str:
    """Text in a table, where a bar would end the cell even inside code."""
    return (
        _inline(text).replace("|", r"\|") if isinstance(text, Code) else _inline(text)
    )
