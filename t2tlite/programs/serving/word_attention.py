"""Cross-attention between words, as the response of /v1/attention."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from t2tlite.decoding.alignment import pieces_by_word, word_weights
from t2tlite.programs.serving.schemas import AttentionResponse, Word
from t2tlite.programs.visualise.attention import Attention

WORD = re.compile(r"\S+")


def word_attention(
    attention: Attention, source: str, target: str, tag_words: int = 0
) -> AttentionResponse:
    """The words of both texts, and a row of weights for each target word.

    Both texts are as the request has them; before the source, the model's has
    `tag_words` more words. Words and weights are those of alignments, by the rule in
    decoding/alignment.py, but all pieces of words count, and rows are scaled to sum to
    1. A word of which the vocabulary has no piece, such as a zero-width space that it
    drops, is left out.
    """
    sources = _pieces_of_words(source, attention.source_words, tag_words)
    targets = _pieces_of_words(target, attention.target_words)
    weights: list[list[float]] = [[] for _ in targets]
    if sources and targets:
        # [target pieces, source pieces]
        mean = np.mean([layer.mean(axis=0) for layer in attention.cross], axis=0)
        rows = word_weights(mean, list(sources.values()), list(targets.values()))
        sums = np.maximum(rows.sum(axis=1, keepdims=True), 1e-9)
        weights = (rows / sums).tolist()
    return AttentionResponse(
        translation=target,
        source_words=list(sources),
        target_words=list(targets),
        weights=weights,
    )


def _pieces_of_words(
    text: str, words_of_pieces: Sequence[int], tag_words: int = 0
) -> dict[Word, list[int]]:
    """The pieces of each word of a text, before which there are `tag_words` more.

    Words are counted as white space separates them. If a model decoded pieces of white
    space alone, they belong to no word.
    """
    words = [
        Word(text=match.group(), start=match.start(), end=match.end())
        for match in WORD.finditer(text)
    ]
    pieces = {}
    for number, indices in pieces_by_word(words_of_pieces).items():
        place = number - tag_words
        if 0 <= place < len(words):
            pieces[words[place]] = indices
    return pieces
