"""The attention weights of one sentence pair, with the pieces they belong to, and the
selection of what to show.

The decoder reads its target shifted right by one: at position t it reads piece t - 1
(at the first nothing, shown as <start>) and predicts piece t. A query is labelled with
the piece that it predicts, a key with the one that it read. So a row of cross-attention
shows what the model attended to when it produced that piece, and in the decoder's
self-attention no piece attends to itself.
"""

# S source pieces, T target pieces, both with the end-of-sentence token (EOS); H heads

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import re
import textwrap
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

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
SPACE = "▁"  # how SentencePiece writes a space

BYTE_PIECE = re.compile(r"<0x([0-9A-F]{2})>")
SPECIAL_PIECE = re.compile(r"</?\w+>")  # such as </s>: no text
DIRECTION_CONTROLS = set(
    "\u200e\u200f\u061c\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)


@dataclasses.dataclass(frozen=True, eq=False)
class PairAttention:
    """The attention weights of every head of every layer for one sentence pair.

    Arrays have queries along the second axis and keys along the third; each row sums to
    1. Raises ValueError if a shape does not fit the pieces.

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

    def __post_init__(self) -> None:
        for kind in KINDS:
            wanted = len(self.queries(kind)), len(self.keys(kind))
            for number, weights in enumerate(self.layers(kind), start=1):
                if weights.ndim != 3 or weights.shape[1:] != wanted:
                    raise ValueError(
                        "Weights must be [heads, queries, keys], here [heads,"
                        f" {wanted[0]}, {wanted[1]}]. Received: {list(weights.shape)}"
                        f" for {kind}, layer {number}. Give the pieces with EOS."
                    )

    def layers(self, kind: str) -> list[np.ndarray]:
        """The weights of a kind, layer by layer: `encoder`, `decoder` or `cross`."""
        return {"encoder": self.encoder, "decoder": self.decoder, "cross": self.cross}[
            kind
        ]

    def queries(self, kind: str) -> list[str]:
        """The pieces of the rows; a target piece is at the position that predicts
        it.
        """
        return self.source_pieces if kind == "encoder" else self.target_pieces

    def keys(self, kind: str) -> list[str]:
        """The pieces of the columns; in the decoder what each position read, `<start>`
        first.
        """
        return (
            [START, *self.target_pieces[:-1]]
            if kind == "decoder"
            else self.source_pieces
        )

    def word_positions(self, kind: str, word: str) -> list[int]:
        """The rows of the pieces of a word's first occurrence among the queries of a
        kind, counted from 0.

        If the text and the word of each piece are known, whole words between white
        space are found first. Otherwise the text of the pieces is searched, which have
        `▁` for spaces and `<0x0A>` for bytes: whole words (`word` may hold several)
        before parts of words, so that `cat` in `concatenate cat` is the second word. A
        single piece, such as `</s>`, is found too. Raises ValueError if the sentence
        does not contain the word.
        """
        text, words = (
            (self.source, self.source_words)
            if kind == "encoder"
            else (self.target, self.target_words)
        )
        wanted, present = word.split(), text.split()
        for start in range(len(present) - len(wanted) + 1 if wanted else 0):
            if present[start : start + len(wanted)] == wanted:
                positions = [
                    at
                    for at, number in enumerate(words)
                    if start <= number < start + len(wanted)
                ]
                if positions:
                    return positions
        texts = [piece_bytes(piece) for piece in self.queries(kind)]
        piece_of_byte = [i for i, text in enumerate(texts) for _ in text]
        sentence = b"".join(texts).decode("utf-8", "surrogateescape")
        escaped = re.escape(word.strip())
        if escaped:
            for pattern in (rf"(?<!\w){escaped}(?!\w)", escaped):
                match = re.search(pattern, sentence)
                if match:
                    start, end = (
                        len(sentence[:at].encode("utf-8", "surrogateescape"))
                        for at in match.span()
                    )
                    return sorted(set(piece_of_byte[start:end]))
            if word in self.queries(kind):
                return [self.queries(kind).index(word)]
        shown = (
            sentence.encode("utf-8", "surrogateescape")
            .decode("utf-8", "replace")
            .strip()
        )
        raise ValueError(
            f"The word must be in the sentence. Received: {word!r}, and the sentence"
            f" {shown!r}. Choose a word of it."
        )

    @property
    def origin(self) -> str:
        """The run's name and the step, as headings name them; empty if they are not
        known.
        """
        name = Path(self.run).resolve().name if self.run else ""
        return ", ".join(
            filter(None, (name, "" if self.step is None else f"step {self.step:,}"))
        )

    def __repr__(self) -> str:
        sides = ((self.source, self.source_pieces), (self.target, self.target_pieces))
        source, target = (
            f"{textwrap.shorten(text, 40)!r} ({len(pieces)} tokens)"
            for text, pieces in sides
        )
        heads = len(self.cross[0]) if self.cross else 0
        layers = f"{len(self.encoder)} encoder and {len(self.decoder)} decoder layers"
        return f"<Attention: {source} to {target}, {layers}, {heads} heads>"

    def file_name(self, word: str | None = None) -> str:
        """A file name for the sentence pair and a word, without ending: words of the
        source and a digest.
        """
        digest = hashlib.sha256(
            repr((self.source, self.target, word)).encode("utf-8")
        ).hexdigest()[:6]
        words = (
            "-".join(re.findall(r"\w+", self.source.lower()))[:40].strip("-")
            or "sentence"
        )
        return f"{words}-{digest}"


class Layer(NamedTuple):
    """One kind of attention in one layer."""

    kind: str
    title: str
    note: str  # what it shows
    weights: np.ndarray  # [H, queries, keys]
    queries: list[str]
    keys: list[str]


def select(
    attention: PairAttention,
    kinds: Sequence[str],
    layers: Sequence[int] = (),
    heads: Sequence[int] = (),
) -> tuple[list[Layer], list[int]]:
    """What to show: each kind in each of the layers, and the heads.

    Layers (by default `default_layer`) and heads (by default all) are counted from 1.
    Raises ValueError for a kind, layer or head that the model does not have.
    """
    check_kinds(kinds)
    selected = []
    for kind in kinds:
        weights, queries, keys = (
            attention.layers(kind),
            attention.queries(kind),
            attention.keys(kind),
        )
        for layer in layers or [default_layer(attention, kind)]:
            if not 1 <= layer <= len(weights):
                raise ValueError(
                    f"A layer of the {'encoder' if kind == 'encoder' else 'decoder'}"
                    f" must be from 1 to {len(weights)}. Received: {layer}, for the"
                    f" kind {kind}. Choose another layer, or other kinds."
                )
            title = f"{TITLES[kind]}, layer {layer} of {len(weights)}"
            selected.append(
                Layer(kind, title, NOTES[kind], weights[layer - 1], queries, keys)
            )
    count = len(selected[0].weights)
    for head in heads:
        if not 1 <= head <= count:
            raise ValueError(
                f"A head must be from 1 to {count}. Received: {head}. Choose another."
            )
    return selected, list(heads or range(1, count + 1))


def check_kinds(kinds: Sequence[str]) -> None:
    """Raises ValueError for an unknown kind of attention, or none."""
    unknown = [kind for kind in kinds if kind not in KINDS]
    if unknown or not kinds:
        received = repr(unknown[0]) if unknown else "none"
        raise ValueError(
            f"A kind of attention must be one of {', '.join(KINDS)}. Received:"
            f" {received}."
        )


def default_layer(attention: PairAttention, kind: str) -> int:
    """The last layer but one, as in the paper's Figures 3 to 5 (5 of 6); of one or two
    layers the first.
    """
    return max(1, len(attention.layers(kind)) - 1)


def kinds_with(attention: PairAttention, word: str) -> list[str]:
    """The kinds in which a word is a query (source words: encoder); ValueError if no
    sentence contains it.
    """
    kinds = []
    for kind in KINDS:
        with contextlib.suppress(ValueError):
            attention.word_positions(kind, word)
            kinds.append(kind)
    if not kinds:
        raise ValueError(
            f"The word must be in the source or the target. Received: {word!r}, the"
            f" source {attention.source!r} and the target {attention.target!r}. Choose"
            " a word of them."
        )
    return kinds


def piece_bytes(piece: str) -> bytes:
    """The text of a piece in UTF-8; empty for a special piece such as `</s>`."""
    byte = BYTE_PIECE.fullmatch(piece)
    if byte:
        return bytes([int(byte[1], 16)])
    return b"" if SPECIAL_PIECE.fullmatch(piece) else piece.replace(SPACE, " ").encode()


def printable(piece: str) -> str:
    """A piece that is safe in any document: control characters become U+FFFD."""
    characters = []
    for c in piece:
        is_control = unicodedata.category(c) in ("Cc", "Cs") or c in DIRECTION_CONTROLS
        characters.append("\ufffd" if is_control else c)
    return "".join(characters)
