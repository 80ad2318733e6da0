"""Attention as one HTML page that needs nothing else: no network, no server, no matplotlib."""

from __future__ import annotations

import base64
import html
import importlib.resources
import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2tlite.files.atomic_file import write_text
from t2tlite.visualise.attention import (
    KINDS,
    NOTES,
    TITLES,
    Attention,
    check_kinds,
    default_layer,
    printable,
    select,
)

MAX_WEIGHTS = 20_000_000  # in one page: 53 MB, about what a browser opens without trouble
SCALE = 65535  # a weight is stored in 16 bits, to 0.00001


def page(
    attention: Attention,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] | None = None,
    heads: Sequence[int] | None = None,
) -> str:
    """A page on which kind, layer and heads can be chosen, and the weights of one word seen by pointing at it.

    Args:
        attention: what to show.
        kinds: of attention, the first of which the page opens with.
        layers: counted from 1; by default all. The page opens with the last but one.
        heads: counted from 1; by default all.

    Returns:
        The page, with style, script and data in it.

    Raises:
        ValueError: as `select`, or there are more weights than a browser can take.
    """
    check_kinds(kinds)
    shown = [_kind_data(attention, kind, layers, heads) for kind in kinds]
    count = sum(math.prod(len(kind[part]) for part in ("layers", "heads", "queries", "keys")) for kind in shown)
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"A page can hold {MAX_WEIGHTS:,} weights. Received: {count:,}. Choose fewer kinds, layers or heads, or a "
            "shorter sentence."
        )
    data = {"source": printable(attention.source), "target": printable(attention.target), "kinds": shown}
    template = importlib.resources.files("t2tlite.visualise").joinpath("attention.html").read_text(encoding="utf-8")
    # JSON in ASCII, without `<`: nothing in a sentence can end the script element.
    return template.replace("DATA_GOES_HERE", json.dumps(data).replace("<", "\\u003c"))


def write_page(attention: Attention, path: str | Path, **chosen: Any) -> None:
    """Writes `page(attention, **chosen)` to a file, and makes its folder.

    Raises:
        ValueError: as `page`.
        OSError: the file cannot be written.
    """
    write_text(Path(path), page(attention, **chosen))


def notebook_frame(attention: Attention) -> str:
    """The page in a frame of its own, so that its style and the notebook's stay apart."""
    content = html.escape(page(attention))
    return f'<iframe srcdoc="{content}" sandbox="allow-scripts" style="width:100%;height:760px;border:0"></iframe>'


def _kind_data(
    attention: Attention, kind: str, layers: Sequence[int] | None, heads: Sequence[int] | None
) -> dict[str, Any]:
    """What the page's script is given of a kind of attention."""
    weights = attention.layers(kind)
    numbers = list(layers or range(1, len(weights) + 1))
    chosen, shown_heads = select(attention, [kind], numbers, heads)
    rows = [head - 1 for head in shown_heads]
    first = default_layer(attention, kind)
    return {
        "name": kind,
        "title": TITLES[kind],
        "note": NOTES[kind],
        "queries": [printable(piece) for piece in attention.queries(kind)],
        "keys": [printable(piece) for piece in attention.keys(kind)],
        "layerCount": len(weights),
        "openLayer": first if first in numbers else numbers[0],
        "heads": shown_heads,
        "layers": [
            {"number": number, "weights": _packed(layer.weights[rows])}
            for number, layer in zip(numbers, chosen, strict=True)
        ],
    }


def _packed(weights: np.ndarray) -> str:
    """Weights [H, T, S] as 16-bit numbers, the low byte first, in base64."""
    return base64.b64encode(np.round(weights * SCALE).astype("<u2").tobytes()).decode("ascii")
