"""Line charts: where values stand, ticks, and what cannot be drawn."""

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from t2tlite.programs.report.document import line_chart


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    return list(filter(None, map(str.strip, root.itertext())))


def dots(svg: str) -> list[tuple[float, float]]:
    """The places of the dots."""
    every = []
    for dot in ElementTree.fromstring(svg).iter("circle"):
        every.append((float(dot.attrib["cx"]), float(dot.attrib["cy"])))
    return every


def test_title_unit_ticks_and_legend():
    lines = {"training": {10: 4.0, 30: 1.5}, "dev & <test>": {20: 3.0}}
    svg = line_chart("Loss <1>", "nats & more", lines)
    assert "\n\n" not in svg  # which would end it in Markdown
    ticks = ["1.5", "2", "2.5", "3", "3.5", "4", "0", "10", "20", "30"]
    legend = ["training", "dev & <test>"]
    assert texts(svg) == ["Loss <1>", "nats & more", *ticks, "step", *legend]
    label = ElementTree.fromstring(svg).attrib["aria-label"]
    assert label == "Loss <1>: training, dev & <test> over steps"


def test_long_names_stand_below_each_other():
    names = ["runs/wmt_ende-transformer_base", "runs/wmt_ende-transformer_big"]
    svg = line_chart("t", "u", {name: {1: 1.0} for name in names})
    first, second = ElementTree.fromstring(svg).iter("tspan")
    assert first.attrib["x"] == second.attrib["x"]
    assert texts(svg)[-2:] == names


def test_distances_are_those_of_steps_and_values():
    left, middle, right = dots(line_chart("t", "u", {"a": {0: 1.0, 10: 3.0, 30: 2.0}}))
    assert middle[0] - left[0] == pytest.approx((right[0] - left[0]) / 3, abs=0.1)
    assert left[1] - middle[1] == pytest.approx(2 * (right[1] - middle[1]), abs=0.1)


@pytest.mark.parametrize("value", [0.0, -2.5, 1e-300, 7e99, 5e-324, 1.0])
def test_one_value_stands_inside(value):
    ((x, y),) = dots(line_chart("t", "u", {"a": {5: value}}))
    assert 0 < x < 440
    assert 40 < y < 225


def test_a_long_line_has_no_dots():
    svg = line_chart("t", "u", {"a": {step: float(step % 2) for step in range(1000)}})
    (points,) = re.findall('points="([^"]*)"', svg)
    assert len(points.split()) == 1000
    assert dots(svg) == []


def test_values_that_cannot_be_drawn_are_left_out():
    values = {1: math.nan, 2: math.inf, 3: -math.inf, 4: 1e308}
    assert line_chart("t", "u", {"a": values, "b": {}}) == ""
    assert len(dots(line_chart("t", "u", {"a": {**values, 5: 1.0}}))) == 1
    assert line_chart("t", "u", {}) == ""
