"""Reads the pairs that a problem yields, and checks each: a user's problem may yield
anything.
"""

import hashlib
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
        digest = self._digests[split]
        for chunk in encode_shards.chunks(bar):
            self.pairs[split] += len(chunk)
            for source, target in chunk:
                digest.update(f"{source}\n{target}\n".encode())
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
    user's own code, with its line. FileNotFoundError stays one.
    """
    number = 1
    try:
        for pair in problem.pairs(split, tmp_dir):
            _check_pair(pair)
            yield pair
            number += 1
    except Exception as error:
        if is_of_t2tlite(problem):
            raise
        message = str(error)
        frame = traceback.extract_tb(error.__traceback__)[:2][-1]
        if frame.name != _check_pair.__name__:
            name = type(error).__name__
            message = f"{name}: {error}, in {frame.filename}, line {frame.lineno}."
        kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
        raise kind(f"{problem.name()}, {split} pair {number}: {message}") from error


def is_of_t2tlite(problem: Problem) -> bool:
    """Whether options and files define the pairs, not a user's code."""
    return type(problem).__module__.startswith("t2tlite.problems.")


def _check_pair(pair: Any) -> None:
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if not (is_pair and isinstance(pair[0], str) and isinstance(pair[1], str)):
        raise ValueError(
            "a pair (source, target) of two strings is required. Received:"
            f" {described(pair)}. Yield source, target."
        )
    for text in pair:
        if "\n" in text:
            raise ValueError(
                f"a text must not contain a line break. Received: {described(pair)}."
            )
        check_unicode(text)
