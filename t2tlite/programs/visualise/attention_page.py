"""Attention as one self-contained HTML page: it needs no network, server or
matplotlib.
"""

from __future__ import annotations

import base64
import importlib.resources
import json
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from t2tlite.programs.visualise.attention_weights import (
    KINDS,
    NOTES,
    TITLES,
    PairAttention,
    check_kinds,
    default_layer,
    printable,
    select,
)

# in one page: 53 MB, about what a browser opens without trouble
MAX_WEIGHTS = 20_000_000
# Their numbers multiply to the number of weights of a kind.
WEIGHT_AXES = ("layers", "heads", "queries", "keys")
SCRIPTS = ("attention.js", "attention_image.js", "attention_events.js")  # in this order
SCALE = 65535  # a weight is stored in 16 bits, to 0.00001


def page(
    attention: PairAttention,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> str:
    """A page on which to choose kind, layer and heads, and to see the weights of a word
    by pointing at it.

    It opens with cross-attention, or the first of the kinds, in the last layer but one,
    and without </s>, which a switch shows. Layers and heads are counted from 1, by
    default all.
    """
    check_kinds(kinds)
    shown = [_kind_data(attention, kind, layers, heads) for kind in kinds]
    count = 0
    for kind in shown:
        count += math.prod(len(kind[part]) for part in WEIGHT_AXES)
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"A page can hold {MAX_WEIGHTS:,} weights. Received: {count:,}. Choose"
            " fewer kinds, layers or heads, or a shorter sentence."
        )
    texts = {name: printable(getattr(attention, name)) for name in ("source", "target")}
    data = {
        **texts,
        "run": printable(attention.origin),
        "name": attention.file_name(),
        "kinds": shown,
    }
    template = _resource("attention.html").replace(
        "STYLE_GOES_HERE", _resource("attention.css")
    )
    template = template.replace("SCRIPT_GOES_HERE", "\n".join(map(_resource, SCRIPTS)))
    # JSON in ASCII, without `<`, which could end the script element. Last, since it may
    # contain any text.
    return template.replace("DATA_GOES_HERE", json.dumps(data).replace("<", "\\u003c"))


def _resource(name: str) -> str:
    folder = importlib.resources.files("t2tlite.programs.visualise")
    return folder.joinpath(name).read_text(encoding="utf-8").rstrip("\n")


def _kind_data(
    attention: PairAttention, kind: str, layers: Sequence[int], heads: Sequence[int]
) -> dict[str, Any]:
    """The data of one kind of attention for the page's script."""
    count = len(attention.layers(kind))
    numbers = list(layers or range(1, count + 1))
    chosen, shown_heads = select(attention, [kind], numbers, heads)
    rows = [head - 1 for head in shown_heads]
    first = default_layer(attention, kind)
    # low byte first
    packed = [
        np.round(layer.weights[rows] * SCALE).astype("<u2").tobytes()
        for layer in chosen
    ]
    texts = [base64.b64encode(weights).decode("ascii") for weights in packed]
    return {
        "name": kind,
        "title": TITLES[kind],
        "note": NOTES[kind],
        "queries": list(map(printable, attention.queries(kind))),
        "keys": list(map(printable, attention.keys(kind))),
        "layerCount": count,
        "openLayer": first if first in numbers else numbers[0],
        "heads": shown_heads,
        "layers": [
            {"number": n, "weights": text}
            for n, text in zip(numbers, texts, strict=True)
        ],
    }
