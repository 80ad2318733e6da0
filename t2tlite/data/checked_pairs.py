"""Reads the pairs that a problem yields, and checks each: a user's problem may yield
anything.
"""

from __future__ import annotations

import hashlib
import itertools
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from t2tlite.console import progress_bar
from t2tlite.data import encode_shards
from t2tlite.data.problem import Problem
from t2tlite.texts import described
from t2tlite.vocabularies.text_encoder import check_unicode

Pair = tuple[str, str]


class ReadText:
    """The pairs of a problem, read split by split: their numbers, and a hash."""

    def __init__(self, problem: Problem, tmp_dir: Path | None) -> None:
        self.pairs = dict.fromkeys(problem.splits(), 0)  # split -> read so far
        self._problem = problem
        self._tmp_dir = tmp_dir
        self._digests = {split: hashlib.sha256() for split in self.pairs}

    def chunks(self, split: str) -> Iterator[list[Pair]]:
        """Yields the pairs of a split in chunks, with a progress bar."""
        pairs = checked_pairs(self._problem, split, self._tmp_dir)
        bar = progress_bar(pairs, desc=f"reading {split}", unit=" pairs")
        for chunk in encode_shards.chunks(bar):
            self.pairs[split] += len(chunk)
            lines = [*itertools.chain.from_iterable(chunk), ""]
            self._digests[split].update("\n".join(lines).encode())
            yield chunk

    def sha256(self) -> str:
        """Identifies what was read, however it is divided into chunks."""
        text = hashlib.sha256()
        for split, digest in self._digests.items():
            text.update(f"{split}\n".encode() + digest.digest())
        return text.hexdigest()


def checked_pairs(problem: Problem, split: str, tmp_dir: Path | None) -> Iterator[Pair]:
    """Yields the pairs of a split, each checked.

    Raises ValueError with problem, split and the pair's number for what is not a pair
    of two strings without line breaks and lone surrogates, and for an exception of a
    user's own code. FileNotFoundError stays one.
    """
    place = f"{problem.name()}, {split} pair"
    for number, pair in enumerate(_explained_pairs(problem, split, tmp_dir, place), 1):
        try:
            _check_pair(pair)
        except ValueError as error:
            raise ValueError(f"{place} {number}: {error}") from error
        yield pair


def is_of_t2tlite(problem: Problem) -> bool:
    """Whether options and files define the pairs, not a user's code."""
    return type(problem).__module__.startswith("t2tlite.problems.")


def _explained_pairs(
    problem: Problem, split: str, tmp_dir: Path | None, place: str
) -> Iterator[Any]:
    """Yields what `problem.pairs` does. Raises an exception of a user's code with the
    line of `pairs` that raised it.
    """
    number = 1
    try:
        for pair in problem.pairs(split, tmp_dir):
            yield pair
            number += 1
    except Exception as error:
        if is_of_t2tlite(problem):
            raise
        where = "pairs"
        for frame in traceback.extract_tb(error.__traceback__)[1:2]:
            where = f"{frame.filename}, line {frame.lineno}"
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        name = type(error).__name__
        raise kind(f"{place} {number}: {name}: {error}, in {where}.") from error


def _check_pair(pair: Any) -> None:
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if not (is_pair and isinstance(pair[0], str) and isinstance(pair[1], str)):
        raise ValueError(
            "a pair (source, target) of two strings is required. Received:"
            f" {described(pair)}. Yield source, target."
        )
    source, target = pair
    if "\n" in source or "\n" in target:
        raise ValueError(
            f"a text must not contain a line break. Received: {described(pair)}."
        )
    check_unicode(source)
    check_unicode(target)
