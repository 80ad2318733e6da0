"""The attention weights of a model for one sentence pair, and the page that shows them;
`Translator.attention` makes one.

The decoder reads its target shifted right by one: at position t it reads piece t - 1
(at the first nothing, shown as <start>) and predicts piece t. A query is labelled with
the piece that it predicts, a key with the one that it read. So a row of cross-attention
shows what the model attended to when it produced that piece, and in the decoder's
self-attention no piece attends to itself.
"""

# S source pieces, T target pieces, both with the end-of-sentence token (EOS); H heads

import base64
import dataclasses
import hashlib
import html
import json
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2tlite.files.atomic_file import write_text
from t2tlite.programs.templates import package_text

KINDS = ("encoder", "decoder", "cross")
TITLES = {
    "encoder": "Encoder self-attention",
    "decoder": "Decoder self-attention",
    "cross": "Cross-attention",
}
NOTES = {
    "encoder": "From each source token to the source tokens it attends to.",
    "decoder": (
        "From each target token, at the position that predicts it, to the tokens read"
        " so far. The decoder reads the target shifted right by one, <start> first, so"
        " no token attends to itself."
    ),
    "cross": (
        "From each target token, at the position that predicts it, to the source tokens"
        " it attends to."
    ),
}
START = "<start>"  # what the decoder reads at its first position: a vector of zeros
DIRECTION_CONTROLS = set(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)

# a page of so many weights has 53 MB, about what a browser opens without trouble
MAX_WEIGHTS = 20_000_000
SCALE = 65535  # the page stores a weight in 16 bits, to 0.00001
# in this order
FILES = (
    "attention.html",
    "attention.css",
    "attention.js",
    "attention_image.js",
    "attention_events.js",
)


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Attention:
    """The attention weights of every head of every layer for one sentence pair. A
    notebook shows them as a page, and `save` writes the page.

    Arrays have queries along the second axis and keys along the third; each row sums to
    1.

    Attributes:
        source_pieces: the S pieces of the source, EOS last.
        target_pieces: the T pieces of the target, EOS last.
        encoder: for each encoder layer float32 [H, S, S].
        decoder: for each decoder layer float32 [H, T, T]; zero above the diagonal.
        cross: for each decoder layer float32 [H, T, S].
        source: the sentence as text, for headings.
        target: its translation as text.
        run: the run directory of the model.
        step: the step of its checkpoint.
        source_words: the word of each source piece but EOS, counted from 0.
        target_words: likewise of the target.
    """

    source_pieces: list[str]
    target_pieces: list[str]
    encoder: list[np.ndarray]
    decoder: list[np.ndarray]
    cross: list[np.ndarray]
    source: str = ""
    target: str = ""
    run: str = ""
    step: int | None = None
    source_words: Sequence[int] = ()
    target_words: Sequence[int] = ()

    def layers(self, kind: str) -> list[np.ndarray]:
        """The weights of a kind, layer by layer: `encoder`, `decoder` or `cross`."""
        stack: list[np.ndarray] = getattr(self, kind)
        return stack

    def queries(self, kind: str) -> list[str]:
        """The pieces of the rows. A target piece is at the position that predicts
        it.
        """
        return self.source_pieces if kind == "encoder" else self.target_pieces

    def keys(self, kind: str) -> list[str]:
        """The pieces of the columns; in the decoder those that each position read,
        `<start>` first.
        """
        if kind == "decoder":
            return [START, *self.target_pieces[:-1]]
        return self.source_pieces

    def save(
        self,
        path: str | Path,
        kinds: Sequence[str] = KINDS,
        layers: Sequence[int] = (),
        heads: Sequence[int] = (),
    ) -> None:
        """Writes the page to a file whose name ends in .html.

        `kinds` are of encoder, decoder and cross. `layers` and `heads` count from 1; by
        default the page has all. Raises ValueError for another ending.
        """
        if Path(path).suffix.lower() != ".html":
            raise ValueError(
                f"The file of a page must end in .html. Received: {path}. The page"
                " saves what it shows as PNG or SVG; docs/python.md draws weights with"
                " matplotlib."
            )
        write_text(Path(path), page(self, kinds, layers, heads))

    @property
    def origin(self) -> str:
        """The run's name and the step, as headings name them; empty if they are not
        known.
        """
        parts = []
        if self.run:
            parts.append(Path(self.run).resolve().name)
        if self.step is not None:
            parts.append(f"step {self.step:,}")
        return ", ".join(parts)

    def file_name(self) -> str:
        """A file name for the sentence pair, without ending: words of the source and a
        digest.
        """
        words = "-".join(re.findall(r"\w+", self.source.lower()))
        pair = repr((self.source, self.target))
        digest = hashlib.sha256(pair.encode("utf-8")).hexdigest()[:6]
        return f"{words[:40].strip('-') or 'sentence'}-{digest}"

    def __repr__(self) -> str:
        source = f"{textwrap.shorten(self.source, 40)!r} ({len(self.source_pieces)}"
        target = f"{textwrap.shorten(self.target, 40)!r} ({len(self.target_pieces)}"
        heads = len(self.cross[0]) if self.cross else 0
        layers = f"{len(self.encoder)} encoder and {len(self.decoder)} decoder layers"
        pair = f"{source} tokens) to {target} tokens)"
        return f"<Attention: {pair}, {layers}, {heads} heads>"

    def _repr_html_(self) -> str:
        # in a frame, so that its style and the notebook's stay apart
        content = html.escape(page(self))
        frame = (
            'sandbox="allow-scripts allow-downloads"'
            ' style="width:100%;height:820px;border:0" title="Attention"'
        )
        return f'<iframe srcdoc="{content}" {frame}></iframe>'


