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
import html
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2tlite.files.atomic_file import text_sha256, write_text
from t2tlite.programs.templates import fill_in, package_text

START = "<start>"  # what the decoder reads at its first position: a vector of zeros
# control characters, those of the writing direction, and halves of others
UNPRINTABLE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
# a page of so many weights has 53 MB, about what a browser opens without trouble
MAX_WEIGHTS = 20_000_000
SCALE = 65535  # the page stores a weight in 16 bits, to 0.00001
SCRIPTS = ("attention.js", "attention_image.js", "attention_events.js")  # in this order


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

    def save(self, path: str | Path) -> None:
        """Writes the page to a file. Raises ValueError unless it ends in .html."""
        check_page(path)
        write_text(Path(path), page(self))

    @property
    def origin(self) -> str:
        """The run's name and the step, as headings name them; empty if they are not
        known.
        """
        run = Path(self.run).resolve().name if self.run else ""
        step = "" if self.step is None else f"step {self.step:,}"
        return ", ".join(filter(None, [run, step]))

    def file_name(self) -> str:
        """A file name for the sentence pair, without ending: words of the source and a
        digest.
        """
        words = "-".join(re.findall(r"\w+", self.source.lower()))
        pair = repr((self.source, self.target))
        digest = text_sha256(pair)[:6]
        return f"{words[:40].strip('-') or 'sentence'}-{digest}"

    def __repr__(self) -> str:
        return f"<Attention: {self.source!r:.60} to {self.target!r:.60}>"

    def _repr_html_(self) -> str:
        # in a frame, so that its style and the notebook's stay apart
        content = html.escape(page(self))
        frame = (
            'sandbox="allow-scripts allow-downloads"'
            ' style="width:100%;height:820px;border:0" title="Attention"'
        )
        return f'<iframe srcdoc="{content}" {frame}></iframe>'


def check_page(path: str | Path) -> None:
    """Raises ValueError unless a file for a page ends in .html."""
    if Path(path).suffix.lower() != ".html":
        raise ValueError(
            f"A page must end in .html. Received: {path}. It saves what it shows"
            " as PNG or SVG."
        )


def page(attention: Attention) -> str:
    """The attention as one HTML page, which needs no network, server or other file.

    On it one chooses kind, layer and heads, points at a word to see its weights, and
    saves what is shown as PNG or SVG. It opens with cross-attention in the last layer
    but one, and hides </s> until a switch shows it.

    Raises ValueError for more than MAX_WEIGHTS weights.
    """
    layers = [*attention.encoder, *attention.decoder, *attention.cross]
    count = sum(map(np.size, layers))
    if count > MAX_WEIGHTS:
        raise ValueError(
            f"A page must have at most {MAX_WEIGHTS:,} weights. Received: {count:,}."
        )
    data = {
        "source": printable(attention.source),
        "target": printable(attention.target),
        "run": printable(attention.origin),
        "name": attention.file_name(),
        "kinds": [
            _kind_data(attention, kind) for kind in ("encoder", "decoder", "cross")
        ],
    }
    facts = {
        "data": data,
        "style": _text("attention.css"),
        "script": "\n".join(map(_text, SCRIPTS)),
    }
    return fill_in("programs/visualise/attention.html", facts)


def printable(text: str) -> str:
    """Text that is safe in any document: control characters become U+FFFD."""
    return UNPRINTABLE.sub("\ufffd", text)


def _text(name: str) -> str:
    return package_text(f"programs/visualise/{name}").rstrip("\n")


def _kind_data(attention: Attention, kind: str) -> dict[str, Any]:
    """One kind of attention as the page's scripts read it. Weights are in 16 bits, low
    byte first, in base64.
    """
    layers: list[np.ndarray] = getattr(attention, kind)
    packed = []
    for number, layer in enumerate(layers, 1):
        weights = np.round(layer * SCALE).astype("<u2").tobytes()
        text = base64.b64encode(weights).decode("ascii")
        packed.append({"number": number, "weights": text})
    return {
        "name": kind,
        "queries": list(map(printable, attention.queries(kind))),
        "keys": list(map(printable, attention.keys(kind))),
        "heads": list(range(1, 1 + len(layers[0]))),
        "layers": packed,
    }
