"""Reads the pairs that a problem yields, and checks each: a user's problem may yield
anything.
"""

from __future__ import annotations

import hashlib
import itertools
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from t2tlite.console import progress_bar
from t2tlite.data import encode_shards
from t2tlite.data.problem import Problem
from t2tlite.texts import text_paths
from t2tlite.vocabularies.text_encoder import check_unicode

Pair = tuple[str, str]
SHOWN_CHARACTERS = 100  # of what a problem yielded, in messages
HASHED_PAIRS = 500  # at a time, which is faster than one by one
# of tensor2tensor's examples
T2T_FIELDS = ("inputs", "targets")


def checked_pairs(problem: Problem, split: str, tmp_dir: Path | None) -> Iterator[Pair]:
    """Yields the pairs of a split, each checked.

    Raises ValueError with problem, split and the pair's number: at once if
    `problem.pairs` returns nothing to iterate over; for what is not a pair of two
    strings, without line breaks and lone surrogates; and for an exception of the
    problem's own code. FileNotFoundError stays one, and errors of t2tlite's readers,
    which name file and line, are raised as they are.
    """
    place = f"{problem.name()}, {split}"
    try:
        pairs = problem.pairs(split, tmp_dir)
    except Exception as error:
        _raise_explained(error, place)
    try:
        iterator = iter(pairs)
    except TypeError:
        raise ValueError(
            f"{place}: the method `pairs` must yield pairs (source, target). Received:"
            f" {_shown(pairs)}. Write yield source, target."
        ) from None
    return _checked(iterator, place)


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
            _update(self._digests[split], chunk)
            yield chunk

    def read(self) -> str:
        """Reads all text and returns its hash."""
        for split in self.pairs:
            for _ in self.chunks(split):
                pass
        return self.sha256()

    def sha256(self) -> str:
        """Identifies what was read, however it is divided into chunks."""
        text = hashlib.sha256()
        for split, digest in self._digests.items():
            text.update(f"{split}\n".encode() + digest.digest())
        return text.hexdigest()


def _checked(pairs: Iterator[Any], place: str) -> Iterator[Pair]:
    for number in itertools.count(1):
        try:
            pair = next(pairs)
        except StopIteration:
            return
        except Exception as error:
            _raise_explained(error, f"{place} pair {number}")
        try:
            _check_pair(pair)
        except ValueError as error:
            raise ValueError(f"{place} pair {number}: {error}") from error
        yield pair


def _check_pair(pair: Any) -> None:
    is_pair = isinstance(pair, tuple | list) and len(pair) == 2
    if not (is_pair and isinstance(pair[0], str) and isinstance(pair[1], str)):
        raise ValueError(
            "a pair (source, target) of two strings is required. Received:"
            f" {_shown(pair)}. {_advice(pair)}"
        )
    source, target = pair
    if "\n" in source or "\n" in target:
        raise ValueError(
            "a text must not contain a line break. Received:"
            f" {_shown(pair)}. Replace it with a space."
        )
    check_unicode(source)
    check_unicode(target)


def _advice(pair: Any) -> str:
    """What to yield instead of this."""
    if isinstance(pair, dict) and pair:
        texts = [f"example[{name!r}]" for name in T2T_FIELDS]
        if not set(T2T_FIELDS) <= set(pair):
            texts = text_paths(pair)[:2] or ["source", "target"]
        return f"Yield {', '.join(texts)} instead of the example."
    parts = pair if isinstance(pair, tuple | list) else [pair]
    if any(isinstance(part, bytes) for part in parts):
        return "Yield source, target, and decode bytes: data.decode()."
    return "Yield source, target."


def _shown(value: Any) -> str:
    text = repr(value)
    if len(text) <= SHOWN_CHARACTERS:
        return text
    return text[: SHOWN_CHARACTERS - 3] + "..."


def _raise_explained(error: Exception, place: str) -> NoReturn:
    """Raises an exception of `problem.pairs`, with where it was raised."""
    frames = traceback.extract_tb(error.__traceback__)[1:]  # without this file's
    raised_in = _module(error)
    if raised_in.startswith("t2tlite.") and isinstance(error, ValueError | OSError):
        raise error
    where = ""
    if frames:
        file = frames[0].filename
        deepest = [frame for frame in frames if frame.filename == file][-1]
        where = f", raised in {file}, line {deepest.lineno}"
    kind = FileNotFoundError if isinstance(error, FileNotFoundError) else ValueError
    raise kind(
        f"{place}: {type(error).__name__}: {error}{where}. Correct the problem's"
        " method `pairs`, or what it reads."
    ) from error


def _module(error: Exception) -> str:
    """The module whose code raised an exception."""
    step = error.__traceback__
    while step is not None and step.tb_next is not None:
        step = step.tb_next
    return "" if step is None else str(step.tb_frame.f_globals.get("__name__", ""))


def _update(text: hashlib._Hash, chunk: Sequence[Pair]) -> None:
    """Adds pairs to the hash of the text before them."""
    for start in range(0, len(chunk), HASHED_PAIRS):
        texts = itertools.chain.from_iterable(chunk[start : start + HASHED_PAIRS])
        text.update("\n".join([*texts, ""]).encode())
