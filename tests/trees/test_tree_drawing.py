"""Drawings of trees: what stands where, in numbers and in a real browser."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest
from chromium import dump_dom

from t2tlite.trees.drawing import tree_svg
from t2tlite.trees.tree import Tree, parse_tree

SVG = "{http://www.w3.org/2000/svg}"
FOX = (
    "(TOP (S (NP (DT The) (JJ quick) (NN fox)) (VP (VBD jumped) (PP (IN over) (NP (DT"
    " the) (NN dog)))) (. .)))"
)
# Wide labels over narrow words, and the other way round.
UNEVEN = (
    "(TOP (WHADVPWHADVPWHADVP (X i) (Y (Z internationalisation)) (X i)) (WWWWWWWWWW (."
    " .)) (S (W (NN 漢字漢字漢字))))"
)


def texts(svg: str) -> list[tuple[str, float, float]]:
    """(text, x, y) of every label and word, in the order of the drawing."""
    return [
        (element.text or "", float(element.attrib["x"]), float(element.attrib["y"]))
        for element in ElementTree.fromstring(svg).iter(f"{SVG}text")
    ]


def test_words_stand_in_one_line_and_labels_above_their_middle():
    placed = texts(tree_svg(parse_tree(FOX)))
    x_of = {text: x for text, x, _ in placed}
    y_of = {text: y for text, _, y in placed}
    words = ["The", "quick", "fox", "jumped", "over", "the", "dog"]
    assert sorted(words, key=x_of.get) == words
    assert {y_of[word] for word in words} == {max(y_of.values())}
    nodes = ["TOP", "S", "VP", "PP", "IN", "over"]
    assert sorted(nodes, key=y_of.get) == nodes
    assert x_of["VBD"] == pytest.approx(x_of["jumped"], abs=0.11)
    assert x_of["VBD"] < x_of["VP"] < x_of["PP"]


def test_text_is_escaped():
    svg = tree_svg(Tree("TOP", (Tree("A&B", ("<script>alert('x')</script>",)),)))
    assert "<script>" not in svg
    shown = [text for text, _, _ in texts(svg)]
    assert shown == ["A&B", "TOP", "<script>alert('x')</script>"]


def test_five_hundred_levels():
    tree: Tree = Tree("NN", ("end",))
    for i in range(500):
        tree = Tree("NP", (Tree("DT", ("the",)), tree) if i % 100 == 0 else (tree,))
    placed = texts(tree_svg(tree))
    assert len(placed) == 500 + 2 + 5 * 2
    assert len({y for _, _, y in placed}) == 502


@pytest.mark.parametrize("text", [FOX, UNEVEN], ids=["fox", "uneven"])
def test_no_two_texts_touch_in_a_browser(text, tmp_path):
    script = (
        "const boxes = [...document.querySelectorAll('text')].map(t => { const b ="
        " t.getBoundingClientRect();return [t.textContent, b.left, b.right, b.top,"
        " b.bottom]});const s ="
        " document.querySelector('svg').getBoundingClientRect();document.querySelector('pre').textContent"
        " = JSON.stringify([[s.left, s.right, s.top, s.bottom], boxes])"
    )
    page = tmp_path / "tree.html"
    page.write_text(
        f'<meta charset="utf-8">{tree_svg(parse_tree(text))}<pre></pre><script>{script}</script>',
        encoding="utf-8",
    )
    match = re.search(
        r"<pre>(.*?)</pre>", dump_dom(page, tmp_path / "profile"), re.DOTALL
    )
    (left, right, top, bottom), boxes = json.loads(match[1])
    assert len(boxes) >= 14
    for i, (label, x1, x2, y1, y2) in enumerate(boxes):
        assert left <= x1 < x2 <= right, label
        assert top <= y1 < y2 <= bottom, label
        for other, other_x1, other_x2, other_y1, other_y2 in boxes[:i]:
            apart = x2 < other_x1 or other_x2 < x1 or y2 < other_y1 or other_y2 < y1
            assert apart, f"{label} and {other}"
