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

# In pixels.
FONT_SIZE = 13
GAP = 12  # between two columns
LEVEL = 40  # from a label's baseline to its children's
MARGIN = 10
WIDTHS = {**dict.fromkeys("iljtfrI.,:;'`!|()[] ", 0.36), **dict.fromkeys("mwMW@%", 0.92)}  # of the font size


@dataclasses.dataclass
class _Node:
    """A constituent or a word, and where it stands."""

    text: str
    is_word: bool
    level: int
    children: list[_Node] = dataclasses.field(default_factory=list)
    width: float = 0.0  # of its columns
    left: float = 0.0  # where they begin
    x: float = 0.0  # the middle of its text

    @property
    def y(self) -> int:
        """The baseline of its text."""
        return MARGIN + FONT_SIZE + self.level * LEVEL


def tree_svg(tree: Tree) -> str:
    """Draws a tree of any size and depth.

    Returns:
        An `<svg>` element, which takes its colour from the text around it and needs no style sheet, font or script. It
        is as wide as its words need, so the element around it should scroll.
    """
    nodes = _place(tree)
    texts, lines = [], []
    for node in nodes:
        style = "" if node.is_word else ' class="label"'
        texts.append(f'<text{style} x="{node.x:.1f}" y="{node.y}">{html.escape(node.text)}</text>')
        for child in node.children:
            style = ' stroke-dasharray="1 3"' if child.is_word else ""
            lines.append(f'<path{style} d="M{node.x:.1f} {node.y + 5}L{child.x:.1f} {child.y - FONT_SIZE}"/>')
    width, height = nodes[0].width + 2 * MARGIN, max(node.y for node in nodes) + MARGIN
    title = html.escape(" ".join(node.text for node in nodes if node.is_word) or tree.label)
    return (
        f'<svg class="tree" xmlns="http://www.w3.org/2000/svg" role="img" width="{width:.0f}" height="{height}" '
        f'viewBox="0 0 {width:.1f} {height}" font-family="system-ui,sans-serif" font-size="{FONT_SIZE}" '
        f'text-anchor="middle" fill="currentColor"><title>{title}</title>'
        "<style>.tree .label{fill:#1f5f99;fill:light-dark(#1f5f99,#8ec5f5)}</style>"
        f'<g stroke="currentColor" stroke-opacity=".45">{"".join(lines)}</g>{"".join(texts)}</svg>'
    )


def _place(tree: Tree) -> list[_Node]:
    """Every node in its place, parents before children and left before right; nothing here recurses."""
    nodes: list[_Node] = []
    waiting: list[tuple[Tree | str, _Node | None]] = [(tree, None)]
    while waiting:
        item, parent = waiting.pop()
        level = parent.level + 1 if parent else 0
        node = _Node(item, True, level) if isinstance(item, str) else _Node(item.label, False, level)
        nodes.append(node)
        if parent:
            parent.children.append(node)
        if isinstance(item, Tree):
            waiting += [(child, node) for child in reversed(item.children)]
    bottom = max(node.level for node in nodes)
    for node in reversed(nodes):  # widths from the words up
        node.level = bottom if node.is_word else node.level
        node.width = max(text_width(node.text) + GAP, sum(child.width for child in node.children))
    nodes[0].left = MARGIN
    for node in nodes:  # columns from the root down
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
    return nodes


def text_width(text: str) -> float:
    """About how many pixels a text takes in a sans-serif font: rather too many than too few."""
    ems = 0.0
    for c in text:
        usual = 1.0 if unicodedata.east_asian_width(c) in "WF" else 0.72 if c.isupper() else 0.6
        ems += 0.0 if unicodedata.combining(c) else WIDTHS.get(c, usual)
    return ems * FONT_SIZE
