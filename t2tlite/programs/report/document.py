"""What a report is made of: Markdown, whose values are escaped, line charts as SVG, and
the page.

Text is plain: whatever Markdown or HTML would read as mark-up is escaped. Charts have
the colours of the page around them.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from markdown_it import MarkdownIt

from t2tlite.programs.templates import fill_in

# not the _ inside a name
MARKDOWN = re.compile(r"[\\`*\[\]|~$#]|(?<![^\W_])_|_(?![^\W_])")

LEFT, RIGHT, TOP, BOTTOM = 56, 410, 46, 220  # of the lines
MAX_VALUE = 1e100  # a larger one is left out


class Verbatim(str):
    """Markdown or HTML, which is not escaped."""


def render(facts: Mapping[str, Any], template: str = "report.md.jinja") -> str:
    """A report in Markdown, by a template of this folder."""
    filters: dict[str, Callable[..., Any]] = {
        "code": code,
        "listing": listing,
        "html": Verbatim,
    }
    path = f"programs/report/{template}"
    return fill_in(path, facts, filters, finalize=as_markdown) + "\n"


def to_html(title: str, markdown: str) -> str:
    """The document as one HTML file, which needs no other file, script or network, and
    is not allowed any.
    """
    body = MarkdownIt("commonmark").enable("table").render(markdown)
    facts = {"title": title, "body": body}
    return fill_in("programs/report/page.html", facts, autoescape=True)


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
    return MARKDOWN.sub(r"\\\g<0>", escaped)


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


class Axis(NamedTuple):
    """Round values at equal distances, and where the first and last are drawn."""

    ticks: list[float]
    start: int
    end: int

    def place(self, value: float) -> float:
        """Where a value is drawn."""
        share = (value - self.ticks[0]) / (self.ticks[-1] - self.ticks[0])
        return round(self.start + (self.end - self.start) * share, 1)


def line_chart(title: str, unit: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """Draws lines over training steps: `series`, name -> step -> value, which are in
    `unit`. Empty if there is nothing to draw.
    """
    lines = {}
    every: list[tuple[int, float]] = []
    for name, values in series.items():
        points = []
        for step, value in sorted(values.items()):
            if abs(value) < MAX_VALUE:
                points.append((step, value))
        if points:
            lines[name] = points
            every += points
    if not lines:
        return ""
    steps, heights = zip(*every, strict=True)
    facts = {
        "title": title,
        "unit": unit,
        "lines": lines,
        "steps": Axis(_ticks(0.0, max(steps)), LEFT, RIGHT),
        "values": Axis(_ticks(min(heights), max(heights)), BOTTOM, TOP),
    }
    return fill_in("programs/report/chart.svg.jinja", facts, autoescape=True)


def _ticks(low: float, high: float) -> list[float]:
    """Two to seven round values at equal distances, around `low` and
    `high`.

    >>> _ticks(1.3, 4.9)
    [1.0, 2.0, 3.0, 4.0, 5.0]
    """
    span = max(high - low, 1e-9 * max(abs(low), abs(high)), 1e-100)
    size = 10.0 ** math.floor(math.log10(span))
    distance = 2 * size
    for factor in (1.0, 0.5, 0.2):
        if span / (factor * size) <= 5:
            distance = factor * size
    first = math.floor(low / distance + 1e-9)
    last = max(math.ceil(high / distance - 1e-9), first + 1)
    return [number * distance for number in range(first, last + 1)]
