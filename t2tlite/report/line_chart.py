"""A line chart over steps as an SVG drawing, in the colours of the page around it."""

from __future__ import annotations

import dataclasses
import html
import itertools
import math
from collections.abc import Mapping, Sequence

# All in pixels.
WIDTH, HEIGHT = 480, 270
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 34, 40
MOST_POINTS = 200  # a longer line is drawn through the means of as many stretches

STYLE = (
    ".chart text{font-family:system-ui,sans-serif;font-size:11px;fill:currentColor}"
    ".chart .title{font-size:13px;font-weight:600}"
    ".chart .grid{stroke:currentColor;stroke-opacity:.14}"
    ".chart .axis{stroke:currentColor;stroke-opacity:.6}"
    ".chart .line{fill:none;stroke-width:1.6;stroke-linejoin:round}"
    ".chart .series0{stroke:#2f6fb2;stroke:light-dark(#2f6fb2,#7db7ee)}"
    ".chart .series1{stroke:#c4541a;stroke:light-dark(#c4541a,#f2a071)}"
    ".chart .series0.dot{fill:#2f6fb2;fill:light-dark(#2f6fb2,#7db7ee)}"
    ".chart .series1.dot{fill:#c4541a;fill:light-dark(#c4541a,#f2a071)}"
)


@dataclasses.dataclass(frozen=True)
class _Axis:
    """Values to pixels along one side."""

    low: float
    high: float
    ticks: Sequence[float]
    start: float  # pixel of `low`
    stop: float  # pixel of `high`
    log: bool = False

    def __call__(self, value: float) -> float:
        low, high = (math.log(self.low), math.log(self.high)) if self.log else (self.low, self.high)
        return self.start + ((math.log(value) if self.log else value) - low) / (high - low) * (self.stop - self.start)


def line_chart(title: str, unit: str, series: Mapping[str, Mapping[int, float]], log: bool = False) -> str:
    """Draws one line, or two, over training steps.

    A line of few points shows them as dots with their values; one of many is smoothed by means of equal stretches. The
    drawing needs no style sheet, font or script.

    Args:
        title: stands above.
        unit: of the values; stands at the axis.
        series: name -> step -> value; one or two. Values that are no finite numbers are left out, and so is what is
            not above 0 on a logarithmic scale.
        log: whether values stand on a logarithmic scale.

    Returns:
        An `<svg>` element.

    Raises:
        ValueError: there is nothing to draw.
    """
    lines = {name: _points(values, log) for name, values in series.items()}
    steps = [step for points in lines.values() for step, _ in points]
    values = [value for points in lines.values() for _, value in points]
    if not values:
        raise ValueError(f"A chart needs at least one finite value. Received: none for {title!r}.")
    x = _linear_axis(0, max(5.0, *steps), LEFT, WIDTH - RIGHT)
    make = _log_axis if log else _linear_axis
    y = make(min(values), max(values), HEIGHT - BOTTOM, TOP)
    parts = [f'<text class="title" x="{LEFT}" y="16">{html.escape(title)}</text>', *_frame(x, y, unit)]
    for number, (name, points) in enumerate(lines.items()):
        parts += _line(number, points, x, y)
        if len(lines) > 1:
            at = WIDTH - RIGHT - 110 * (len(lines) - number)
            parts.append(f'<path class="line series{number}" d="M{at} 12h18"/>')
            parts.append(f'<text x="{at + 23}" y="16">{html.escape(name)}</text>')
    described = html.escape(f"{title}: {', '.join(lines)} over steps")
    return (
        f'<svg class="chart" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{described}" width="{WIDTH}" '
        f'height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"><style>{STYLE}</style>{"".join(parts)}</svg>'
    )


