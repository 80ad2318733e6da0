"""Reads the pairs that a problem yields, and checks each: a user's problem may yield
anything. And notices text that a file holds otherwise than was meant: a header line,
columns of numbers, quotes that a program's export added, sentences that end in CR; and
training pairs that would spoil a result: pairs that are also in dev or test, that
repeat an earlier pair of the corpus, or whose target is the source.
"""

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from t2tlite.console import counted, progress_bar, say
from t2tlite.data import encode_shards
from t2tlite.data.language_codes import CODES
from t2tlite.data.problem import Problem
from t2tlite.data.splits import DEV, TRAIN
from t2tlite.texts import described
from t2tlite.vocabularies.normalisation import is_blank, normalise
from t2tlite.vocabularies.text_encoder import check_unicode

Pair = tuple[str, str]

# a text that is a number or a date, or in quotes
ODD = re.compile(r'(?P<numbers>[+-]?[\d.,:/-]*\d)|(?P<quotes>".+")', re.DOTALL)
ODD_TEXTS = {
    "numbers": "are numbers. Check that these are the right columns.",
    "quotes": "are in quotes, which the model learns to write. If an export added them,"
    " export again without quotes.",
}
SHARE = 0.5  # of the texts of a side; fewer may be meant
# the names of columns; each may have a number, or be of several words
HEADER_WORDS = {
    *"source src target tgt trg text sentence translation input inputs output".split(),
    *"outputs targets original reference".split(),
    *CODES,
    *CODES.values(),
}

# the values of --drop, in the order in which dropped pairs are counted
REASONS = ("duplicates", "test_overlap", "copies")
NO_HASH = 2**63 - 1  # above all others


class ReadSplit:
    """What was read of a split: the number of its pairs, a hash, and what texts look
    like, side by side.
    """

    def __init__(self) -> None:
        self.pairs = 0
        self.digest = hashlib.sha256()
        self._header = ""
        self._broken = 0  # pairs with a CR
        self._odd: Counter[tuple[str, str]] = Counter()

    def add(self, pairs: Sequence[Pair]) -> None:
        """Adds the next pairs."""
        if not self.pairs and all(map(_is_header, pairs[0])):
            self._header = " | ".join(pairs[0])
        self.pairs += len(pairs)
        for source, target in pairs:
            self.digest.update(f"{source}\n{target}\n".encode())
            self._broken += "\r" in source or "\r" in target
            for side, text in (("source", source), ("target", target)):
                if match := ODD.fullmatch(text):
                    self._odd[match.lastgroup or "", side] += 1

    def report(self, split: str) -> None:
        """Says what seems to be misread, and what to do."""
        lines = []
        if self._header:
            lines.append(
                f"the first pair seems to be a header, {self._header}. If so, remove"
                " it: tail -n +2 OLD > NEW."
            )
        for (kind, side), count in sorted(self._odd.items()):
            if count > SHARE * self.pairs:
                texts = counted(self.pairs, side)
                lines.append(f"{count:,} of {texts} {ODD_TEXTS[kind]}")
        if self._broken:
            lines.append(
                f"{counted(self._broken, 'pair')} with a carriage return (CR) inside a"
                " text, where no line ends. If sentences end there, make them lines:"
                " tr '\\r' '\\n' < OLD > NEW."
            )
        for line in lines:
            say(f"{split}: {line}")


def _is_header(text: str) -> bool:
    words = re.findall(r"[^\W\d_]+", text.lower())
    return bool(words) and HEADER_WORDS.issuperset(words)


class ReadText:
    """The pairs of a problem, read split by split."""

    def __init__(self, problem: Problem, tmp_dir: Path | None) -> None:
        """Raises ValueError unless there are the splits train and dev, and each
        occurs once.
        """
        names = problem.splits()
        if not {TRAIN, DEV} <= set(names) or len(set(names)) < len(names):
            raise ValueError(
                "Data needs the splits train and dev (pairs and dev_pairs), each once."
                f" Received: {', '.join(names) or 'none'}."
            )
        self.splits = {name: ReadSplit() for name in names}
        self._problem = problem
        self._tmp_dir = tmp_dir

    def chunks(self, split: str) -> Iterator[list[Pair]]:
        """Yields the pairs of a split in chunks, with a progress bar."""
        pairs = checked_pairs(self._problem, split, self._tmp_dir)
        bar = progress_bar(pairs, desc=f"reading {split}", unit=" pairs")
        for chunk in encode_shards.chunks(bar):
            self.splits[split].add(chunk)
            yield chunk

    def sha256(self) -> str:
        """Identifies what was read, however it is divided into chunks."""
        text = hashlib.sha256()
        for name, split in self.splits.items():
            text.update(f"{name}\n".encode() + split.digest.digest())
        return text.hexdigest()


