"""Attention as PNG or SVG: heat maps, and lines from a word to what it looks at. Needs matplotlib."""

# H heads, T queries, S keys; sizes in inches unless a name says points

from __future__ import annotations

import io
import math
import re
import textwrap
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from t2tlite.files.atomic_file import atomic_file
from t2tlite.visualise.attention import (
    KINDS,
    NOTES,
    SPACE,
    TITLES,
    Attention,
    check_heads,
    check_kinds,
    check_layers,
    default_layer,
    kinds_with,
    printable,
    word_positions,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers tell apart; yellow darkened, black lightened.
COLOURS = ("#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#a89b00", "#808080")
INK, FAINT, HIDDEN = "#1d2125", "#6a737d", "#e2e4e6"
# Looked through for each character, as far as they are installed.
FONTS = (
    "DejaVu Sans",
    *(
        "Noto Sans",
        "Noto Sans Arabic",
        "Noto Sans Hebrew",
        "Noto Sans Devanagari",
        "Noto Sans Thai",
        "Arial Unicode MS",
    ),
    *("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans SC", "WenQuanYi Micro Hei"),
    *("PingFang SC", "Hiragino Sans", "Microsoft YaHei", "Malgun Gothic", "Arial Unicode MS"),
)
LARGEST = 200.0  # inches; at 150 pixels per inch an image of 30,000 pixels
DOTS_PER_INCH = 150
LINE_HEIGHT = 0.21  # of a token in a column
FAINTEST = 0.01  # weights below it get no line


def heat_maps(
    attention: Attention,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Figure:
    """A grid of heat maps: a row of panels for each kind and layer, a panel for each head.

    Args:
        attention: what to draw.
        kinds: of attention.
        layers: counted from 1; by default the last but one of each kind.
        heads: counted from 1; by default all.

    Raises:
        ValueError: an unknown kind, layer or head, or a picture that would be too large.
        ImportError: matplotlib is missing.
    """
    bands = _bands(attention, kinds, layers)
    numbers = check_heads(attention, kinds[0], heads)
    longest = max(len(attention.keys(kind)) for kind, _ in bands)
    cell = 0.2 if longest <= 20 else 0.15 if longest <= 40 else 0.12
    points = cell * 72 * 0.62
    left = 0.3 + max(_width(attention.queries(kind), points) for kind, _ in bands)
    above = [0.75 + _width(attention.keys(kind), points) for kind, _ in bands]  # headings and column labels
    panel = longest * cell
    heights = [top + len(attention.queries(kind)) * cell for top, (kind, _) in zip(above, bands, strict=True)]
    width = max(left + len(numbers) * (panel + 0.25), 6.0)
    header = 0.75
    height = header + sum(heights) + 0.2 * len(bands) + 0.75
    figure = _figure(width, height)
    _heading(figure, attention, width, height)
    y = height - header
    for (kind, layer), top, band in zip(bands, above, heights, strict=True):
        title = f"{TITLES[kind]}, layer {layer} of {len(attention.layers(kind))}"
        _text(figure, 0.2 / width, (y - 0.15) / height, title, fontsize=11, fontweight="bold", va="top")
        note = textwrap.fill(NOTES[kind], _letters(width - 0.4, 7.5))
        _text(figure, 0.2 / width, (y - 0.36) / height, note, fontsize=7.5, color=FAINT, va="top")
        for column, head in enumerate(numbers):
            weights = attention.layers(kind)[layer - 1][head - 1]  # [T, S]
            box = (left + column * (panel + 0.25), y - band, weights.shape[1] * cell, band - top)
            axes = figure.add_axes((box[0] / width, box[1] / height, box[2] / width, box[3] / height))
            image = _heat_map(axes, weights, attention.keys(kind), attention.queries(kind), points, kind == "decoder")
            axes.set_xlabel(f"head {head}", fontsize=9, color=INK, labelpad=3)
            if column:
                axes.set_yticklabels([])
        y -= band + 0.2
    _colour_bar(figure, image, width, height)
    return figure


def word_lines(
    attention: Attention,
    word: str,
    kinds: Sequence[str] | None = None,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> Figure:
    """Lines from a word to what it looks at, a colour for each head, as in the paper's Figures 3 to 5.

    Args:
        attention: what to draw.
        word: a word of the source (encoder) or of the target (decoder, cross), or a part of one; at its first place.
        kinds: of attention; by default those whose sentence holds the word.
        layers: counted from 1; by default the last but one.
        heads: counted from 1; by default all.

    Raises:
        ValueError: the sentence does not hold the word, an unknown kind, layer or head, or a picture too large.
        ImportError: matplotlib is missing.
    """
    kinds = kinds or kinds_with(attention, word)
    bands = _bands(attention, kinds, layers)
    numbers = check_heads(attention, kinds[0], heads)
    positions = {kind: word_positions(attention.queries(kind), word) for kind in kinds}
    points, gap = 9.5, 2.2
    bars = 0.06 * len(numbers) + 0.12
    sides = [(_width(attention.queries(kind), points), _width(attention.keys(kind), points)) for kind, _ in bands]
    widths = [max(left + gap + bars + right + 0.3, 3.6) for left, right in sides]
    tokens = max(max(len(attention.queries(kind)), len(attention.keys(kind))) for kind, _ in bands)
    width, lines = max(sum(widths) + 0.3, 6.0), tokens * LINE_HEIGHT + 0.1
    bottom = 0.4 + 0.2 * math.ceil(len(numbers) / _legend_columns(width))
    height = 1.2 + lines + bottom
    figure = _figure(width, height)
    _heading(figure, attention, width, height)
    x = 0.2
    for (kind, layer), (left, _), panel in zip(bands, sides, widths, strict=True):
        axes = figure.add_axes((x / width, bottom / height, panel / width, lines / height))
        axes.set_xlim(0, panel)
        axes.set_ylim(lines, 0)
        axes.axis("off")
        title = f"{TITLES[kind]}, layer {layer} of {len(attention.layers(kind))}"
        _text(figure, x / width, (height - 0.85) / height, title, fontsize=10.5, fontweight="bold", va="top")
        weights = attention.layers(kind)[layer - 1]
        _columns(axes, weights, attention, kind, positions[kind], numbers, (left, gap, bars, points))
        x += panel
    _head_legend(figure, numbers, width, height, bottom - 0.28)
    return figure


def save_picture(figure: Figure, path: str | Path) -> str:
    """Writes a figure as PNG or SVG, by the file's ending, and makes the folder it lies in.

    In an SVG, words are text: whoever opens it shows them with fonts of their own, in any script. In a PNG they are
    drawn with the fonts of this machine.

    Returns:
        Characters that no font here has, which a PNG shows as boxes; empty for an SVG.

    Raises:
        ValueError: another ending.
        OSError: the file cannot be written.
    """
    ending = picture_ending(path)
    import matplotlib

    content = io.BytesIO()
    with matplotlib.rc_context({"svg.fonttype": "none"}), warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        figure.savefig(content, format=ending, dpi=DOTS_PER_INCH, facecolor="white")
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(content.getvalue())
    missing = {chr(int(found[1])) for w in told if (found := re.match(r"Glyph (\d+) ", str(w.message)))}
    return "" if ending == "svg" else "".join(sorted(missing))


def picture_ending(path: str | Path) -> str:
    """`png` or `svg`.

    Raises:
        ValueError: the file's name ends otherwise.
    """
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in ("png", "svg"):
        raise ValueError(f"A picture's file name must end in .png or .svg. Received: {path}.")
    return ending


def _bands(attention: Attention, kinds: Sequence[str], layers: Sequence[int] | None) -> list[tuple[str, int]]:
    """Each kind with each of its layers, checked."""
    check_kinds(kinds)
    bands = [(kind, layer) for kind in kinds for layer in layers or [default_layer(attention, kind)]]
    for kind, layer in bands:
        check_layers(attention, kind, [layer])
    return bands


def _figure(width: float, height: float) -> Figure:
    """An empty figure, apart from pyplot and its state."""
    if max(width, height) > LARGEST:
        raise ValueError(
            f"A picture can be {LARGEST:.0f} inches wide and high. Received: one of {width:.0f} x {height:.0f}. Choose "
            "fewer layers, heads or kinds, or use the page, which takes longer sentences."
        )
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError(
            "Pictures need matplotlib, which is not installed. Install it with pip install 't2tlite[plots]', or make "
            "the HTML page, which needs nothing."
        ) from error
    return Figure(figsize=(width, height))


def _fonts() -> list[str]:
    """Fonts to look for a character in, one after the other."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return [name for name in FONTS if name in installed]


def _label(piece: str) -> str:
    """A piece as a label: a dot stands for the space before a word."""
    return printable(piece).replace(SPACE, "·")


def _width(pieces: Sequence[str], points: float) -> float:
    """Room for the longest label; CJK characters are as wide as high."""
    wide = max(sum(1.0 if c >= "\u1100" else 0.62 for c in _label(piece)) for piece in pieces)
    return wide * points / 72 + 0.1


def _letters(width: float, points: float) -> int:
    """About how many letters fit into a width."""
    return int(width * 72 / (points * 0.58))


def _text(where: Any, x: float, y: float, text: str, **style: Any) -> None:
    """Text on a figure or axes as it is: `$` starts no formula."""
    where.text(x, y, text, parse_math=False, fontfamily=_fonts(), **{"color": INK, **style})


def _heading(figure: Figure, attention: Attention, width: float, height: float) -> None:
    letters = _letters(width - 1.0, 9)
    for name, text, y in (("Source", attention.source, 0.15), ("Target", attention.target, 0.35)):
        shown = printable(text)
        shown = shown if len(shown) <= letters else shown[: letters - 1] + "…"
        _text(figure, 0.2 / width, 1 - y / height, name, fontsize=9, va="top", color=FAINT)
        _text(figure, 0.8 / width, 1 - y / height, shown, fontsize=9, va="top")


def _heat_map(
    axes: Any, weights: np.ndarray, keys: Sequence[str], queries: Sequence[str], points: float, causal: bool
) -> Any:
    """One panel; what a decoder cannot see is grey."""
    import matplotlib
    from matplotlib.colors import PowerNorm

    hidden = np.triu(np.ones(weights.shape, bool), 1) if causal else np.zeros(weights.shape, bool)
    colours = matplotlib.colormaps["Blues"].with_extremes(bad=HIDDEN)
    image = axes.imshow(
        np.ma.array(weights, mask=hidden),
        cmap=colours,
        norm=PowerNorm(0.5, 0, 1),
        aspect="auto",
        interpolation="nearest",
    )
    style = {"fontsize": points, "parse_math": False, "fontfamily": _fonts(), "color": INK}
    axes.set_xticks(range(len(keys)), [_label(piece) for piece in keys], rotation=90, **style)
    axes.set_yticks(range(len(queries)), [_label(piece) for piece in queries], **style)
    axes.tick_params(length=0, pad=2, labeltop=True, labelbottom=False)
    for edge in axes.spines.values():
        edge.set_color("#b8bec4")
    return image


def _colour_bar(figure: Figure, image: Any, width: float, height: float) -> None:
    axes = figure.add_axes((0.2 / width, 0.42 / height, 2.4 / width, 0.1 / height))
    bar = figure.colorbar(image, cax=axes, orientation="horizontal", ticks=[0, 0.01, 0.1, 0.25, 0.5, 1])
    bar.ax.set_xticklabels(["0", ".01", ".1", ".25", ".5", "1"], fontsize=7, color=INK)
    bar.outline.set_edgecolor("#b8bec4")
    text = "Weight; colour by its square root. Grey: not yet read. A dot before a token: a space."
    text = textwrap.fill(text, _letters(width - 3.0, 7.5))
    _text(figure, 2.8 / width, 0.53 / height, text, fontsize=7.5, color=FAINT, va="top")


def _columns(
    axes: Any,
    weights: np.ndarray,
    attention: Attention,
    kind: str,
    positions: Sequence[int],
    heads: Sequence[int],
    sizes: tuple[float, float, float, float],
) -> None:
    """Two columns of tokens, the lines between them, and a bar for each head beside each key."""
    from matplotlib.patches import Rectangle

    left, gap, bars, points = sizes
    for at, piece in enumerate(attention.queries(kind)):
        style: dict[str, Any] = {"fontweight": "bold"} if at in positions else {"color": FAINT}
        _text(axes, left, (at + 0.5) * LINE_HEIGHT, _label(piece), ha="right", va="center", fontsize=points, **style)
    looked_at = weights[[head - 1 for head in heads]][:, list(positions)].max(axis=(0, 1))  # [S]
    for at, piece in enumerate(attention.keys(kind)):
        colour = INK if looked_at[at] >= 0.1 else FAINT
        x = left + gap + bars
        _text(axes, x, (at + 0.5) * LINE_HEIGHT, _label(piece), va="center", fontsize=points, color=colour)
    for i, head in enumerate(heads):
        rows = weights[head - 1][list(positions)]  # [word's pieces, S]
        colour = COLOURS[(head - 1) % len(COLOURS)]
        shift = (i - (len(heads) - 1) / 2) * min(0.018, 0.14 / len(heads))
        for query, row in zip(positions, rows, strict=True):
            for key in map(int, np.flatnonzero(row >= FAINTEST)):
                y = [(query + 0.5) * LINE_HEIGHT + shift, (key + 0.5) * LINE_HEIGHT + shift]
                strength = float(row[key])
                x_ends = [left + 0.08, left + gap - 0.02]
                axes.plot(x_ends, y, color=colour, alpha=strength**0.5, linewidth=0.7 + 2.3 * strength)
        for key, strength in enumerate(map(float, rows.max(axis=0))):
            corner = (left + gap + 0.02 + 0.06 * i, (key + 0.18) * LINE_HEIGHT)
            bar = Rectangle(corner, 0.05, 0.64 * LINE_HEIGHT, color=colour, alpha=strength**0.5, linewidth=0)
            axes.add_patch(bar)


def _legend_columns(width: float) -> int:
    return int((width - 0.4) / 0.65)


def _head_legend(figure: Figure, heads: Sequence[int], width: float, height: float, top: float) -> None:
    from matplotlib.patches import Rectangle

    for i, head in enumerate(heads):
        row, column = divmod(i, _legend_columns(width))
        x, y = 0.2 + 0.65 * column, top - 0.2 * row
        colour = COLOURS[(head - 1) % len(COLOURS)]
        corner = (x / width, y / height)
        figure.add_artist(Rectangle(corner, 0.1 / width, 0.1 / height, color=colour, transform=figure.transFigure))
        _text(figure, (x + 0.15) / width, y / height, f"head {head}", fontsize=7.5)
    note = "Stronger lines: larger weights (below .01 none). A target token stands at the position that predicts it."
    _text(figure, 0.2 / width, 0.1 / height, note, fontsize=7.5, color=FAINT)
