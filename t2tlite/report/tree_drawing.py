"""A constituency tree as an SVG drawing.

Every constituent owns the columns of its words, so nothing can overlap: labels stand above the middle of their
children, a level lower for each step from the root. The words stand in one line at the bottom, where they can be read
as a sentence; a dotted line leads from each to its tag.
"""

from __future__ import annotations

import dataclasses
import html
import unicodedata

from t2tlite.trees.tree import Tree

# All in pixels.
FONT_SIZE = 13
GAP = 12  # between two columns
LEVEL = 40  # from a label's baseline to its children's
MARGIN = 10
NARROW, WIDE = "iljtfrI.,:;'`!|()[] ", "mwMW@%"

STYLE = (
    ".tree text{font-family:system-ui,sans-serif;font-size:13px;text-anchor:middle;fill:currentColor}"
    ".tree text.label{fill:#1f5f99;fill:light-dark(#1f5f99,#8ec5f5)}"
    ".tree path{fill:none;stroke:currentColor;stroke-opacity:.45}"
    ".tree path.word{stroke-dasharray:1 3}"
)


@dataclasses.dataclass
class _Node:
    """A constituent or a word, and where it stands."""

    text: str
    depth: int
    is_word: bool
    children: list[_Node] = dataclasses.field(default_factory=list)
    width: float = 0.0  # of its columns
    left: float = 0.0  # where they begin
    x: float = 0.0  # the middle of its text


def tree_svg(tree: Tree) -> str:
    """Draws a tree.

    The drawing takes its colour from the text around it and needs no style sheet, font or script. It is as wide as its
    words need; put it into an element that scrolls.

    Args:
        tree: of any size and depth.

    Returns:
        An `<svg>` element.
    """
    nodes = _nodes(tree)
    _place(nodes)
    deepest = max(node.depth for node in nodes)
    bottom = max([deepest, *(node.depth for node in nodes if node.is_word)])
    words = [node for node in nodes if node.is_word]
    width = nodes[0].width + 2 * MARGIN
    height = bottom * LEVEL + FONT_SIZE + 2 * MARGIN
    title = " ".join(node.text for node in words) or nodes[0].text
    lines, labels = [], []
    for node in nodes:
        y = _baseline(bottom if node.is_word else node.depth)
        kind = "" if node.is_word else ' class="label"'
        labels.append(f'<text{kind} x="{node.x:.1f}" y="{y}">{html.escape(node.text)}</text>')
        for child in node.children:
            end = _baseline(bottom if child.is_word else child.depth) - FONT_SIZE
            kind = ' class="word"' if child.is_word else ""
            lines.append(f'<path{kind} d="M{node.x:.1f} {y + 5}L{child.x:.1f} {end}"/>')
    return (
        f'<svg class="tree" xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.1f} {height}"><title>{html.escape(title)}</title><style>{STYLE}</style>'
        f"{''.join(lines)}{''.join(labels)}</svg>"
    )


def _nodes(tree: Tree) -> list[_Node]:
    """Every node, parents before children and left before right; the root first."""
    root = _Node(tree.label, 0, False)
    found: list[_Node] = []
    waiting: list[tuple[Tree | str, _Node]] = [(tree, root)]
    while waiting:  # not by recursion, which Python limits to some hundred levels
        item, node = waiting.pop()
        found.append(node)
        if isinstance(item, str):
            continue
        for child in item.children:
            text = child if isinstance(child, str) else child.label
            node.children.append(_Node(text, node.depth + 1, isinstance(child, str)))
        waiting += reversed(list(zip(item.children, node.children, strict=True)))
    return found


def _place(nodes: list[_Node]) -> None:
    """Gives each node its columns: widths from the words up, positions from the root down."""
    for node in reversed(nodes):
        below = sum(child.width for child in node.children)
        node.width = max(text_width(node.text) + GAP, below)
    nodes[0].left = MARGIN
    for node in nodes:
        left = node.left + (node.width - sum(child.width for child in node.children)) / 2
        for child in node.children:
            child.left = left
            left += child.width
    for node in reversed(nodes):
        node.x = node.left + node.width / 2
        if node.children:
            inside = (node.width - text_width(node.text) - GAP) / 2  # how far the text may stand from the middle
            middle = (node.children[0].x + node.children[-1].x) / 2
            node.x = min(max(middle, node.x - inside), node.x + inside)


def _baseline(level: int) -> int:
    return MARGIN + FONT_SIZE + level * LEVEL


def text_width(text: str) -> float:
    """About how many pixels a text takes in a sans-serif font: rather too many than too few."""
    ems = 0.0
    for character in text:
        if unicodedata.combining(character):
            continue
        if unicodedata.east_asian_width(character) in "WF":
            ems += 1.0
        elif character in NARROW:
            ems += 0.36
        elif character.isupper() or character in WIDE:
            ems += 0.92 if character in WIDE else 0.72
        else:
            ems += 0.6
    return ems * FONT_SIZE
