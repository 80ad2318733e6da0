"""A constituency tree as an SVG drawing.

Every constituent owns the columns of its words, so nothing can overlap. Labels stand
above the middle of these columns, a level lower for each step from the root. The words
stand on one line at the bottom, and a dotted line leads from each to its tag.
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
# In ems, which are font sizes.
WIDTHS = {
    **dict.fromkeys("iljtfrI.,:;'`!|()[] ", 0.36),
    **dict.fromkeys("mwMW@%", 0.92),
}


@dataclasses.dataclass
class _Node:
    """A constituent or a word, and its place in the drawing."""

    item: Tree | str
    y: int  # the baseline of its text
    children: list[_Node] = dataclasses.field(default_factory=list)
    width: float = 0.0  # of its columns
    x: float = 0.0  # the middle of its columns

    def __post_init__(self) -> None:
        self.is_word = isinstance(self.item, str)
        self.text = self.item if isinstance(self.item, str) else self.item.label

    @property
    def children_width(self) -> float:
        return sum(child.width for child in self.children)


def tree_svg(tree: Tree) -> str:
    """Draws a tree of any size and depth as an `<svg>` element.

    It has the colour of the text around it, and needs no style sheet, font or script.
    It is as wide as its words need, so the element around it should scroll.
    """
    nodes = _place(tree)
    texts = []
    lines = []
    for node in nodes:
        style = "" if node.is_word else ' class="label"'
        texts.append(
            f'<text{style} x="{node.x:.1f}"'
            f' y="{node.y}">{html.escape(node.text)}</text>'
        )
        for child in node.children:
            style = ' stroke-dasharray="1 3"' if child.is_word else ""
            lines.append(
                f'<path{style} d="M{node.x:.1f} {node.y + 5}L{child.x:.1f}'
                f' {child.y - FONT_SIZE}"/>'
            )
    width = nodes[0].width + 2 * MARGIN
    height = max(node.y for node in nodes) + MARGIN
    words = [node.text for node in nodes if node.is_word]
    title = html.escape(" ".join(words) or tree.label)
    return (
        '<svg class="tree" xmlns="http://www.w3.org/2000/svg" role="img"'
        f' width="{width:.0f}" height="{height}" viewBox="0 0 {width:.1f} {height}"'
        f' font-family="system-ui,sans-serif" font-size="{FONT_SIZE}"'
        f' text-anchor="middle" fill="currentColor"><title>{title}</title><style>.tree'
        " .label{fill:#1f5f99;fill:light-dark(#1f5f99,#8ec5f5)}</style><g"
        ' stroke="currentColor"'
        f' stroke-opacity=".45">{"".join(lines)}</g>{"".join(texts)}</svg>'
    )


def _place(tree: Tree) -> list[_Node]:
    """Places every node, without recursion. Parents come before children, and left
    before right.
    """
    nodes = []
    waiting = [_Node(tree, y=MARGIN + FONT_SIZE)]
    while waiting:
        node = waiting.pop()
        nodes.append(node)
        if isinstance(node.item, Tree):
            for child in node.item.children:
                node.children.append(_Node(child, node.y + LEVEL))
            waiting += reversed(node.children)
    bottom = max(node.y for node in nodes)
    for node in reversed(nodes):  # widths from the words up
        if node.is_word:
            node.y = bottom
        node.width = max(text_width(node.text) + GAP, node.children_width)
    nodes[0].x = MARGIN + nodes[0].width / 2
    for node in nodes:  # columns from the root down
        right = node.x - node.children_width / 2
        for placed in node.children:
            right += placed.width
            placed.x = right - placed.width / 2
    return nodes


def text_width(text: str) -> float:
    """Estimates the width of a text in a sans-serif font, in pixels, rather too great
    than too small.
    """
    ems = 0.0
    for character in text:
        if character in WIDTHS:
            ems += WIDTHS[character]
        elif unicodedata.east_asian_width(character) in "WF":
            ems += 1.0
        elif not unicodedata.combining(character):
            ems += 0.72 if character.isupper() else 0.6
    return ems * FONT_SIZE
