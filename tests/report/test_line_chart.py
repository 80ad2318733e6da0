"""Line charts: where values stand, ticks, and what cannot be drawn."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ElementTree

import pytest

from t2tlite.report.line_chart import line_chart, tick_texts

SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg: str) -> tuple[list[str], list[tuple[float, float]]]:
    """The texts, and the places of the dots."""
    root = ElementTree.fromstring(svg)
    dots = [(float(dot.attrib["cx"]), float(dot.attrib["cy"])) for dot in root.iter(f"{SVG}circle")]
    return [text.text or "" for text in root.iter(f"{SVG}text")], dots


def test_title_units_ticks_and_legend():
    svg = line_chart("Loss <1>", "nats & more", {"training": {1: 4.0, 100: 1.0}, "dev": {50: 3.0, 100: 2.0}})
    texts, dots = drawn(svg)
    assert {"Loss <1>", "nats & more", "step", "training", "dev", "1", "4", "20", "100"} <= set(texts)
    assert len(dots) == 4
    assert "http" not in svg.replace("http://www.w3.org/2000/svg", "")


def test_equal_distances_on_a_linear_scale_and_equal_ratios_on_a_logarithmic_one():
    _, dots = drawn(line_chart("", "", {"a": {0: 10.0, 50: 55.0, 100: 100.0}}))
    (x0, y0), (x1, y1), (x2, y2) = dots
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.11)
    assert y0 - y1 == pytest.approx(y1 - y2, abs=0.11)
    assert y0 > y1 > y2  # larger is higher
    texts, dots = drawn(line_chart("", "", {"a": {0: 2.0, 50: 20.0, 100: 200.0}}, log=True))
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.11)
    assert {"2", "5", "10", "20", "50", "100", "200"} <= set(texts)


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize("value", [1.0, 0.37, 1e-5, 4321.0, 1e8])
def test_one_value_stands_inside(value, log):
    _, ((x, y),) = drawn(line_chart("", "", {"a": {7: value}}, log))
    assert 0 < x < 480
    assert 30 < y < 240


def test_negative_values_and_zero():
    texts, dots = drawn(line_chart("", "", {"a": {1: -3.0, 2: 0.0, 3: 3.0}}))
    assert {"-4", "0", "4"} <= set(texts)
    assert dots[0][1] - dots[1][1] == pytest.approx(dots[1][1] - dots[2][1], abs=0.11)
    assert len(drawn(line_chart("", "", {"a": {1: 0.0}}))[1]) == 1


def test_a_long_line_is_drawn_through_means():
    svg = line_chart("", "", {"a": {step: float(step % 2) for step in range(100_000)}})
    path = re.search(r'class="line series0" d="M([^"]*)"', svg)[1]
    heights = {float(point.split()[1]) for point in path.split("L")}
    assert len(path.split("L")) == 200
    assert len(heights) == 1  # 0 and 1 in turn: every mean is a half
    assert "<circle" not in svg


def test_values_that_cannot_be_drawn_are_left_out():
    assert len(drawn(line_chart("", "", {"a": {1: 1.0, 2: math.nan, 3: math.inf, 4: 2.0}}))[1]) == 2
    assert len(drawn(line_chart("", "", {"a": {1: 0.0, 2: -1.0, 3: 2.0}}, log=True))[1]) == 1
    with pytest.raises(ValueError, match=r"A chart needs at least one finite value\. Received: none for 'Loss'\."):
        line_chart("Loss", "", {"a": {1: math.nan}})


@pytest.mark.parametrize(
    ("ticks", "texts"),
    [
        ([0, 1, 2], ["0", "1", "2"]),
        ([0, 0.5, 1], ["0.0", "0.5", "1.0"]),
        ([0.30000000000000004, 0.4], ["0.3", "0.4"]),
        ([0, 2000, 4000], ["0", "2,000", "4,000"]),
        ([0, 50_000, 100_000], ["0", "50k", "100k"]),
        ([0, 0.0002, 0.0004], ["0", "2e-4", "4e-4"]),
        ([0.5, 1, 2, 5, 10], ["0.5", "1", "2", "5", "10"]),
    ],
)
def test_ticks_as_text(ticks, texts):
    assert tick_texts(ticks) == texts
