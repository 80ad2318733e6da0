"""Trees as pictures."""

import html

from t2tlite.trees.tree import CLOSE, OPEN, TAG, Tree

# in pixels
FONT_SIZE = 13
GAP = 12  # between two columns
LEVEL = 40  # from a label's baseline to its children's
MARGIN = 10


def tree_svg(tree: Tree) -> str:
    """Draws a tree of any size and depth as an `<svg>` element.

    Every constituent owns the columns of its words, of which the first is at least as
    wide as its label, so nothing can overlap. Labels stand above the middle of these
    columns, a level lower for each step from the root. The words stand on one line at
    the bottom, and a line leads from each to its tag.

    The drawing has the colour of the text around it, and needs no style sheet, font or
    script. It is as wide as its words need, so the element around it should scroll.
    """
    right = 1.0 * MARGIN  # of the columns so far
    widest = 0.0  # of the labels above the next word
    # word, middle of its column, its tag's y
    leaves: list[tuple[str, float, int]] = []
    drawn = []
    # of each open constituent: the left of its columns, and the middle of each child
    unclosed: list[tuple[float, list[float]]] = [(right, [])]
    for kind, node in tree.walk():
        widest = max(widest, _text_width(node.label))
        if kind == OPEN:
            unclosed.append((right, []))
            continue
        left = right
        middles: list[float] = []
        if kind == CLOSE:
            left, middles = unclosed.pop()
        y = MARGIN + FONT_SIZE + LEVEL * (len(unclosed) - 1)
        if kind == TAG:
            right += max(widest, _text_width(node.word)) + GAP
            leaves.append((node.word, (left + right) / 2, y))
        widest = 0.0
        x = (left + right) / 2
        unclosed[-1][1].append(x)
        drawn.append(_text(node.label, x, y, ' opacity=".7"'))
        for middle in middles:
            drawn.append(_line(x, y, middle, y + LEVEL))
    bottom = LEVEL + max((y for _, _, y in leaves), default=0)
    for word, x, y in leaves:
        drawn.append(_text(word, x, bottom))
        drawn.append(_line(x, y, x, bottom))
    size = f'width="{right + MARGIN:.0f}" height="{bottom + MARGIN}"'
    title = html.escape(" ".join(tree.words()))
    return (
        f'<svg class="tree" xmlns="http://www.w3.org/2000/svg" role="img" {size}'
        f' font-family="system-ui,sans-serif" font-size="{FONT_SIZE}"'
        f' text-anchor="middle" fill="currentColor"><title>{title}</title>'
        f"{''.join(drawn)}</svg>"
    )


def _text(text: str, x: float, y: int, style: str = "") -> str:
    return f'<text{style} x="{x:.1f}" y="{y}">{html.escape(text)}</text>'


def _line(x: float, y: int, to_x: float, to_y: int) -> str:
    """A line from under a text to above another."""
    path = f"M{x:.1f} {y + 5}L{to_x:.1f} {to_y - FONT_SIZE}"
    return f'<path stroke="currentColor" stroke-opacity=".45" d="{path}"/>'


def _text_width(text: str) -> float:
    """Estimates the width of a text in a sans-serif font, in pixels, rather too great
    than too small.
    """
    ems = 0.0
    for character in text:
        is_wide = character.isupper() or character in "mw@%" or character > "\u1100"
        ems += 1.0 if is_wide else 0.6
    return ems * FONT_SIZE
