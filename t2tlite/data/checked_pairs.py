"""Reads the pairs that a problem yields twice: checks each pair, and compares the
second reading with the first.

A user's problem may yield anything, and files may change while they are read. Both are
errors here, before anything becomes data.
"""

from __future__ import annotations

import hashlib
import itertools
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NoReturn

from t2tlite.console import counted, progress_bar
from t2tlite.data import encode_shards
from t2tlite.data.problem import Problem
from t2tlite.files.text_files import check_rereadable
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


class SplitDigest:
    """Digest of a split's first reading, chunk by chunk."""

    def __init__(self, split: str) -> None:
        self.split = split
        self.pairs = 0
        self._text = hashlib.sha256()
        self._chunks: list[bytes] = []  # SHA-256 of the text up to each chunk's end
        self._ends: list[int] = []  # of each chunk, the number of pairs up to its end
        # one byte of each pair's hash: shows where two readings differ
        self._hashes = bytearray()

    def add(self, chunk: Sequence[Pair]) -> None:
        """Records the next chunk of the first reading."""
        self.pairs += len(chunk)
        _update(self._text, chunk)
        self._chunks.append(self._text.digest())
        self._ends.append(self.pairs)
        self._hashes += _hashes(chunk)

    def digest(self) -> bytes:
        """Identifies all pairs, however they are divided into chunks."""
        return self._text.digest()

    def difference(
        self, number: int, text: bytes, first: int, chunk: Sequence[Pair]
    ) -> str:
        """How chunk `number` of the second reading, whose first pair has the index
        `first`, differs from the first reading's: "" if it does not. `text` is the
        SHA-256 of the second reading up to its end.
        """
        if number < len(self._chunks) and text == self._chunks[number]:
            return ""
        before = self._hashes[first : first + len(chunk)]
        now = _hashes(chunk)
        equal = 0
        while equal < len(before) and before[equal] == now[equal]:
            equal += 1
        if equal < len(before):
            place = f"pair {first + equal + 1:,} of {self.split}"
            return f"another {place} the second time, {_shown(chunk[equal])}"
        if len(before) < len(now):
            return self.other_count("more")
        if first + len(now) < self._ends[number]:
            return self.other_count(f"{first + len(now):,}")
        place = f"the pairs {first + 1:,} to {first + len(now):,} of {self.split}"
        return f"others among {place} the second time"

    def other_count(self, count: str) -> str:
        """How the second reading, of `count` pairs, differs from the first."""
        return f"{counted(self.pairs, 'pair')} of {self.split} at first, then {count}"


class TwoReadings:
    """The text of a problem, read once to learn a vocabulary and again to be encoded.
    The second reading must equal the first.
    """

    def __init__(self, problem: Problem, tmp_dir: Path | None) -> None:
        self.splits = {split: SplitDigest(split) for split in problem.splits()}
        self._problem = problem
        self._tmp_dir = tmp_dir
        # of each raw file its size and modification time
        self._files: dict[Path, tuple[int, int]] = {}

    def record_files(self) -> None:
        """Records the state of the raw files. Raises ValueError if one is a pipe."""
        try:
            paths = self._problem.files(self._tmp_dir)
        except FileNotFoundError:
            return  # reading the pairs downloads the file, or says which is missing
        for path in paths:
            if path.exists():
                check_rereadable(path, f"The files of {self._problem.name()}")
                self._files[path] = _size_and_time(path)

    def first(self, split: str) -> Iterator[list[Pair]]:
        """Yields the chunks of a split, with a progress bar, and records them."""
        pairs = checked_pairs(self._problem, split, self._tmp_dir)
        bar = progress_bar(pairs, desc=f"reading {split}", unit=" pairs")
        for chunk in encode_shards.chunks(bar):
            self.splits[split].add(chunk)
            yield chunk

    def second(self) -> Iterator[tuple[str, int, list[Pair]]]:
        """Yields split, number and pairs of every chunk. Raises ValueError instead of
        yielding a chunk that differs from that of the first reading.
        """
        splits = tuple(self._problem.splits())
        if splits != tuple(self.splits):
            then, now = ", ".join(self.splits), ", ".join(splits)
            raise self._other_text(f"the splits {then} at first, then {now}")
        for split, digest in self.splits.items():
            count = 0
            text = hashlib.sha256()
            pairs = checked_pairs(self._problem, split, self._tmp_dir)
            for number, chunk in enumerate(encode_shards.chunks(pairs)):
                _update(text, chunk)
                difference = digest.difference(number, text.digest(), count, chunk)
                if difference:
                    raise self._other_text(difference)
                count += len(chunk)
                yield split, number, chunk
            if count != digest.pairs:
                raise self._other_text(digest.other_count(f"{count:,}"))

    def check_files(self) -> None:
        """Raises ValueError if a raw file has changed since it was recorded."""
        for path, before in self._files.items():
            if not path.exists() or _size_and_time(path) != before:
                raise self._other_text(f"{path}, which has changed since it was read")

    def read(self) -> str:
        """Reads all text and returns its hash."""
        for split in self.splits:
            for _ in self.first(split):
                pass
        return self.sha256()

    def sha256(self) -> str:
        """Identifies all text of the first reading."""
        digest = hashlib.sha256()
        for name, split in self.splits.items():
            digest.update(f"{name}\n".encode() + split.digest())
        return digest.hexdigest()

    def _other_text(self, received: str) -> ValueError:
        return ValueError(
            f"{self._problem.name()} must yield the same pairs each time, since they"
            f" are read twice. Received: {received}. Make sure that nothing writes its"
            " files and that random numbers have a seed, and run t2t-datagen again."
        )


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


def _hashes(chunk: Sequence[Pair]) -> bytes:
    return bytes(hash((source, target)) & 0xFF for source, target in chunk)


def _size_and_time(path: Path) -> tuple[int, int]:
    """The size of a file and its modification time in nanoseconds."""
    status = path.stat()
    return status.st_size, status.st_mtime_ns