def _points(values: Mapping[int, float], log: bool) -> list[tuple[float, float]]:
    """What to draw of a line: few enough points, in the order of the steps."""
    found = [(step, value) for step, value in sorted(values.items()) if math.isfinite(value) and (value > 0 or not log)]
    each = -(-len(found) // MOST_POINTS) or 1
    stretches = [found[i : i + each] for i in range(0, len(found), each)]
    return [(sum(s for s, _ in part) / len(part), sum(v for _, v in part) / len(part)) for part in stretches]


def _line(number: int, points: list[tuple[float, float]], x: _Axis, y: _Axis) -> list[str]:
    path = "L".join(f"{x(step):.1f} {y(value):.1f}" for step, value in points)
    parts = [f'<path class="line series{number}" d="M{path}"/>'] if len(points) > 1 else []
    if len(points) <= 60:
        for step, value in points:
            place = f'cx="{x(step):.1f}" cy="{y(value):.1f}"'
            told = f"<title>step {step:,.0f}: {value:.6g}</title>"
            parts.append(f'<circle class="series{number} dot" r="2.4" {place}>{told}</circle>')
    return parts


def _frame(x: _Axis, y: _Axis, unit: str) -> list[str]:
    """Grid, axes, ticks and units."""
    right, bottom = WIDTH - RIGHT, HEIGHT - BOTTOM
    parts = []
    for value, text in zip(y.ticks, tick_texts(y.ticks), strict=True):
        at = f"{y(value):.1f}"
        parts.append(f'<path class="grid" d="M{LEFT} {at}H{right}"/>')
        parts.append(f'<text x="{LEFT - 6}" y="{at}" dy="4" text-anchor="end">{text}</text>')
    for value, text in zip(x.ticks, tick_texts(x.ticks), strict=True):
        at = f"{x(value):.1f}"
        parts.append(f'<path class="axis" d="M{at} {bottom}v4"/>')
        parts.append(f'<text x="{at}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    middle = (TOP + bottom) / 2
    parts.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{bottom}H{right}"/>')
    parts.append(f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 6}" text-anchor="middle">step</text>')
    turned = f'transform="rotate(-90 12 {middle})"'
    parts.append(f'<text x="12" y="{middle}" text-anchor="middle" {turned}>{html.escape(unit)}</text>')
    return parts


def _linear_axis(low: float, high: float, start: float, stop: float) -> _Axis:
    if high <= low:  # one value only
        low, high = (low - abs(low) / 2, high + abs(high) / 2) if high else (0.0, 1.0)
    rough = (high - low) / 5
    power = 10.0 ** math.floor(math.log10(rough))
    each = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= rough * 0.999)
    first, last = math.floor(low / each + 1e-9), math.ceil(high / each - 1e-9)
    ticks = [i * each for i in range(first, last + 1)]
    if start > stop:  # upwards, the axis reaches from tick to tick; to the right it ends with the last step
        return _Axis(ticks[0], ticks[-1], ticks, start, stop)
    return _Axis(low, high, [tick for tick in ticks if low <= tick <= high * 1.0001], start, stop)


def _log_axis(low: float, high: float, start: float, stop: float) -> _Axis:
    """From one tick to another: powers of ten, with twos and fives between them where those are few."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    factors = (1, 2, 5) if last - first <= 3 else (1,)
    ticks = [factor * 10.0**power for power in range(first, last + 1) for factor in factors]
    below = [tick for tick in ticks if tick <= low * 1.0001]
    above = [tick for tick in ticks if tick >= high * 0.9999 and tick > below[-1]]
    ticks = [tick for tick in ticks if below[-1] <= tick <= above[0]]
    return _Axis(ticks[0], ticks[-1], ticks, start, stop, log=True)


def tick_texts(ticks: Sequence[float]) -> list[str]:
    """Ticks as text, all of one kind: 0.5 and 1.0; 20,000 as 20k; 0.0004 as 4e-4."""
    largest = max(abs(tick) for tick in ticks)
    if largest >= 10_000:
        return [f"{tick / 1000:g}k" if tick else "0" for tick in ticks]
    if largest < 0.01:
        return [_with_exponent(tick) for tick in ticks]
    gaps = [abs(b - a) for a, b in itertools.pairwise(ticks)] or [largest]
    digits = max(0, -math.floor(math.log10(min(gaps)) + 1e-9))
    uneven = max(gaps) > 1.5 * min(gaps)  # a logarithmic scale: each tick with its own digits
    return [f"{tick:,.10g}" if uneven else f"{tick:,.{digits}f}" for tick in ticks]


def _with_exponent(value: float) -> str:
    """0.0004 -> 4e-4."""
    if value == 0:
        return "0"
    mantissa, exponent = f"{value:.2e}".split("e")
    return f"{float(mantissa):g}e{int(exponent)}"
