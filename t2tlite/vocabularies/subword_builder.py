"""Learns a subword vocabulary as tensor2tensor's SubwordTextEncoder does: the same text
gives the same file.

Each of four iterations splits every token with the vocabulary so far. A string that
begins where a subtoken of this split begins is a candidate. Frequent candidates become
subtokens, long ones before short ones. A search over the minimum count of a frequent
candidate gives the vocabulary about the requested size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

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
# A line of a file cannot contain these, so their numbers are written.
UNWRITABLE = frozenset("\n\r")
ITERATIONS = 4
LARGEST_MIN_COUNT = 1000

END = "\n"  # between tokens; none contains it
NUM_CODES = 0x110000  # of Unicode


class AlphabetSizeError(ValueError):
    """vocab_size is less than `smallest`, the number of special tokens and characters
    of the text.
    """

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
    size. Otherwise it is the nearest size that the search tries. Small text gives fewer
    subtokens.

    Raises AlphabetSizeError if `vocab_size` is less than the number of special tokens
    and characters of the text, and ValueError if there is no text, or a sentence
    contains a lone surrogate.
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
    """Counts the occurrences of each token. Raises ValueError if a sentence contains a
    lone surrogate.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        check_unicode(sentence)
        counts.update(tokenize(sentence))
    return counts


def alphabet_of(tokens: Iterable[str]) -> frozenset[str]:
    """The characters that are subtokens: those of the tokens, the special tokens and
    escapes.
    """
    return subword_encoder.ESCAPE_CHARACTERS.union(*RESERVED, *tokens) - UNWRITABLE


def learn_to_size(token_counts: Mapping[str, int], target_size: int) -> list[str]:
    """Learns about `target_size` subtokens, in the order of their ids.

    Bisects the minimum count as tensor2tensor does, and like it accepts a vocabulary
    within 1 % of the target. Among vocabularies equally near to the target, returns the
    first.
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
    """Learns subtokens, in the order of their ids: the special tokens, then the most
    frequent first.

    A string becomes a subtoken if it occurs at least `min_count` times (at least 1)
    outside of longer subtokens.
    """
    alphabet = alphabet_of(token_counts)
    tokens = [escape(token, alphabet) + END for token in token_counts]
    text = "".join(tokens)
    token_ends = np.cumsum(list(map(len, tokens)))
    occurrences = np.fromiter(token_counts.values(), np.int64, len(tokens))
    subtokens = list(alphabet)
    for _ in range(ITERATIONS):
        starts = np.array(_subtoken_starts(text, subtokens), np.int64)
        counts = occurrences[np.searchsorted(token_ends, starts, side="right")]
        prefixes = dict.fromkeys(alphabet, 0)
        prefixes |= _frequent_prefixes(text, starts, counts, min_count)
        ranked = sorted(zip(prefixes.values(), prefixes, strict=True), reverse=True)
        subtokens = list(RESERVED)
        for _, subtoken in ranked:
            subtokens.append(subtoken)
    return subtokens


def _subtoken_starts(text: str, subtokens: Iterable[str]) -> list[int]:
    """The indices at which subtokens begin when each token of a text is split; END
    after a token is not a subtoken.
    """
    known = frozenset((*subtokens, END))
    starts = []
    start = 0
    for match in longest_matches(text, known, longest_by_start(known)):
        if match != END:
            starts.append(start)
        start += len(match)
    return starts


class _Prefixes(NamedTuple):
    """The different prefixes of one length, [P] each."""

    begins: np.ndarray  # an index in the text at which the prefix occurs
    shorter: np.ndarray  # its index among the prefixes that are one character shorter
    totals: np.ndarray  # its occurrences


def _frequent_prefixes(
    text: str, starts: np.ndarray, counts: np.ndarray, min_count: int
) -> dict[str, int]:
    """Counts the prefixes that occur at least `min_count` times outside of longer such
    prefixes, and all single characters.

    A prefix begins at one of `starts`, [N] indices in `text`, and ends in the same
    token. This token occurs `counts` times, [N]. tensor2tensor counts every prefix, and
    subtracts the count of each subtoken from the counts of its own prefixes. Here
    prefixes grow by one character at a time, and rare prefixes stop growing: in text
    without spaces a token is as long as a clause, and nearly all of its prefixes occur
    once.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), np.uint32).astype(np.int64)
    levels: list[_Prefixes] = []  # by length, from 1
    prefix = np.zeros_like(starts)  # the index of each start's prefix one shorter
    while len(starts):
        characters = codes[starts + len(levels)]
        _, first, group = np.unique(
            prefix * NUM_CODES + characters, return_index=True, return_inverse=True
        )
        totals = np.bincount(group, counts).astype(np.int64)
        levels.append(_Prefixes(starts[first], prefix[first], totals))
        grows = (totals[group] >= min_count) & (codes[starts + len(levels)] != ord(END))
        starts = starts[grows]
        counts = counts[grows]
        prefix = group[grows]

    frequent = {}
    # the occurrences of each prefix inside of longer frequent prefixes
    inside: np.ndarray = np.zeros(len(levels[-1].begins), np.int64)
    for length in range(len(levels), 0, -1):
        begins, shorter, totals = levels[length - 1]
        outside = totals - inside
        chosen = outside >= min_count
        for i in np.flatnonzero(chosen | (length == 1)):
            frequent[text[begins[i] : begins[i] + length]] = int(outside[i])
        inside = np.bincount(
            shorter,
            np.where(chosen, totals, inside),
            len(levels[max(length - 2, 0)].begins),
        )
        inside = inside.astype(np.int64)
    return frequent
