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
    lines = []
    for number, text in enumerate(texts, start=1):
        lines.append(f"{number}. {paragraph(text)}")
    return "\n".join(lines)


def listing(text: str) -> str:
    """Lines to be shown as they are."""
    longest = max(re.findall("`+", text), key=len, default="")
    fence = "`" * max(3, 1 + len(longest))
    return f"{fence}\n{text.rstrip()}\n{fence}"


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], caption: str = ""
) -> str:
    """A table, each row as long as the header. Columns of numbers are aligned on the
    right.
    """
    aligned = []
    for column in zip(*rows, strict=True):
        is_numeric = any(column) and all(_is_number(cell) for cell in column)
        aligned.append("right" if is_numeric else "left")
    made = tabulate(
        [_cells(row) for row in rows],
        _cells(header),
        "pipe",
        colalign=aligned,
        disable_numparse=True,
    )
    return f"{paragraph(caption)}:\n\n{made}" if caption else made


def folded(summary: str, block: str) -> str:
    """A long block, which a click opens."""
    return (
        f"<details><summary>{html.escape(summary)}</summary>\n\n{block}\n\n</details>"
    )


def drawings(svgs: Sequence[str], captions: Sequence[str] = ()) -> Drawings:
    """SVG drawings side by side where there is room, each below its caption if there
    are captions.
    """
    figures = ""
    for svg, text in zip(svgs, captions or [""] * len(svgs), strict=True):
        caption = f"<figcaption>{html.escape(text)}</figcaption>" if text else ""
        figures += f"<figure>{caption}{svg}</figure>"
    return Drawings(f'<div class="drawings">{figures}</div>'.replace("\n", " "))


def to_markdown(blocks: Sequence[str]) -> str:
    """The document as Markdown."""
    texts = [block for block in blocks if not isinstance(block, Drawings)]
    return "\n\n".join(texts) + "\n"


def to_html(title: str, blocks: Sequence[str]) -> str:
    """The document as one HTML file, which needs no other file, script or network, and
    is not allowed any.
    """
    body = MarkdownIt("commonmark").enable("table").render("\n\n".join(blocks))
    folder = importlib.resources.files("t2tlite.programs.report")
    page = folder.joinpath("page.html").read_text(encoding="utf-8")
    return string.Template(page).substitute(title=html.escape(title), body=body)


def _inline(text: str) -> str:
    """Text on one line of Markdown."""
    line = re.sub(r"[\r\n]+", " ", text)
    if isinstance(text, Code) and line and "`" not in line:
        return f"`{line}`"
    escaped = line.replace("&", "&amp;").replace("<", "&lt;")
    return INLINE_MARKUP.sub(r"\\\g<0>", escaped)


def _is_number(text: str) -> bool:
    return NUMBER.match(text) is not None and not isinstance(text, Code)


def _cells(texts: Sequence[str]) -> list[str]:
    """Texts in a table, where a bar would end the cell even inside code."""
    cells = []
    for text in texts:
        cell = _inline(text)
        cells.append(cell.replace("|", r"\|") if isinstance(text, Code) else cell)
    return cells
