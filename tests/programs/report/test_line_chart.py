"""Line charts: where values stand, ticks, what cannot be drawn, and that a page can
hold several of them.
"""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from t2tlite.programs.report.line_chart import COLOURS, line_chart

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> tuple[list[str], list[tuple[float, float]]]:
    """The texts, and the places of the dots."""
    root = ElementTree.fromstring(svg)
    dots = [
        (float(dot.attrib["x"]), float(dot.attrib["y"]))
        for dot in root.iter(f"{SVG}use")
        if any(f"fill: {colour}" in dot.attrib["style"] for colour in COLOURS)
    ]
    return [text.text or "" for text in root.iter(f"{SVG}text")], dots


def line(svg: str) -> dict[float, float]:
    """The points of the first line, x -> y."""
    path, *_ = re.findall(
        rf'<path d="([^"]*)"[^>]*stroke: {COLOURS[0]}; stroke-width: 1.3', svg
    )
    return {float(x): float(y) for x, y in re.findall(r"[ML] (\S+) (\S+)", path)}


def test_title_units_ticks_and_legend():
    svg = line_chart(
        "Loss <1> $x$",
        "nats & more",
        {"training": {1: 4.0, 100: 1.0}, "dev": {50: 3.0, 100: 2.0}},
    )
    texts, dots = drawn(svg)
    assert {
        "Loss <1> $x$",
        "nats & more",
        "step",
        "training",
        "dev",
        "1.0",
        "4.0",
        "20",
        "100",
    } <= set(texts)
    assert len(dots) == 4 + 2  # the legend's
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")
    assert 'aria-label="Loss &lt;1&gt; $x$: training, dev over steps"' in svg


def test_distances_are_equal_on_linear_ratios_on_log_scales():
    _, dots = drawn(line_chart("", "", {"a": {0: 10.0, 50: 55.0, 100: 100.0}}))
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.01)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.01)
    assert y0 > y1 > y2  # larger is higher
    texts, dots = drawn(
        line_chart("", "", {"a": {0: 2.0, 50: 20.0, 100: 200.0}}, log=True)
    )
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.01)
    assert {"2", "5", "10", "20", "50", "100", "200"} <= set(texts)


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ({1: 1.2, 2: 1e6}, ["10", "1,000", "100,000"]),  # without twos and fives
        # within a decade, and without a power of ten
        ({1: 4.2, 2: 4.7}, ["4.3", "4.5", "4.7"]),
    ],
)
def test_ticks_of_wide_and_narrow_logarithmic_scales(values, texts):
    ticks, _ = drawn(line_chart("", "", {"a": values}, log=True))
    assert set(texts) <= set(ticks)
    assert len(ticks) <= 25


def test_steps_in_thousands():
    texts, _ = drawn(line_chart("", "", {"a": {1: 1.0, 100_000: 2.0}}))
    assert {"0", "20k", "100k"} <= set(texts)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.37, 1e-5, 4321.0, 1e8])
def test_one_value_stands_inside(value, log):
    svg = line_chart("", "", {"a": {7: value}}, log)
    _, ((x, y),) = drawn(svg)
    _, _, width, height = map(float, re.search(r'viewBox="([^"]*)"', svg)[1].split())
    assert 0 < x < width
    assert 20 < y < height - 30


def test_negative_values_and_zero():
    texts, dots = drawn(line_chart("", "", {"a": {1: -3.0, 2: 0.0, 3: 3.0}}))
    assert {"−3", "0", "3"} <= set(texts)
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.01)
    assert len(drawn(line_chart("", "", {"a": {1: 0.0}}))[1]) == 1


def test_a_long_line_is_drawn_through_means():
    svg = line_chart("", "", {"a": {step: float(step % 2) for step in range(100_000)}})
    assert len(set(line(svg).values())) == 1  # 0 and 1 in turn: every mean is a half
    svg = line_chart(
        "", "", {"a": {step: float(step // 500 % 2) for step in range(100_000)}}
    )
    assert len(line(svg)) == 200
    assert drawn(svg)[1] == []


def test_values_that_cannot_be_drawn_are_left_out():
    values = {1: 1.0, 2: math.nan, 3: math.inf, 4: 2.0, 5: 1e308, 6: -1e308}
    assert len(drawn(line_chart("", "", {"a": values}))[1]) == 2
    assert (
        len(drawn(line_chart("", "", {"a": {1: 0.0, 2: -1.0, 3: 2.0}}, log=True))[1])
        == 1
    )
    assert line_chart("Loss", "", {"a": {1: math.nan}, "b": {}}) == ""


def test_chart_has_colours_of_the_page_and_is_deterministic():
    svg = line_chart("Loss", "nats", {"a": {1: 1.0, 2: 2.0}})
    colours = set(re.findall(r"#[0-9a-f]{6}\b", svg))
    assert colours == {COLOURS[0]}  # axes and text: the page's
    assert "currentColor" in svg
    assert "<style" not in svg  # which would hold for the whole page
    assert line_chart("Loss", "nats", {"a": {1: 1.0, 2: 2.0}}) == svg


def test_charts_on_one_page_have_no_names_in_common():
    names = [
        set(
            re.findall(
                r'\bid="([^"]*)"', line_chart(title, "", {"a": {1: 1.0, 2: 2.0}})
            )
        )
        for title in ("A", "B")
    ]
    assert names[0]
    assert not names[0] & names[1]
