"""Cross-attention between words, as the response of /v1/attention."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from t2tlite.decoding.alignment import pieces_by_word, word_weights
from t2tlite.programs.serving.schemas import AttentionResponse, Word
from t2tlite.programs.visualise.attention import Attention

WORD = re.compile(r"\S+")


def word_attention(attention: Attention, source: str, target: str) -> AttentionResponse:
    """The words of both texts, and a row of weights for each target word.

    Words and weights are those of alignments, by the rule in decoding/alignment.py, but
    all pieces of words count, and rows are scaled to sum to 1.
    """
    sources, targets = (
        pieces_by_word(attention.source_words),
        pieces_by_word(attention.target_words),
    )
    # of a model that translates by tag, the request does not have the first word
    tag_words = max(len(WORD.findall(attention.source)) - len(WORD.findall(source)), 0)
    sources = {
        word - tag_words: pieces
        for word, pieces in sources.items()
        if word >= tag_words
    }
    # [target pieces, source pieces]
    weights = np.mean([layer.mean(axis=0) for layer in attention.cross], axis=0)
    rows = word_weights(weights, list(sources.values()), list(targets.values()))
    return AttentionResponse(
        translation=target,
        source_words=_words(source, list(sources)),
        target_words=_words(target, list(targets)),
        weights=[
            [float(value) for value in row / max(row.sum(), 1e-9)] for row in rows
        ],
    )


def _words(text: str, numbers: Sequence[int]) -> list[Word]:
    """The words of these numbers, counted from 0, which white space separates."""
    matches = list(WORD.finditer(text))
    return [
        Word(
            text=matches[number].group(),
            start=matches[number].start(),
            end=matches[number].end(),
        )
        for number in numbers
    ]
