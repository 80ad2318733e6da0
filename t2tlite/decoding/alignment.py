"""Word alignments from cross-attention.

The rule: the cross-attention weights are averaged over all heads of all decoder layers.
The weight between two words is the sum over the pieces of the source word, and the mean
over those of the target word; end-of-sentence tokens (EOS) are left out, and pieces
without a letter or digit where a word has others, since the full stop at the end of a
word attends to the full stop of another. Each target word is aligned to the source word
with the greatest weight, the first in a tie. Words are separated by white space, and
counted from 0.
"""

# S source pieces, T target pieces, without EOS

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from t2tlite.vocabularies.text_encoder import TextEncoder

Alignment = list[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0, ordered by target word."""


def pharaoh(alignment: Alignment) -> str:
    """Pairs in the format of Pharaoh and fast_align.

    >>> pharaoh([(0, 0), (2, 1)])
    '0-0 2-1'
    """
    return " ".join(f"{source}-{target}" for source, target in alignment)


def align(
    weights: np.ndarray, source_words: Sequence[int], target_words: Sequence[int]
) -> Alignment:
    """The alignment of cross-attention weights [T, S], given the word of each piece, by
    the rule above.

    >>> align(np.array([[0.2, 0.3, 0.4], [0.1, 0.1, 0.8]]), [0, 0, 1], [0, 1])
    [(0, 0), (1, 1)]
    """
    sources, targets = pieces_by_word(source_words), pieces_by_word(target_words)
    best = word_weights(weights, list(sources.values()), list(targets.values())).argmax(
        axis=1
    )
    return [
        (list(sources)[index], word) for index, word in zip(best, targets, strict=True)
    ]


def aligned_pieces(pieces: Sequence[str], words: Sequence[int]) -> list[int]:
    """The indices of the pieces that count, given the word of each, by the rule above.

    >>> aligned_pieces(["▁ab", "c", ".", "▁-"], [0, 0, 0, 1])
    [0, 1, 3]
    """
    has_letters = [any(map(str.isalnum, piece)) for piece in pieces]
    words_with_letters = {
        word for word, has in zip(words, has_letters, strict=True) if has
    }
    return [
        i
        for i, word in enumerate(words)
        if has_letters[i] or word not in words_with_letters
    ]


def word_weights(
    weights: np.ndarray,
    source_words: Sequence[Sequence[int]],
    target_words: Sequence[Sequence[int]],
) -> np.ndarray:
    """Weights between words, [target words, source words], of those between pieces, [T,
    S]: sums and means.

    Each word is the indices of its pieces.
    """
    # [T, words]
    by_source = np.stack(
        [weights[:, pieces].sum(axis=1) for pieces in source_words], axis=1
    )
    return np.array([by_source[pieces].mean(axis=0) for pieces in target_words])


def words_of_pieces(encoder: TextEncoder, ids: Sequence[int], text: str) -> list[int]:
    """The word of each piece of a text, counted from 0.

    A piece without visible characters belongs to the word after it. If the vocabulary
    changes the text so that it has more words, those beyond its last are counted as the
    last.
    """
    words = text.split()
    encoded = encoder.encode_batch(words)
    # as with SentencePiece, whose pieces do not span words
    if list(itertools.chain(*encoded)) == list(ids):
        return [number for number, pieces in enumerate(encoded) for _ in pieces]
    numbers, seen = [], 0
    for end in range(1, len(ids) + 1):
        restored = encoder.decode(ids[:end])
        visible = sum(len(word) for word in restored.split())
        numbers.append(len(restored.split()) - (visible > seen))
        seen = max(seen, visible)
    return [max(0, min(number, len(words) - 1)) for number in numbers]


def pieces_by_word(words: Sequence[int]) -> dict[int, list[int]]:
    """The pieces of each word, given the word of each piece."""
    pieces: dict[int, list[int]] = {word: [] for word in sorted(set(words))}
    for piece, word in enumerate(words):
        pieces[word].append(piece)
    return pieces
