"""Line charts over training steps as SVG, in the colours of the page around them."""

import math
from collections.abc import Mapping, Sequence

import numpy as np

from t2tlite.programs.templates import fill_in

LEFT, RIGHT, TOP, BOTTOM = 56, 410, 46, 220  # of the lines
# at least 3:1 against white and against the dark page
COLOURS = ("#3f80c0", "#d4682c", "#4d9a58", "#8a63b8")
MAX_POINTS = 200  # a longer line is drawn through the means of this many segments
MAX_DOTS = 60  # a longer line has no dots
MAX_VALUE = 1e100  # a larger one is left out


def line_chart(title: str, unit: str, series: Mapping[str, Mapping[int, float]]) -> str:
    """Draws up to four lines: `series`, name -> step -> value, which are in `unit`.
    Empty if there is nothing to draw.
    """
    lines = {}
    for name, values in list(series.items())[: len(COLOURS)]:
        points = _points(values)
        if len(points):
            lines[name] = points
    if not lines:
        return ""
    every_step, every_value = np.concatenate(list(lines.values())).T
    steps = _ticks(0.0, every_step.max())
    heights = _ticks(every_value.min(), every_value.max())
    drawn = []
    for name, points in lines.items():
        x = _between(points[:, 0], steps, LEFT, RIGHT)
        y = _between(points[:, 1], heights, BOTTOM, TOP)
        drawn.append((name, list(zip(x, y, strict=True))))
    facts = {
        "title": title,
        "unit": unit,
        "lines": drawn,
        "steps": zip(steps, _between(steps, steps, LEFT, RIGHT), strict=True),
        "heights": zip(heights, _between(heights, heights, BOTTOM, TOP), strict=True),
        "left": LEFT,
        "right": RIGHT,
        "bottom": BOTTOM,
        "colours": COLOURS,
        "most_dots": MAX_DOTS,
    }
    return fill_in("programs/report/chart.svg.jinja", facts, autoescape=True)


def _points(values: Mapping[int, float]) -> np.ndarray:
    """The points of a line, at most MAX_POINTS: [points, 2], step and value."""
    points = []
    for step, value in sorted(values.items()):
        if -MAX_VALUE < value < MAX_VALUE:
            points.append((float(step), value))
    if len(points) <= MAX_POINTS:
        return np.array(points)
    segments = np.array_split(np.array(points), MAX_POINTS)
    return np.array([segment.mean(axis=0) for segment in segments])


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


def _between(
    values: Sequence[float] | np.ndarray, ticks: Sequence[float], start: int, end: int
) -> list[float]:
    """The places of values on an axis from the first tick to the last."""
    share = (np.array(values) - ticks[0]) / (ticks[-1] - ticks[0])
    return [round(place, 1) for place in (start + (end - start) * share).tolist()]
