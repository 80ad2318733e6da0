"""Word alignments from cross-attention.

The cross-attention weights are averaged over all heads of all decoder layers. The
weight between two words is the sum over the pieces of the source word, and the mean
over those of the target word. End-of-sentence tokens (EOS) are left out. So are pieces
without a letter or digit in words that have others: the full stop at the end of a word
attends to the full stop of another. Each target word is aligned to the source word with
the greatest weight, the first in a tie. Words are separated by white space, and counted
from 0.
"""

# S source pieces, T target pieces, without EOS

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from t2tlite.vocabularies.text_encoder import TextEncoder

Alignment = list[tuple[int, int]]
"""Pairs of a source word and a target word, counted from 0, ordered by target word."""

# The indices of the pieces of each word, by the word's number, in ascending order.
WordPieces = Mapping[int, Sequence[int]]


def align(
    weights: np.ndarray,
    source_words: WordPieces,
    target_words: WordPieces,
) -> Alignment:
    """The alignment of cross-attention weights [T, S], by the rule above; empty if a
    side has no words.

    >>> weights = np.array([[0.2, 0.3, 0.4], [0.1, 0.1, 0.8]])
    >>> align(weights, {0: [0, 1], 1: [2]}, {0: [0], 1: [1]})
    [(0, 0), (1, 1)]
    """
    if not source_words:
        return []
    sources = list(source_words)
    by_word = word_weights(weights, source_words.values(), target_words.values())
    nearest = [sources[int(row.argmax())] for row in by_word]
    return list(zip(nearest, target_words, strict=True))


def word_pieces(
    encoder: TextEncoder,
    ids: Sequence[int],
    text: str,
    tag_words: int = 0,
) -> WordPieces:
    """The pieces of a text that count in alignments, by word: those of the word that
    have a letter or digit, or all if none has. The first `tag_words` words are left out
    and not counted.
    """
    # there may be pieces that make no word, such as a space alone
    if not text.split():
        return {}
    pieces = encoder.pieces(ids)
    words = words_of_pieces(encoder, ids, text)
    counted = {}
    for word, indices in pieces_by_word(words).items():
        with_letters = [i for i in indices if any(map(str.isalnum, pieces[i]))]
        if word >= tag_words:
            counted[word - tag_words] = with_letters or indices
    return counted


def word_weights(
    weights: np.ndarray,
    source_words: Iterable[Sequence[int]],
    target_words: Iterable[Sequence[int]],
) -> np.ndarray:
    """Weights between words, [target words, source words], from those between pieces,
    [T, S]: sums over source pieces, means over target pieces.

    Each word is the indices of its pieces.
    """
    sums = [weights[:, pieces].sum(axis=1) for pieces in source_words]
    by_source = np.stack(sums, axis=1)  # [T, words]
    return np.array([by_source[pieces].mean(axis=0) for pieces in target_words])


def words_of_pieces(encoder: TextEncoder, ids: Sequence[int], text: str) -> list[int]:
    """The word of each piece of a text, counted from 0.

    A piece without visible characters belongs to the word after it, the unknown token
    of several words to their first. If the vocabulary changes the text so that it has
    more words, those beyond its last are counted as the last.
    """
    words = text.split()
    numbers: list[int] = []
    encoded_ids: list[int] = []
    for number, pieces in enumerate(encoder.encode_batch(words)):
        # SentencePiece makes one unknown token of several in a row
        if pieces[:1] == encoded_ids[-1:] == [encoder.unknown]:
            pieces = pieces[1:]
        numbers += [number] * len(pieces)
        encoded_ids += pieces
    # as with SentencePiece, whose pieces do not span words
    if encoded_ids == list(ids):
        return numbers
    numbers = []
    seen = 0
    for end in range(1, len(ids) + 1):
        restored = encoder.decode(ids[:end]).split()
        visible = sum(map(len, restored))
        number = len(restored) - (visible > seen)
        numbers.append(max(0, min(number, len(words) - 1)))
        seen = max(seen, visible)
    return numbers


def pieces_by_word(words: Sequence[int]) -> dict[int, list[int]]:
    """The pieces of each word, given the word of each piece."""
    pieces: dict[int, list[int]] = {word: [] for word in sorted(set(words))}
    for piece, word in enumerate(words):
        pieces[word].append(piece)
    return pieces
