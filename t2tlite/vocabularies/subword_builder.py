"""Learns a subword vocabulary as tensor2tensor's SubwordTextEncoder does: the same text gives the same file.

In each of four iterations, every token is split with the vocabulary so far, and any string that begins where a subtoken
of this split begins is a candidate. Frequent candidates become subtokens, long ones before short ones. The minimum
count that makes a candidate frequent is searched for, so that the vocabulary has about the requested size.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

from t2tlite.files.atomic_file import atomic_file
from t2tlite.vocabularies import subword_encoder
from t2tlite.vocabularies.subword_encoder import escape, longest_matches, tokenize
from t2tlite.vocabularies.text_encoder import check_unicode

RESERVED = subword_encoder.PAD_SUBTOKENS[0], subword_encoder.EOS_SUBTOKENS[0]
UNWRITABLE = frozenset("\n\r")  # cannot be in a line of a file: tokens that contain them are spelled with their numbers
ITERATIONS = 4
LARGEST_MIN_COUNT = 1000


def build_subwords(sentences: Iterable[str], target_size: int, path: str | Path) -> None:
    """Learns a vocabulary of about `target_size` subtokens from `sentences` and writes it to `path`.

    The sentences are read once; tensor2tensor's problems strip each first. The vocabulary is within 1 % of the target
    if a minimum count between 1 and 1,000 leads to such a size; otherwise it is the nearest that the search finds.
    Small text gives fewer.

    Raises ValueError if there is no text, `target_size` is less than the special tokens and the text's characters need,
    or a sentence contains a lone surrogate.
    """
    token_counts = count_tokens(sentences)
    if not token_counts:
        raise ValueError("The vocabulary needs text to learn from. Received: no text. Check the training files.")
    smallest = len(RESERVED) + len(alphabet_of(token_counts))
    if target_size < smallest:
        raise ValueError(
            f"target_size must be at least {smallest} for this text: {len(RESERVED)} ids are special tokens, and each "
            f"character needs one. Received: {target_size}. Raise target_size; the vocabulary then has about that many "
            "subtokens."
        )
    subtokens = learn_to_size(token_counts, target_size)
    with atomic_file(path) as file:
        file.writelines(f"'{subtoken}'\n".encode() for subtoken in subtokens)


def count_tokens(sentences: Iterable[str]) -> Counter[str]:
    """How often each token occurs. Raises ValueError if a sentence contains a lone surrogate."""
    counts: Counter[str] = Counter()
    for sentence in sentences:
        check_unicode(sentence)
        counts.update(tokenize(sentence))
    return counts


def alphabet_of(tokens: Iterable[str]) -> frozenset[str]:
    """The characters that are subtokens themselves: those of the tokens, of the special tokens and of escapes."""
    return subword_encoder.ESCAPE_CHARACTERS.union(*RESERVED, *tokens) - UNWRITABLE


def learn_to_size(token_counts: Mapping[str, int], target_size: int) -> list[str]:
    """About `target_size` subtokens, in the order of their ids.

    Bisects the minimum count as tensor2tensor does, which also accepts a vocabulary within 1 % of the target.
    """

    def bisect(smallest: int, largest: int) -> list[str]:
        min_count = (smallest + largest) // 2
        subtokens = learn_subtokens(token_counts, min_count)
        distance = abs(len(subtokens) - target_size)
        if distance * 100 < target_size or smallest >= largest or min_count < 2:
            return subtokens
        too_many = len(subtokens) > target_size
        other = bisect(min_count + 1, largest) if too_many else bisect(smallest, min_count - 1)
        return other if abs(len(other) - target_size) < distance else subtokens

    return bisect(1, LARGEST_MIN_COUNT)


def learn_subtokens(token_counts: Mapping[str, int], min_count: int) -> list[str]:
    """Subtokens in the order of their ids: the special tokens, then the most frequent first.

    A string becomes a subtoken if it occurs at least `min_count` times, 1 or more, outside of longer subtokens.
    """
    alphabet = alphabet_of(token_counts)
    escaped_counts = [(escape(token, alphabet), count) for token, count in token_counts.items()]
    subtokens = list(alphabet)
    for _ in range(ITERATIONS):
        counts = dict.fromkeys(alphabet, 0) | _frequent_prefixes(_count_rests(escaped_counts, subtokens), min_count)
        ranked = sorted(((count, subtoken) for subtoken, count in counts.items()), reverse=True)
        subtokens = [*RESERVED, *(subtoken for _, subtoken in ranked)]
    return subtokens


def _count_rests(escaped_counts: Iterable[tuple[str, int]], subtokens: Iterable[str]) -> dict[str, int]:
    """Splits every token into subtokens and counts the rests: what remains of a token from each subtoken on."""
    known = frozenset(subtokens)
    longest_known = max(map(len, known))
    rests: dict[str, int] = defaultdict(int)
    for escaped, count in escaped_counts:
        start = 0
        for subtoken in longest_matches(escaped, known, longest_known):
            rests[escaped[start:]] += count
            start += len(subtoken)
    return rests


def _frequent_prefixes(rests: Mapping[str, int], min_count: int) -> dict[str, int]:
    """Prefixes that occur at least `min_count` times outside of longer such prefixes, and all single characters.

    tensor2tensor counts every prefix, and subtracts the count of each subtoken from those of its own prefixes. Adding
    the count of a string that is too rare to that of the string one character shorter gives the same counts, sooner.
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
