"""A document of tables, listings and drawings, written as one HTML file and as markdown.

Text is plain everywhere: whatever a mark-up language would take for mark-up is escaped when the document is written.
"""

from __future__ import annotations

import dataclasses
import html
import re
from collections.abc import Sequence


class Code(str):
    """Text to be set as code: a file name, a hash, a command."""


@dataclasses.dataclass(frozen=True)
class Paragraph:
    """Running text; its pieces follow one another without a space."""

    pieces: Sequence[str]


@dataclasses.dataclass(frozen=True)
class Listing:
    """Lines to be shown as they are."""

    text: str


@dataclasses.dataclass(frozen=True)
class Table:
    """Rows of cells, each row as long as the header. A column of numbers is set flush right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str = ""


@dataclasses.dataclass(frozen=True)
class Drawings:
    """SVG drawings side by side as far as there is room, and what stands for them in markdown."""

    drawings: Sequence[str]
    instead: Table | Listing
    captions: Sequence[str] = ()  # one for each drawing, or none


@dataclasses.dataclass(frozen=True)
class Folded:
    """A table that is long and seldom needed: opened by a click."""

    summary: str
    table: Table


Block = Paragraph | Listing | Table | Drawings | Folded


@dataclasses.dataclass(frozen=True)
class Section:
    """A part of a document under a title of its own."""

    title: str
    blocks: Sequence[Block]


NUMBER = re.compile(r"[-+]?\d[\d,.]*(e[-+]?\d+)?( (s|MB))?$|$")  # or nothing
MARKS = re.compile(r"[\\`*\[\]|~$#]|(?<!\w)_|_(?!\w)")  # what markdown takes for mark-up; not the _ inside a name

STYLE = """
:root{color-scheme:light dark;--ink:light-dark(#1c1c1e,#e4e4e7);--soft:light-dark(#5f6368,#a0a4ab);
--rule:light-dark(#d5d7db,#3c3f45);--paper:light-dark(#fff,#17181b);--shade:light-dark(#f5f6f7,#202226)}
body{font:15px/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;color:var(--ink);background:var(--paper);
max-width:64rem;margin:2.5rem auto;padding:0 1.25rem}
h1{font-size:1.6rem;line-height:1.25;margin:0}
h2{font-size:1.1rem;margin:2.4rem 0 .6rem;padding-bottom:.25rem;border-bottom:1px solid var(--rule)}
p{margin:.5rem 0;max-width:46rem}
.subtitle,caption,figcaption,footer{color:var(--soft)}
.wide{overflow-x:auto}
table{border-collapse:collapse;margin:.6rem 0 1rem;font-variant-numeric:tabular-nums}
caption{text-align:left;padding-bottom:.3rem;font-size:.87rem}
th{text-align:left;font-weight:600;border-bottom:1px solid var(--soft)}
th,td{padding:.28rem 1.4rem .28rem 0;vertical-align:top}
td{border-bottom:1px solid var(--rule)}
th:last-child,td:last-child{padding-right:0}
.number{text-align:right;white-space:nowrap}
code,pre{font:.86em/1.45 ui-monospace,SFMono-Regular,Consolas,"Liberation Mono",monospace}
p code{overflow-wrap:anywhere}
td code{white-space:nowrap}
pre{background:var(--shade);padding:.7rem .9rem;margin:.6rem 0;overflow-x:auto;border-radius:4px}
.drawings{display:flex;flex-wrap:wrap;gap:1rem 1.5rem;margin:.8rem 0}
figure{margin:0;max-width:100%;overflow-x:auto}
figcaption{font-size:.87rem}
.chart{max-width:100%;height:auto}
summary{cursor:pointer;color:var(--soft)}
footer{margin-top:3rem;font-size:.87rem}
@media print{
:root{color-scheme:light}
body{font-size:10pt;margin:0;max-width:none;padding:0}
h2{break-after:avoid}
figure,tr{break-inside:avoid}
.wide,figure,pre{overflow:visible}
pre{white-space:pre-wrap}
svg{max-width:100%;height:auto}
details::details-content{content-visibility:visible;block-size:auto}
}
""".strip()


def to_html(title: str, subtitle: str, sections: Sequence[Section], footer: str) -> str:
    """The document as one HTML file, which needs no other file, no script and no network, and may not use any."""
    parts = [
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">',
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">",
        '<meta name="viewport" content="width=device-width, initial-scale=1">',
        f"<title>{html.escape(title)}</title>\n<style>\n{STYLE}\n</style></head>\n<body>",
        f'<h1>{html.escape(title)}</h1>\n<p class="subtitle">{html.escape(subtitle)}</p>',
    ]
    for section in sections:
        parts.append(f"<section><h2>{html.escape(section.title)}</h2>")
        parts += [_html_block(block) for block in section.blocks]
        parts.append("</section>")
    parts.append(f"<footer>{html.escape(footer)}</footer>\n</body></html>\n")
    return "\n".join(parts)


def to_markdown(title: str, subtitle: str, sections: Sequence[Section], footer: str) -> str:
    """The document as markdown with tables (GitHub's); drawings are left out for what stands for them."""
    parts = [f"# {_plain(title)}", _plain(subtitle)]
    for section in sections:
        parts.append(f"## {_plain(section.title)}")
        parts += [_markdown_block(block) for block in section.blocks]
    return "\n\n".join([*parts, _plain(footer)]) + "\n"


def _html_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return f"<p>{''.join(map(_html_text, block.pieces))}</p>"
    if isinstance(block, Listing):
        return f"<pre>{html.escape(block.text)}</pre>"
    if isinstance(block, Folded):
        return f"<details><summary>{html.escape(block.summary)}</summary>{_html_table(block.table)}</details>"
    if isinstance(block, Drawings):
        captions = [f"<figcaption>{html.escape(text)}</figcaption>" for text in block.captions]
        captions = captions or [""] * len(block.drawings)
        figures = [f"<figure>{c}{svg}</figure>" for c, svg in zip(captions, block.drawings, strict=True)]
        return f'<div class="drawings">{"".join(figures)}</div>'
    return _html_table(block)


def _html_table(table: Table) -> str:
    marks = [' class="number"' if is_number else "" for is_number in _numeric_columns(table)]

    def row(kind: str, cells: Sequence[str]) -> str:
        inner = [f"<{kind}{mark}>{_html_text(cell)}</{kind}>" for mark, cell in zip(marks, cells, strict=True)]
        return f"<tr>{''.join(inner)}</tr>"

    caption = f"<caption>{html.escape(table.caption)}</caption>" if table.caption else ""
    head = f"<thead>{row('th', table.header)}</thead>" if any(table.header) else ""
    body = "\n".join(row("td", cells) for cells in table.rows)
    return f'<div class="wide"><table>{caption}{head}<tbody>\n{body}\n</tbody></table></div>'


def _html_text(text: str) -> str:
    return f"<code>{html.escape(text)}</code>" if isinstance(text, Code) else html.escape(text)


def _markdown_block(block: Block) -> str:
    if isinstance(block, Paragraph):
        return "".join(map(_markdown_text, block.pieces))
    if isinstance(block, Listing):
        fence = "`" * max([3, *(1 + len(ticks) for ticks in re.findall(r"`+", block.text))])
        return f"{fence}\n{block.text.rstrip()}\n{fence}"
    if isinstance(block, Folded):
        return f"{_plain(block.summary)}:\n\n{_markdown_block(block.table)}"
    if isinstance(block, Drawings):
        return _markdown_block(block.instead)
    rule = ["--:" if is_number else "---" for is_number in _numeric_columns(block)]
    header, *rows = ([_markdown_cell(cell) for cell in row] for row in (block.header, *block.rows))
    lines = [f"| {' | '.join(row)} |" for row in (header, rule, *rows)]
    return (f"{_plain(block.caption)}:\n\n" if block.caption else "") + "\n".join(lines)


def _markdown_text(text: str) -> str:
    if isinstance(text, Code) and text and "`" not in text:
        return "`" + text.replace("\n", " ") + "`"
    return _plain(text)


def _markdown_cell(text: str) -> str:
    """In a table, a bar would end the cell even inside code."""
    return _markdown_text(text).replace("|", "\\|") if isinstance(text, Code) else _plain(text)


def _plain(text: str) -> str:
    """Text with what markdown would take for mark-up escaped, on one line."""
    escaped = MARKS.sub(r"\\\g<0>", text.replace("&", "&amp;").replace("<", "&lt;"))
    return escaped.replace("\n", " ")


def _numeric_columns(table: Table) -> list[bool]:
    columns = zip(*table.rows, strict=True) if table.rows else [()] * len(table.header)
    return [
        any(column) and all(not isinstance(cell, Code) and NUMBER.match(cell) for cell in column) for column in columns
    ]
