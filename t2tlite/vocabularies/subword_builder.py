"""Learns a subword vocabulary as tensor2tensor's SubwordTextEncoder does: the same text
gives the same file.

In each of four iterations, every token is split with the vocabulary so far, and any
string that begins where a subtoken of this split begins is a candidate. Frequent
candidates become subtokens, long ones before short ones. The minimum count that makes a
candidate frequent is searched for, so that the vocabulary has about the requested size.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np

from t2tlite.files.atomic_file import atomic_file
from t2tlite.vocabularies import subword_encoder
from t2tlite.vocabularies.subword_encoder import (
    escape,
    longest_by_start,
    longest_matches,
    tokenize,
)
from t2tlite.vocabularies.text_encoder import check_unicode

RESERVED = subword_encoder.PAD_SUBTOKENS[0], subword_encoder.EOS_SUBTOKENS[0]
# cannot be in a line of a file, so their numbers are written
UNWRITABLE = frozenset("\n\r")
ITERATIONS = 4
LARGEST_MIN_COUNT = 1000

END = "\n"  # between tokens; none contains it
NUM_CODES = 0x110000  # of Unicode


class AlphabetSizeError(ValueError):
    """The special tokens and characters of the text alone need `smallest` subtokens."""

    largest = None  # small text gives fewer subtokens

    def __init__(self, received: int, smallest: int):
        self.smallest = smallest
        super().__init__(
            f"vocab_size must be at least {smallest} for this text: {len(RESERVED)} ids"
            " are special tokens, and each character needs one. Received:"
            f" {received}. Raise vocab_size; the vocabulary then has about that many"
            " subtokens."
        )


def build_subwords(sentences: Iterable[str], vocab_size: int, path: str | Path) -> None:
    """Learns a vocabulary of about `vocab_size` subtokens from `sentences` and writes
    it to `path`.

    The sentences are read once; tensor2tensor's problems strip each first. The size is
    within 1 % of the target if a minimum count between 1 and 1,000 leads to such a
    size; otherwise it is the nearest that the search finds. Small text gives fewer
    subtokens.

    Raises AlphabetSizeError if `vocab_size` is less than the special tokens and the
    text's characters need, and ValueError if there is no text, or a sentence contains a
    lone surrogate.
    """
    token_counts = count_tokens(sentences)
    if not token_counts:
        raise ValueError(
            "The vocabulary needs text to learn from. Received: no text. Check the"
            " training files."
        )
    smallest = len(RESERVED) + len(alphabet_of(token_counts))
    if vocab_size < smallest:
        raise AlphabetSizeError(vocab_size, smallest)
    subtokens = learn_to_size(token_counts, vocab_size)
    with atomic_file(path) as file:
        file.writelines(f"'{subtoken}'\n".encode() for subtoken in subtokens)


def count_tokens(sentences: Iterable[str]) -> Counter[str]:
    """How often each token occurs. Raises ValueError if a sentence contains a lone
    surrogate.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        check_unicode(sentence)
        counts.update(tokenize(sentence))
    return counts


def alphabet_of(tokens: Iterable[str]) -> frozenset[str]:
    """The characters that are themselves subtokens: those of the tokens, the special
    tokens and escapes.
    """
    return subword_encoder.ESCAPE_CHARACTERS.union(*RESERVED, *tokens) - UNWRITABLE


def learn_to_size(token_counts: Mapping[str, int], target_size: int) -> list[str]:
    """About `target_size` subtokens, in the order of their ids.

    Bisects the minimum count as tensor2tensor does, and like it accepts a vocabulary
    within 1 % of the target. Of vocabularies as near to the target, the one tried first
    is returned.
    """
    smallest, largest = 1, LARGEST_MIN_COUNT
    tried: list[tuple[int, int, list[str]]] = []
    while True:
        min_count = (smallest + largest) // 2
        subtokens = learn_subtokens(token_counts, min_count)
        distance = abs(len(subtokens) - target_size)
        tried.append((distance, len(tried), subtokens))
        if distance * 100 < target_size or smallest >= largest or min_count < 2:
            return min(tried)[2]
        if len(subtokens) > target_size:
            smallest = min_count + 1
        else:
            largest = min_count - 1


def learn_subtokens(token_counts: Mapping[str, int], min_count: int) -> list[str]:
    """Subtokens in the order of their ids: the special tokens, then the most frequent
    first.

    A string becomes a subtoken if it occurs at least `min_count` times, 1 or more,
    outside of longer subtokens.
    """
    alphabet = alphabet_of(token_counts)
    tokens = [escape(token, alphabet) + END for token in token_counts]
    text, token_ends = "".join(tokens), np.cumsum([len(token) for token in tokens])
    occurrences = np.fromiter(token_counts.values(), np.int64, len(tokens))
    subtokens = list(alphabet)
    for _ in range(ITERATIONS):
        starts = np.array(_subtoken_starts(text, subtokens), np.int64)
        counts = occurrences[np.searchsorted(token_ends, starts, side="right")]
        prefixes = dict.fromkeys(alphabet, 0) | _frequent_prefixes(
            text, starts, counts, min_count
        )
        ranked = sorted(
            ((count, subtoken) for subtoken, count in prefixes.items()), reverse=True
        )
        subtokens = [*RESERVED, *(subtoken for _, subtoken in ranked)]
    return subtokens


def _subtoken_starts(text: str, subtokens: Iterable[str]) -> list[int]:
    """Where subtokens begin if each token of a text is split into them; END after a
    token is not one.
    """
    known = frozenset((*subtokens, END))
    matches = longest_matches(text, known, longest_by_start(known))
    ends = itertools.accumulate(map(len, matches))
    return [
        end - len(match)
        for match, end in zip(matches, ends, strict=True)
        if match != END
    ]


def _frequent_prefixes(
    text: str, starts: np.ndarray, counts: np.ndarray, min_count: int
) -> dict[str, int]:
    """Prefixes that occur at least `min_count` times outside of longer such prefixes,
    and all single characters.

    They are prefixes of the rest of a token after each of the `starts`, [N] indices
    into `text`; that token occurs `counts` times, [N]. tensor2tensor counts every
    prefix, and subtracts the count of each subtoken from those of its own prefixes.
    Here prefixes grow by one character at a time, and rare ones stop growing: in text
    without spaces a token is as long as a clause, and nearly all of its prefixes occur
    once.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)
    # for each length from 1: of each prefix [P], where it begins, its index among those
    # one shorter, its occurrences
    levels: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
    prefix = np.zeros_like(starts)  # of each start, the index of its prefix one shorter
    while len(starts):
        characters = codes[starts + len(levels)]
        _, first, group = np.unique(
            prefix * NUM_CODES + characters, return_index=True, return_inverse=True
        )
        totals = np.bincount(group, counts).astype(np.int64)
        levels.append((starts[first], prefix[first], totals))
        grows = (totals[group] >= min_count) & (codes[starts + len(levels)] != ord(END))
        starts, counts, prefix = starts[grows], counts[grows], group[grows]

    frequent = {}
    # of each prefix: inside of longer ones
    inside: np.ndarray = np.zeros(len(levels[-1][0]), np.int64)
    for length in range(len(levels), 0, -1):
        begins, shorter, totals = levels[length - 1]
        outside = totals - inside
        chosen = outside >= min_count
        for i in np.flatnonzero(chosen | (length == 1)):
            frequent[text[begins[i] : begins[i] + length]] = int(outside[i])
        inside = np.bincount(
            shorter,
            np.where(chosen, totals, inside),
            len(levels[max(length - 2, 0)][0]),
        )
        inside = inside.astype(np.int64)
    return frequent