def page(
    attention: Attention,
    kinds: Sequence[str] = KINDS,
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> str:
    """The attention as one HTML page, which needs no network, server or other file.

    On it one chooses kind, layer and heads, points at a word to see its weights, and
    saves what is shown as PNG or SVG. It opens with cross-attention (or the first of
    `kinds`) in the last layer but one, and hides </s> until a switch shows it. Layers
    and heads count from 1, by default all.

    Raises ValueError for kinds, layers or heads that the model does not have, and for
    more than MAX_WEIGHTS weights.
    """
    check_kinds(kinds)
    count = 0
    shown = []
    for kind in kinds:
        data = _kind_data(attention, kind, layers, heads)
        cells = len(data["queries"]) * len(data["keys"])
        count += len(data["layers"]) * len(data["heads"]) * cells
        shown.append(data)
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"A page can hold {MAX_WEIGHTS:,} weights. Received: {count:,}. Choose"
            " fewer kinds, layers or heads, or a shorter sentence."
        )
    data = {
        "source": printable(attention.source),
        "target": printable(attention.target),
        "run": printable(attention.origin),
        "name": attention.file_name(),
        "kinds": shown,
    }
    texts = [package_text(f"programs/visualise/{name}") for name in FILES]
    document, style, *scripts = [text.rstrip("\n") for text in texts]
    document = document.replace("STYLE_GOES_HERE", style)
    document = document.replace("SCRIPT_GOES_HERE", "\n".join(scripts))
    # JSON in ASCII, without `<`, which could end the script element. Last, since it may
    # contain any text.
    return document.replace("DATA_GOES_HERE", json.dumps(data).replace("<", "\\u003c"))


def check_kinds(kinds: Sequence[str]) -> None:
    """Raises ValueError for an unknown kind of attention, or none."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        received = repr(unknown[0]) if unknown else "none"
        raise ValueError(
            f"A kind of attention must be one of {', '.join(KINDS)}. Received:"
            f" {received}."
        )


def printable(text: str) -> str:
    """Text that is safe in any document: control characters become U+FFFD."""
    characters = []
    for c in text:
        is_control = unicodedata.category(c) in ("Cc", "Cs") or c in DIRECTION_CONTROLS
        characters.append("\ufffd" if is_control else c)
    return "".join(characters)


def _numbers(name: str, chosen: Sequence[int], count: int) -> list[int]:
    """The chosen numbers, by default all from 1 to `count`. Raises ValueError for
    others.
    """
    there = range(1, count + 1)
    if not isinstance(chosen, Sequence) or not set(chosen) <= set(there):
        raise ValueError(
            f"{name} must be a list of numbers from 1 to {count}. Received: {chosen!r}."
        )
    return list(chosen or there)


def _kind_data(
    attention: Attention, kind: str, layers: Sequence[int], heads: Sequence[int]
) -> dict[str, Any]:
    """One kind of attention as the page's scripts read it. Raises ValueError for a
    layer or head that the model does not have.
    """
    stack = attention.layers(kind)
    numbers = _numbers(f"layers of {kind}", layers, len(stack))
    shown_heads = _numbers("heads", heads, len(stack[0]))
    # the last layer but one, as in the paper's Figures 3 to 5
    open_layer = max(1, len(stack) - 1)
    if open_layer not in numbers:
        open_layer = numbers[0]
    return {
        "name": kind,
        "title": TITLES[kind],
        "note": NOTES[kind],
        "queries": list(map(printable, attention.queries(kind))),
        "keys": list(map(printable, attention.keys(kind))),
        "layerCount": len(stack),
        "openLayer": open_layer,
        "heads": shown_heads,
        "layers": _packed_layers(stack, numbers, shown_heads),
    }


def _packed_layers(
    stack: Sequence[np.ndarray], layers: Sequence[int], heads: Sequence[int]
) -> list[dict[str, Any]]:
    """Weights of these layers and heads, each in 16 bits, low byte first, in base64."""
    rows = np.array(heads) - 1
    packed = []
    for number in layers:
        weights = np.round(stack[number - 1][rows] * SCALE).astype("<u2")
        text = base64.b64encode(weights.tobytes()).decode("ascii")
        packed.append({"number": number, "weights": text})
    return packed
