"""OUT.part, the file that keeps what is done of the output OUT until all is.

Its first line is HEADER. Each further one has the output of a window, as `encoded`
writes it: a key, which is a hash of the window's lines and of everything else that the
output depends on (`DecodeJob.key`), and the SHA-256 of the whole. Lines are only
appended, and what a killed process wrote of one is cut off. The same command, run
again, finds the windows that are done by their keys. At the end it makes OUT of all
outputs and removes OUT.part.

The workers of a pipeline write such lines into files of their own, in the folder
OUT.pieces; OUT.part takes them up.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from t2tlite.console import say
from t2tlite.files.atomic_file import (
    atomic_file,
    full_disk_is_named,
    remove_temporary_files,
)
from t2tlite.files.compression import compressed
from t2tlite.files.lock import locked
from t2tlite.files.own_files import own, remove_files, remove_if_empty
from t2tlite.programs.bulk.windows import Window, WindowOutput

HEADER = b"What t2t-decoder has done so far, format 1\n"
# KEY.json, the lines of a window, and KEY.part, its output; also written in part
PIECE = re.compile(r"\.?[0-9a-f]{32}\.(json|part)(\.[0-9a-f]{8}\.tmp)?")


@contextlib.contextmanager
def open_part(target: Path, key_of: Callable[[Window], str]) -> Iterator[Part]:
    """Opens what is done of `target`, which no other process can decode to meanwhile.

    Raises ValueError if another process does, or OUT.part is not t2tlite's. After an
    exception in the block, reports how many lines are done.
    """
    with (
        full_disk_is_named(target),
        locked(part_file(target), f"decode to {target.name}") as handle,
        open(handle, "r+b", closefd=False) as file,
    ):
        remove_temporary_files(target.parent, target.name)
        part = Part(target, file, key_of)
        try:
            yield part
        except BaseException:
            if done := part.lines_done():
                say(
                    f"{done:,} lines are done, in {part.path}. The same command"
                    " decodes the others."
                )
            raise


class Part:
    """OUT.part, with the outputs of the windows of an input. `open_part` makes it.

    Attributes:
        path: of OUT.part.
        pieces: the folder OUT.pieces.
    """

    def __init__(
        self, target: Path, file: BinaryIO, key_of: Callable[[Window], str]
    ) -> None:
        self.path = part_file(target)
        self.pieces = own(Path(f"{target}.pieces"))
        self._target = target
        self._file = file
        self._key_of = key_of
        self._starts: dict[str, int] = {}  # key -> where its line begins
        self._sizes: dict[str, int] = {}  # key -> sentences of the window
        self._readings: list[list[str]] = []  # the keys of the input's windows
        self._find_outputs()
        self.take_up_pieces()
        if done := sum(self._sizes.values()):
            say(f"Resuming: {done:,} lines are done, in {self.path}.")

    def __contains__(self, key: str) -> bool:
        return key in self._starts

    def plan(self, windows: Iterable[Window]) -> int:
        """Reads an input for the first time. Returns the number of lines that are not
        done, and reports what is done of others.
        """
        left = sum(len(window.lines) for _, window in self.missing(windows))
        stale = sum(self._sizes.values()) - self.lines_done()
        if stale:
            say(
                f"{stale:,} of them are of another input, checkpoint, option or"
                f" version, not used, and removed once {self._target.name} is complete."
            )
        return left

    def missing(self, windows: Iterable[Window]) -> Iterator[tuple[str, Window]]:
        """Reads the input, and yields the windows that have no output yet, with their
        keys.
        """
        keys: list[str] = []
        self._readings.append(keys)
        for window in windows:
            keys.append(self._key_of(window))
            if keys[-1] not in self:
                yield keys[-1], window

    def add(self, line: bytes) -> None:
        """Appends the output of a window, as `encoded`."""
        start = self._file.seek(0, 2)
        self._file.write(line if start else HEADER + line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(line, start or len(HEADER))

    def outputs(self) -> Iterator[WindowOutput]:
        """Yields the outputs of the windows in the order of the input. Raises
        ValueError if the input was another at its first reading.
        """
        keys = self._readings[-1]
        if keys != self._readings[0]:
            raise ValueError(
                "The input must not change while it is decoded. Received: other lines"
                " than those that were checked. Run the same command again; what is"
                " done is kept."
            )
        for key in keys:
            self._file.seek(self._starts[key])
            yield _decoded(self._file.readline())[1]

    def publish(self) -> Counter[str]:
        """Writes the outputs of all windows to OUT, in one step, and removes OUT.part.
        Returns the sums of their counts.
        """
        totals: Counter[str] = Counter()
        with (
            atomic_file(self._target) as file,
            compressed(file, self._target) as out,
        ):
            for lines, counts in self.outputs():
                out.write(encode_lines(lines))
                totals.update(counts)
        self.remove()
        return totals

    def remove(self) -> None:
        """Empties OUT.part, which is then removed: OUT is complete."""
        self._file.truncate(0)

    def lines_done(self) -> int:
        """The lines of the input whose windows have an output; equal windows count
        once.
        """
        keys = set().union(*self._readings)
        return sum(self._sizes[key] for key in keys if key in self)

    def take_up_pieces(self) -> None:
        """Adds what workers have done, and removes their files."""
        for file in self.pieces.glob("*.part"):
            self.add(file.read_bytes())
        remove_files(self.pieces, PIECE.fullmatch)
        remove_if_empty(self.pieces)

    def _find_outputs(self) -> None:
        """Finds the outputs in OUT.part, and cuts off half a line at its end."""
        start = self._file.readline(len(HEADER))
        if not HEADER.startswith(start):
            raise ValueError(
                f"{self.path} must be what this version of t2t-decoder keeps of"
                f" {self._target.name}. Received: another file, perhaps yours. Move it,"
                " or name another output."
            )
        end = len(start) if start == HEADER else 0
        for line in self._file:
            if line.endswith(b"\n"):
                self._note(line, end)
                end += len(line)
        self._file.truncate(end)

    def _note(self, line: bytes, start: int) -> None:
        """Notes where an output is, or says that it is damaged."""
        try:
            key, output = _decoded(line)
        except ValueError:
            say(
                f"{self.path} has changed since it was written, {start:,} bytes from"
                " its beginning. What was there is decoded again."
            )
            return
        self._starts[key] = start
        self._sizes[key] = output.counts["sentences"]


def part_file(target: Path) -> Path:
    """OUT.part."""
    return own(Path(f"{target}.part"))


def encoded(key: str, output: WindowOutput) -> bytes:
    """The line of OUT.part for the output of a window."""
    content = json.dumps([key, *output])
    return f"{_sha256(content)} {content}\n".encode()


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines as they are in a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def _decoded(line: bytes) -> tuple[str, WindowOutput]:
    """Key and output from a line. Raises ValueError if it is damaged."""
    sha256, _, content = line.decode().rstrip("\n").partition(" ")
    if sha256 != _sha256(content):
        raise ValueError(
            "OUT.part must not change while it is used. Run the same command again."
        )
    key, *output = json.loads(content)
    return key, WindowOutput(*output)


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
