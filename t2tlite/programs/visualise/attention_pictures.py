"""Attention as PNG or SVG: heat maps, and lines from a word to what it attends to.
Needs matplotlib.
"""

# H heads, T queries, S keys; sizes in inches unless a name says points

from __future__ import annotations

import functools
import math
import re
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np

from t2tlite.files.atomic_file import atomic_file
from t2tlite.programs.visualise.attention_weights import (
    KINDS,
    SPACE,
    Layer,
    PairAttention,
    kinds_with,
    printable,
    select,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.image import AxesImage

# Okabe and Ito's colours, which colour-blind readers tell apart; yellow darkened, black
# lightened.
COLOURS = (
    "#0072b2",
    "#e69f00",
    "#009e73",
    "#cc79a7",
    "#d55e00",
    "#56b4e9",
    "#a89b00",
    "#808080",
)
INK, FAINT, FRAME, MASKED = "#1d2125", "#6a737d", "#b8bec4", "#e2e4e6"
# Searched for each character, if they are installed.
FONTS = (
    "DejaVu Sans,Noto Sans,Noto Sans Arabic,Noto Sans Hebrew,Noto Sans Devanagari,Noto"
    " Sans Thai,Arial Unicode MS,Noto Sans CJK SC,Noto Sans CJK JP,Source Han Sans"
    " SC,WenQuanYi Micro Hei,PingFang SC,Hiragino Sans,Microsoft YaHei,Malgun Gothic"
).split(",")
MAX_INCHES = 200.0  # at 150 pixels per inch an image of 30,000 pixels
DOTS_PER_INCH = 150
LINE_HEIGHT = 0.21  # of a token in a column
FAINTEST = 0.01  # weights below it have no line


def heat_maps(
    attention: PairAttention,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> Figure:
    """A grid of heat maps: a row of panels for each kind and layer, a panel for each
    head.

    The arguments are those of `select`. Raises ValueError also for too large a picture;
    ImportError without matplotlib.
    """
    rows, heads = select(attention, kinds, layers, heads)
    longest = max(len(row.keys) for row in rows)
    cell = 0.2 if longest <= 20 else 0.15 if longest <= 40 else 0.12
    points = cell * 72 * 0.62
    left = 0.3 + max(_width(row.queries, points) for row in rows)
    panel = longest * cell + 0.25
    # headings and column labels
    tops = [0.75 + _width(row.keys, points) for row in rows]
    heights = [len(row.queries) * cell for row in rows]
    sheet = _Sheet(
        left + len(heads) * panel,
        1.5 + sum(tops) + sum(heights) + 0.2 * len(rows),
        attention,
    )
    y = 0.75
    for row, top, height in zip(rows, tops, heights, strict=True):
        sheet.text(0.2, y + 0.15, row.title, fontsize=11, fontweight="bold", color=INK)
        sheet.wrapped(0.2, y + 0.36, row.note)
        for column, head in enumerate(heads):
            axes = sheet.axes(
                left + column * panel, y + top, len(row.keys) * cell, height
            )
            image = _heat_map(axes, row, head, points)
            axes.set_xlabel(f"head {head}", fontsize=9, color=INK, labelpad=3)
            if column:
                axes.set_yticklabels([])
        y += top + height + 0.2
    place = sheet.axes(0.2, sheet.height - 0.52, 2.4, 0.1)
    bar = sheet.figure.colorbar(
        image, cax=place, orientation="horizontal", ticks=[0, 0.01, 0.1, 0.25, 0.5, 1]
    )
    bar.ax.set_xticklabels(["0", ".01", ".1", ".25", ".5", "1"], fontsize=7, color=INK)
    bar.outline.set_edgecolor(FRAME)
    note = (
        "Weight; colour by its square root. Grey: masked, not yet read. A dot before a"
        " token: a space."
    )
    sheet.wrapped(2.8, sheet.height - 0.53, note)
    return sheet.figure


def word_lines(
    attention: PairAttention,
    word: str,
    kinds: Sequence[str] = (),
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> Figure:
    """Lines from a word to what it attends to, a colour for each head, as in the
    paper's Figures 3 to 5.

    `word` is a word of the source (encoder) or of the target (decoder, cross), or a
    part of one, at its first occurrence. The kinds are by default those whose queries
    contain it. Raises as `heat_maps`.
    """
    columns, heads = select(
        attention, kinds or kinds_with(attention, word), layers, heads
    )
    positions = [attention.word_positions(column.kind, word) for column in columns]
    between = 2.2 + 0.06 * len(heads) + 0.12  # lines and bars
    lefts = [_width(column.queries, 9.5) for column in columns]
    rights = [_width(column.keys, 9.5) for column in columns]
    widths = [
        max(left + between + right + 0.3, 3.6)
        for left, right in zip(lefts, rights, strict=True)
    ]
    tokens = max(max(len(column.queries), len(column.keys)) for column in columns)
    width, lines = max(sum(widths) + 0.3, _Sheet.NARROWEST), tokens * LINE_HEIGHT + 0.1
    legend_columns = int((width - 0.4) / 0.65)
    sheet = _Sheet(
        width, 1.6 + lines + 0.2 * math.ceil(len(heads) / legend_columns), attention
    )
    x = 0.2
    for column, at, left, panel in zip(columns, positions, lefts, widths, strict=True):
        sheet.text(x, 0.85, column.title, fontsize=10.5, fontweight="bold", color=INK)
        axes = sheet.axes(x, 1.2, panel, lines)
        axes.set(xlim=(0, panel), ylim=(lines, 0))
        axes.axis("off")
        _token_columns(axes, column, at, heads, left, left + between)
        x += panel
    for i, head in enumerate(heads):
        row, place = divmod(i, legend_columns)
        x, y = 0.2 + 0.65 * place, 1.36 + lines + 0.2 * row
        sheet.text(x, y, "■", color=_colour(head))
        sheet.text(x + 0.15, y, f"head {head}", color=INK)
    note = (
        "Stronger lines: larger weights (below .01 none). A target token is at the"
        " position that predicts it."
    )
    sheet.text(0.2, sheet.height - 0.1, note, va="baseline")
    return sheet.figure


def save_picture(figure: Figure, path: str | Path) -> str:
    """Writes a figure as PNG or SVG, by the ending of the path, and makes its folder.

    In an SVG, words are text, shown in the fonts of the viewer's machine. Returns the
    characters that no font of this machine has, which a PNG shows as boxes; none for an
    SVG.
    """
    ending = picture_ending(path)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    style = _matplotlib().rc_context({"svg.fonttype": "none"})
    with (
        atomic_file(path) as file,
        style,
        warnings.catch_warnings(record=True) as caught,
    ):
        warnings.simplefilter("always")
        figure.savefig(file, format=ending, dpi=DOTS_PER_INCH, facecolor="white")
    if ending == "svg":
        return ""
    glyphs = [re.match(r"Glyph (\d+) ", str(warning.message)) for warning in caught]
    return "".join(sorted({chr(int(glyph[1])) for glyph in glyphs if glyph}))


def picture_ending(path: str | Path) -> str:
    """`png` or `svg`; raises ValueError if the file's name has another ending."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ("png", "svg"):
        raise ValueError(
            "A picture's file name must end in .png or .svg (a page's in .html)."
            f" Received: {path}."
        )
    return ending


class _Sheet:
    """A figure with the sentences as its heading, independent of pyplot. Positions are
    from the top left.
    """

    NARROWEST = 6.0

    def __init__(self, width: float, height: float, attention: PairAttention) -> None:
        self.width, self.height = max(width, self.NARROWEST), height
        if max(width, height) > MAX_INCHES:
            raise ValueError(
                f"A picture can be {MAX_INCHES:.0f} inches wide and high. Received: one"
                f" of {width:.0f} x {height:.0f}. Choose fewer layers, heads or kinds,"
                " or use the page, which takes longer sentences."
            )
        self.figure: Figure = _matplotlib().figure.Figure(
            figsize=(self.width, self.height)
        )
        for y, name, text in (
            (0.15, "Source", attention.source),
            (0.35, "Target", attention.target),
        ):
            self.text(0.2, y, name, fontsize=9)
            shown, letters = printable(text), _letters(self.width - 1.0, 9)
            self.text(
                0.8,
                y,
                shown if len(shown) <= letters else f"{shown[: letters - 1]}…",
                fontsize=9,
                color=INK,
            )

    def axes(self, x: float, y: float, width: float, height: float) -> Axes:
        """A rectangle to draw in; x and y are its upper left corner."""
        bottom = 1 - (y + height) / self.height
        return self.figure.add_axes(
            (x / self.width, bottom, width / self.width, height / self.height)
        )

    def text(self, x: float, y: float, text: str, **style: Any) -> None:
        """Text below y, small and faint unless `style` says otherwise."""
        style = {"fontsize": 7.5, "color": FAINT, "va": "top", **style}
        self.figure.text(x / self.width, 1 - y / self.height, text, **_plain(), **style)

    def wrapped(self, x: float, y: float, text: str) -> None:
        """A note that ends within the figure."""
        self.text(x, y, textwrap.fill(text, _letters(self.width - x - 0.2, 7.5)))


def _matplotlib() -> ModuleType:
    """The library, imported when the first picture is drawn; ImportError if it is not
    installed.
    """
    try:
        import matplotlib.figure  # and with it the modules used here
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib, which is not installed. Install it with pip"
            " install 't2tlite[plots]', or make the HTML page, which needs nothing."
        ) from error
    return matplotlib


@functools.cache
def _plain() -> dict[str, Any]:
    """The style of literal text: `$` starts no formula, and each character is in a font
    that has it, if any.
    """
    installed = set(_matplotlib().font_manager.get_font_names())
    return {
        "parse_math": False,
        "fontfamily": [name for name in FONTS if name in installed],
    }


def _label(piece: str) -> str:
    """A piece as a label, with a dot for the space before a word."""
    return printable(piece).replace(SPACE, "·")


def _width(pieces: Sequence[str], points: float) -> float:
    """Room for the longest label; CJK characters are as wide as high."""
    widths = [0.0]
    for piece in pieces:
        label = _label(piece)
        wide = sum(1 for character in label if character >= "\u1100")
        widths.append(wide + 0.62 * (len(label) - wide))
    return max(widths) * points / 72 + 0.1


def _letters(width: float, points: float) -> int:
    """About how many letters fit into a width."""
    return int(width * 72 / (points * 0.58))


def _colour(head: int) -> str:
    return COLOURS[(head - 1) % len(COLOURS)]


def _heat_map(axes: Axes, layer: Layer, head: int, points: float) -> AxesImage:
    """One panel; masked positions of the decoder are grey."""
    weights = layer.weights[head - 1]  # [T, S]
    masked = (
        np.triu(np.ones(weights.shape, bool), 1)
        if layer.kind == "decoder"
        else np.zeros(weights.shape, bool)
    )
    image = axes.imshow(
        np.ma.array(weights, mask=masked),
        aspect="auto",
        interpolation="nearest",
        cmap=_matplotlib().colormaps["Blues"].with_extremes(bad=MASKED),
        norm=_matplotlib().colors.PowerNorm(0.5, 0, 1),
    )
    style = {"fontsize": points, "color": INK, **_plain()}
    axes.set_xticks(
        range(len(layer.keys)),
        [_label(piece) for piece in layer.keys],
        rotation=90,
        **style,
    )
    axes.set_yticks(
        range(len(layer.queries)), [_label(piece) for piece in layer.queries], **style
    )
    axes.tick_params(length=0, pad=2, labeltop=True, labelbottom=False)
    for edge in axes.spines.values():
        edge.set_color(FRAME)
    return image


def _token_columns(
    axes: Axes,
    layer: Layer,
    positions: Sequence[int],
    heads: Sequence[int],
    left: float,
    right: float,
) -> None:
    """Queries that end at `left`, keys that begin at `right`, lines between them, and
    bars beside the keys.
    """
    bars = right - 0.06 * len(heads) - 0.12
    rows = layer.weights[:, list(positions)]  # [H, the word's pieces, S]
    style = {"va": "center", "fontsize": 9.5, **_plain()}
    for at, piece in enumerate(layer.queries):
        font_weight, colour = ("bold", INK) if at in positions else ("normal", FAINT)
        height = (at + 0.5) * LINE_HEIGHT
        axes.text(
            left,
            height,
            _label(piece),
            ha="right",
            fontweight=font_weight,
            color=colour,
            **style,
        )
    strongest = rows[[head - 1 for head in heads]].max(axis=(0, 1))  # [S]
    for at, piece in enumerate(layer.keys):
        colour = INK if strongest[at] >= 0.1 else FAINT
        axes.text(right, (at + 0.5) * LINE_HEIGHT, _label(piece), color=colour, **style)
    for i, head in enumerate(heads):
        shift = (i - (len(heads) - 1) / 2) * min(0.018, 0.14 / len(heads))
        for query, row in zip(positions, rows[head - 1], strict=True):
            for key in map(int, np.flatnonzero(row >= FAINTEST)):
                weight = float(row[key])
                y = [
                    (query + 0.5) * LINE_HEIGHT + shift,
                    (key + 0.5) * LINE_HEIGHT + shift,
                ]
                strength = {"alpha": weight**0.5, "linewidth": 0.7 + 2.3 * weight}
                axes.plot(
                    [left + 0.08, bars - 0.02], y, color=_colour(head), **strength
                )
        for key, weight in enumerate(map(float, rows[head - 1].max(axis=0))):
            corner = (bars + 0.02 + 0.06 * i, (key + 0.18) * LINE_HEIGHT)
            bar = {"color": _colour(head), "alpha": weight**0.5, "linewidth": 0}
            axes.add_patch(
                _matplotlib().patches.Rectangle(corner, 0.05, 0.64 * LINE_HEIGHT, **bar)
            )