def checked_pairs(problem: Problem, split: str, tmp_dir: Path | None) -> Iterator[Pair]:
    """Yields the pairs of a split, each checked.

    Raises ValueError for what is not a pair of two strings without line breaks and lone
    surrogates; those of a user's problem name it, the split and the pair's number.
    """
    number = 1
    try:
        for pair in problem.pairs(split, tmp_dir):
            yield _checked_pair(pair)
            number += 1
    except ValueError as error:
        if is_of_t2tlite(problem):
            raise  # it names the file and the line
        place = f"{problem.name()}, {split} pair {number}"
        raise ValueError(f"{place}: {error}") from error


def is_of_t2tlite(problem: Problem) -> bool:
    """Whether options and files define the pairs, not a user's code."""
    return type(problem).__module__.startswith("t2tlite.problems.")


def _checked_pair(pair: Any) -> Pair:
    """Returns the pair as a plain tuple, which can be pickled."""
    # an array is a row of a table
    is_pair = isinstance(pair, tuple | list | np.ndarray) and len(pair) == 2
    is_text = is_pair and isinstance(pair[0], str) and isinstance(pair[1], str)
    if not is_text or "\n" in pair[0] + pair[1]:
        raise ValueError(
            "a pair (source, target) of two strings, each one line, is required."
            f" Received: {described(pair)}."
        )
    source, target = pair
    check_unicode(source)
    check_unicode(target)
    return source, target


class PairAudit:
    """The findings in the training corpora of a problem: `counts`, by split and reason.

    `add_evaluated` first gets every pair of dev and test; then `audit` gets the
    training pairs, chunk by chunk. Texts are compared as vocabularies read them, by
    64-bit hashes: 8 bytes of memory for each training pair, and some 100 for each of
    dev and test.
    """

    def __init__(self, drop: Collection[str], targets_are_text: bool = True) -> None:
        """`drop` are the REASONS for which pairs are left out; ValueError for others.
        Targets that are no text, such as trees, are not looked for in dev and test.
        """
        if not set(drop) <= set(REASONS):
            raise ValueError(
                f"drop must name some of {', '.join(REASONS)}. Received:"
                f" {', '.join(drop)}."
            )
        self.counts: dict[str, Counter[str]] = {}
        self._drop = [reason for reason in REASONS if reason in drop]
        self._targets_are_text = targets_are_text
        self._sources: set[int] = set()  # of dev and test
        self._targets: set[int] = set()
        # hashes of the pairs of each corpus, ascending
        self._seen: dict[str, np.ndarray] = {}

    def add_evaluated(self, pairs: Iterable[Pair]) -> None:
        """Remembers pairs of dev or test."""
        for source, target in pairs:
            self._sources.add(hash(normalise(source)))
            if self._targets_are_text:
                self._targets.add(hash(normalise(target)))

    def audit(
        self,
        split: str,
        pairs: Iterable[Pair],
    ) -> tuple[list[Pair], dict[str, int]]:
        """Counts the findings in the next pairs of a training corpus. Returns the pairs
        to train on, and the numbers of the others by the reason: "empty" have a blank
        side, and are no findings.
        """
        dropped = dict.fromkeys(("empty", *self._drop), 0)
        filled = []
        texts = []
        for pair in pairs:
            if is_blank(pair[0]) or is_blank(pair[1]):
                dropped["empty"] += 1
            else:
                filled.append(pair)
                texts.append(tuple(map(normalise, pair)))
        repeats = self._repeats(split, list(map(hash, texts)))
        counts = self.counts.setdefault(split, Counter(dict.fromkeys(REASONS, 0)))
        kept = []
        for pair, (source, target), is_repeat in zip(
            filled, texts, repeats, strict=True
        ):
            reasons = ["duplicates"] if is_repeat else []
            if hash(source) in self._sources or hash(target) in self._targets:
                reasons.append("test_overlap")
            if source == target:
                reasons.append("copies")
            counts.update(reasons)
            to_drop = [reason for reason in reasons if reason in self._drop]
            if to_drop:
                dropped[to_drop[0]] += 1
            else:
                kept.append(pair)
        return kept, dropped

    def _repeats(self, split: str, hashes: list[int]) -> list[bool]:
        """Whether each of the next pairs, by its hash, repeats an earlier one."""
        seen = self._seen.get(split, np.array([NO_HASH]))
        unique, first = np.unique(np.array(hashes, np.int64), return_index=True)
        at: np.ndarray = np.asarray(np.searchsorted(seen, unique))
        is_new = seen[at] != unique
        self._seen[split] = np.insert(seen, at[is_new], unique[is_new])
        repeats: np.ndarray = np.ones(len(hashes), bool)
        repeats[first[is_new]] = False
        return repeats.tolist()
