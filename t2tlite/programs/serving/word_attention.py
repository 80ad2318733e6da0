"""Cross-attention between words: averaged over heads and layers, pieces put together."""

# T target pieces, S source pieces

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from t2tlite.decoding.alignment import word_weights
from t2tlite.programs.visualise.attention import Attention, piece_bytes

WORD = re.compile(r"\w+(?:['’‑-]\w+)*|[^\w\s]")
NO_TEXT = " \t\n\r\f\v▁"  # what pieces hold beside the words' characters; SentencePiece reads the last as a space


class Word(NamedTuple):
    """A word's characters, text[start:end], and its pieces."""

    start: int
    end: int
    pieces: list[int]


def word_attention(attention: Attention, source: str, target: str) -> dict[str, Any]:
    """The response of /v1/attention: words of both texts, and a row of weights for each target word.

    They are computed as for alignments, by decoding/alignment.py, but punctuation marks are words of their own, and
    rows are scaled to sum to 1.
    """
    sources, targets = words_of(source, attention.source_pieces), words_of(target, attention.target_pieces)
    if not sources:
        return {"translation": target, "source_words": [], "target_words": [], "weights": []}
    weights = np.mean([layer.mean(axis=0) for layer in attention.cross], axis=0)  # [T, S]
    rows = word_weights(weights, [word.pieces for word in sources], [word.pieces for word in targets])
    return {
        "translation": target,
        "source_words": _shown(sources, source),
        "target_words": _shown(targets, target),
        "weights": [[float(value) for value in row / max(row.sum(), 1e-9)] for row in rows],
    }


def words_of(text: str, pieces: Sequence[str]) -> list[Word]:
    """The words of a text, punctuation marks by themselves, with the pieces of each.

    Words that share a piece are one. The pieces are those of the text, in order; EOS and spaces belong to no word.
    """
    owner = [i for i, character in enumerate(text) if character not in NO_TEXT for _ in character.encode()]
    spans: list[tuple[int, int, int]] = []  # piece, its first character and its last
    at = 0
    for number, piece in enumerate(pieces):
        size = len(piece_bytes(piece).translate(None, b" \t\n\r\f\v"))
        own = owner[at : at + size]
        at += size
        if own:
            spans.append((number, own[0], own[-1]))
    words = [Word(*found.span(), []) for found in WORD.finditer(text)]
    for number, first, last in spans:
        touched = [word for word in words if word.start <= last and first < word.end]
        if not touched:
            continue
        together = Word(touched[0].start, touched[-1].end, [p for word in touched for p in word.pieces])
        together.pieces.append(number)
        where = words.index(touched[0])
        words[where : where + len(touched)] = [together]
    return [word for word in words if word.pieces]


def _shown(words: Sequence[Word], text: str) -> list[dict[str, Any]]:
    return [{"text": text[word.start : word.end], "start": word.start, "end": word.end} for word in words]
