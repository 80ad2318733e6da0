"""Line charts over training steps, drawn by matplotlib as SVG in the colours of the
page around them.

Importing this module raises ImportError if matplotlib is not installed.
"""

from __future__ import annotations

import html
import io
import re
from collections.abc import Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, LogLocator, NullLocator, StrMethodFormatter

INK = "#010101"  # stands for the colour of the page's text
COLOURS = ("#3f80c0", "#d4682c")  # at least 3:1 against white and against the dark page
MAX_POINTS = 200  # a longer line is drawn through the means of this many segments
MAX_VALUE = 1e100  # matplotlib cannot draw values near the largest float
MAX_DOTS = 60  # a longer line has no dots
INKED = (
    "text.color",
    "axes.edgecolor",
    "axes.labelcolor",
    "xtick.color",
    "ytick.color",
    "grid.color",
)
STYLE = {
    **dict.fromkeys(INKED, INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.14,
    "axes.formatter.limits": (-3, 6),
    "svg.fonttype": "none",  # text as text
}


def line_chart(
    title: str, unit: str, series: Mapping[str, Mapping[int, float]], log: bool = False
) -> str:
    """Draws one line, or two, over training steps: `series`, name -> step -> value,
    which are in `unit`.

    A line of few points shows them as dots; one of many is smoothed by the means of
    equal segments. Values that are not finite or above MAX_VALUE are left out, and on a
    logarithmic scale (`log`) those not above 0. Returns an `<svg>` element that needs
    no style sheet, font or script; empty if there is nothing to draw.
    """
    lines = {}
    for name, values in series.items():
        points = _points(values, log)
        if len(points):
            lines[name] = points
    if not lines:
        return ""
    # makes a drawing's names the same at each call
    style: dict[Any, Any] = {**STYLE, "svg.hashsalt": title}
    with matplotlib.rc_context(style):
        figure = Figure(figsize=(5, 2.8), layout="constrained")
        axes = figure.subplots()
        for colour, (name, points) in zip(COLOURS, lines.items(), strict=False):
            marker = "o" if len(points) <= MAX_DOTS else None
            axes.plot(
                *points.T,
                color=colour,
                marker=marker,
                markersize=3,
                linewidth=1.3,
                label=name,
            )
        axes.set_title(title, parse_math=False)
        axes.set(xlabel="step", ylabel=unit)
        axes.set_xlim(left=0)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if log:
            axes.set_yscale("log")
            low, high = axes.get_ylim()
            axes.yaxis.set_major_locator(
                LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,))
            )
            axes.yaxis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
            axes.yaxis.set_minor_locator(NullLocator())
        if len(lines) > 1:
            axes.legend()
        drawing = io.StringIO()
        metadata = dict.fromkeys(("Creator", "Date", "Format", "Type"))  # none of them
        figure.savefig(drawing, format="svg", transparent=True, metadata=metadata)
    return _embeddable(drawing.getvalue(), f"{title}: {', '.join(lines)} over steps")


def _embeddable(svg: str, label: str) -> str:
    """A matplotlib drawing as an element of a page: in the page's colours and font,
    without ids.
    """
    svg = svg.partition("<svg")[2]
    # would hold for the whole page
    svg = re.sub(r"<defs>\s*<(style|clipPath).*?</defs>", "", svg, flags=re.DOTALL)
    svg = re.sub(r' (id="[^"]*_\d+"|xmlns:xlink="[^"]*"|clip-path="[^"]*")', "", svg)
    svg = svg.replace("xlink:href", "href").replace(
        "'DejaVu Sans'", "system-ui, sans-serif"
    )
    return (
        '<svg class="chart" role="img"'
        f' aria-label="{html.escape(label)}"{svg.replace(INK, "currentColor")}'
    )


def _points(values: Mapping[int, float], log: bool) -> np.ndarray:
    """The points to draw of a line, at most MAX_POINTS, by step: [points, 2], step and
    value.
    """
    lowest = 0 if log else -MAX_VALUE
    points = []
    for step, value in sorted(values.items()):
        if lowest < value < MAX_VALUE:
            points.append((step, value))
    if len(points) <= MAX_POINTS:
        return np.array(points)
    segments = np.array_split(np.array(points), MAX_POINTS)
    return np.array([segment.mean(axis=0) for segment in segments])
