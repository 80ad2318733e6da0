"""Learns a subword vocabulary as tensor2tensor's SubwordTextEncoder does: the same text, the same file.

Four times over, every token is cut with the vocabulary so far, and what may become a subtoken is any string that begins
where a subtoken of this cut begins. Frequent ones are taken, long before short. How frequent they must be is
searched for, so that the vocabulary gets about the size asked for.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from t2tlite.files.atomic_file import atomic_file
from t2tlite.vocabularies.sentencepiece_encoder import check_unicode
from t2tlite.vocabularies.subword_encoder import (
    EOS_MARKS,
    ESCAPE_CHARACTERS,
    PAD_MARKS,
    escape,
    longest_matches,
    tokenize,
)

RESERVED = PAD_MARKS[0], EOS_MARKS[0]
UNWRITABLE = frozenset("\n\r")  # a file of lines cannot hold them, so tokens that do are spelt with their numbers
ITERATIONS = 4
LARGEST_MIN_COUNT = 1000


def build_subwords(
    sentences: Iterable[str], target_size: int, path: str | Path, max_subtoken_length: int | None = None
) -> None:
    """Learns a vocabulary of about `target_size` subtokens from `sentences` and writes it to `path`.

    Args:
        sentences: plain text, read once. tensor2tensor's problems strip each line before.
        target_size: number of ids wanted. The vocabulary has that many, give or take 1 %, if some minimum count between
            1 and 1,000 leads to it; otherwise what the search finds nearest. Small text gives fewer.
        path: the vocabulary file; appears whole or not at all.
        max_subtoken_length: learned subtokens are shorter than this many characters, as in tensor2tensor. Sets a bound
            to the work where text has long tokens, such as Chinese clauses.

    Raises:
        ValueError: there is no text, `target_size` is less than the marks and the text's characters need,
            `max_subtoken_length` is less than 2, or a sentence holds a lone surrogate.
        OSError: the file cannot be written.
    """
    token_counts = count_tokens(sentences)
    if not token_counts:
        raise ValueError("The vocabulary needs text to learn from. Received: no text. Check the training files.")
    smallest = len(RESERVED) + len(alphabet_of(token_counts))
    if target_size < smallest:
        raise ValueError(
            f"target_size must be at least {smallest} for this text: {len(RESERVED)} ids are marks, and each character "
            f"needs one. Received: {target_size}. Raise target_size; the vocabulary then has about that many subtokens."
        )
    subtokens = learn_to_size(token_counts, target_size, max_subtoken_length)
    with atomic_file(path) as file:
        file.write("".join(f"'{subtoken}'\n" for subtoken in subtokens).encode("utf-8"))


def count_tokens(sentences: Iterable[str]) -> Counter[str]:
    """How often each token occurs.

    Raises:
        ValueError: a sentence holds a lone surrogate.
    """
    counts: Counter[str] = Counter()
    for sentence in sentences:
        check_unicode(sentence)
        counts.update(tokenize(sentence))
    return counts


def alphabet_of(tokens: Iterable[str]) -> frozenset[str]:
    """The characters that are subtokens themselves: those of the tokens, the marks and escaping."""
    return ESCAPE_CHARACTERS.union(*RESERVED, *tokens) - UNWRITABLE


def learn_to_size(
    token_counts: Mapping[str, int], target_size: int, max_subtoken_length: int | None = None
) -> list[str]:
    """Subtokens in the order of their ids, about `target_size` of them.

    Bisects the minimum count as tensor2tensor does, which also settles for a vocabulary within 1 % of the target.
    """

    def bisect(smallest: int, largest: int) -> list[str]:
        min_count = (smallest + largest) // 2
        subtokens = learn_subtokens(token_counts, min_count, max_subtoken_length)
        distance = abs(len(subtokens) - target_size)
        if distance * 100 < target_size or smallest >= largest or min_count < 2:
            return subtokens
        if len(subtokens) > target_size:
            other = bisect(min_count + 1, largest)
        else:
            other = bisect(smallest, min_count - 1)
        return other if abs(len(other) - target_size) < distance else subtokens

    return bisect(1, LARGEST_MIN_COUNT)


def learn_subtokens(
    token_counts: Mapping[str, int], min_count: int, max_subtoken_length: int | None = None
) -> list[str]:
    """Subtokens in the order of their ids: the marks, then the most frequent first.

    Args:
        token_counts: how often each token occurs.
        min_count: a string is taken if it occurs at least this often outside of longer ones that are taken.
        max_subtoken_length: learned subtokens are shorter than this many characters.

    Raises:
        ValueError: `min_count` is less than 1, or `max_subtoken_length` less than 2.
    """
    if min_count < 1:
        raise ValueError(f"min_count must be at least 1. Received: {min_count}.")
    if max_subtoken_length is not None and max_subtoken_length < 2:
        raise ValueError(
            "max_subtoken_length must be at least 2, since subtokens are shorter than it. Received: "
            f"{max_subtoken_length}. Raise it, or give none."
        )
    alphabet = alphabet_of(token_counts)
    escaped_counts = [(escape(token, alphabet), count) for token, count in token_counts.items()]
    longest = None if max_subtoken_length is None else max_subtoken_length - 1
    subtokens = list(alphabet)
    for _ in range(ITERATIONS):
        rests = _count_rests(escaped_counts, subtokens, longest)
        counts = dict.fromkeys(alphabet, 0) | _frequent_prefixes(rests, min_count)
        ranked = sorted(((count, subtoken) for subtoken, count in counts.items()), reverse=True)
        subtokens = [*RESERVED, *(subtoken for _, subtoken in ranked)]
    return subtokens


def _count_rests(
    escaped_counts: Iterable[tuple[str, int]], subtokens: Iterable[str], longest: int | None
) -> dict[str, int]:
    """Cuts every token; what is left of it where a subtoken begins, up to `longest` characters -> how often."""
    known = frozenset(subtokens)
    longest_known = max(map(len, known))
    rests: dict[str, int] = defaultdict(int)
    for escaped, count in escaped_counts:
        start = 0
        for subtoken in longest_matches(escaped, known, longest_known):
            rests[escaped[start:] if longest is None else escaped[start : start + longest]] += count
            start += len(subtoken)
    return rests


def _frequent_prefixes(rests: Mapping[str, int], min_count: int) -> dict[str, int]:
    """Prefixes that occur at least `min_count` times outside of longer such prefixes, and all single characters.

    tensor2tensor counts every prefix, and subtracts the count of each it takes from those of its own prefixes. The
    same counts result, sooner, if a string that is too rare hands its count on to the string that is one character
    shorter.
    """
    by_length: dict[int, dict[str, int]] = defaultdict(lambda: defaultdict(int))
    for rest, count in rests.items():
        by_length[len(rest)][rest] = count
    frequent = {}
    for length in range(max(by_length), 1, -1):
        shorter = by_length[length - 1]
        for string, count in by_length.pop(length, {}).items():
            if count >= min_count:
                frequent[string] = count
            else:
                shorter[string[:-1]] += count
    return frequent | by_length[1]
