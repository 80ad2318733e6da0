"""OUT.part, the file that keeps what is done of the output OUT until all is.

Its first line is PART_HEADER. Each further one has the output of a window, as `encoded`
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
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from t2tlite.console import say
from t2tlite.files.atomic_file import (
    atomic_file,
    full_disk_is_named,
    remove_temporary_files,
)
from t2tlite.files.compression import compressed
from t2tlite.files.own_files import locked, own, remove_files, remove_if_empty
from t2tlite.programs.bulk.windows import Window, WindowOutput, read_first
from t2tlite.tasks.task import Output

PART_HEADER = b"What t2t-decoder has done so far, format 1\n"
# KEY.json, the lines of a window, and KEY.part, its output; also written in part
PIECE_FILE = re.compile(r"\.?[0-9a-f]{32}\.(json|part)(\.[0-9a-f]{8}\.tmp)?")

KEPT_FIELDS = 6  # of an Output; the others are a parser's tree and its repairs

KeyOf = Callable[[Window], str]
# the lines of an output, of which the first has this number
LinesOf = Callable[[WindowOutput, int], Iterable[str]]


@contextlib.contextmanager
def open_part(target: Path, key_of: KeyOf) -> Iterator[Part]:
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

    def __init__(self, target: Path, file: BinaryIO, key_of: KeyOf) -> None:
        self.path = part_file(target)
        self.pieces = own(Path(f"{target}.pieces"))
        self._target = target
        self._file = file
        self._key_of = key_of
        self._starts: dict[str, int] = {}  # key -> where its line begins
        self._sizes: dict[str, int] = {}  # key -> sentences of the window
        self._keys: list[str] = []  # of the input's windows
        self._find_outputs()
        self.take_up_pieces()

    @contextlib.contextmanager
    def missing(
        self, windows: Iterable[Window]
    ) -> Iterator[tuple[int, Iterator[Window]]]:
        """Reads the windows of an input, and reports how many lines are done. Yields
        the number of the other lines, and their windows.
        """
        with read_first(self._missing(windows), self.path.parent) as missing:
            if done := self.lines_done():
                say(f"Resuming: {done:,} lines are done, in {self.path}.")
            yield missing

    def _missing(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Yields the windows that have no output yet, equal ones once."""
        seen = set(self._starts)
        for window in windows:
            key = self._key_of(window)
            self._keys.append(key)
            if key not in seen:
                yield window
            seen.add(key)

    def add(self, window: Window, output: WindowOutput) -> None:
        self._append(encoded(self._key_of(window), output))

    def outputs(self) -> Iterator[WindowOutput]:
        """Yields the outputs of the windows in the order of the input. Raises KeyError
        if one is missing.
        """
        for key in self._keys:
            self._file.seek(self._starts[key])
            yield _output(_record(self._file.readline()))

    @property
    def is_incomplete(self) -> bool:
        """Whether a window of the input has no output."""
        return not self._starts.keys() >= set(self._keys)

    def publish(self, lines_of: LinesOf) -> Counter[str]:
        """Writes the lines of all outputs to OUT, in one step, and removes OUT.part.
        Returns the sums of their counts.
        """
        totals: Counter[str] = Counter()
        with (
            atomic_file(self._target) as file,
            compressed(file, self._target) as out,
        ):
            for output in self.outputs():
                out.write(encode_lines(lines_of(output, totals["sentences"])))
                totals.update(output.counts)
        self.remove()
        return totals

    def remove(self) -> None:
        """Empties OUT.part, which is then removed: OUT is complete."""
        self._file.truncate(0)

    def lines_done(self) -> int:
        """The lines of the input whose windows have an output; equal windows count
        once.
        """
        return sum(self._sizes.get(key, 0) for key in set(self._keys))

    def take_up_pieces(self) -> None:
        """Adds what workers have done, and removes their files."""
        for file in self.pieces.glob("*.part"):
            self._append(file.read_bytes())
        remove_files(self.pieces, PIECE_FILE.fullmatch)
        remove_if_empty(self.pieces)

    def _append(self, line: bytes) -> None:
        start = self._file.seek(0, 2)
        self._file.write(line if start else PART_HEADER + line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(line, start or len(PART_HEADER))

    def _find_outputs(self) -> None:
        """Finds the outputs in OUT.part, and cuts off half a line at its end."""
        start = self._file.readline(len(PART_HEADER))
        if not PART_HEADER.startswith(start):
            raise ValueError(
                f"{self.path} must be what this version of t2t-decoder keeps of"
                f" {self._target.name}. Received: another file, perhaps yours. Move it,"
                " or name another output."
            )
        end = len(start) if start == PART_HEADER else 0
        for line in self._file:
            if line.endswith(b"\n"):
                self._note(line, end)
                end += len(line)
        self._file.truncate(end)

    def _note(self, line: bytes, start: int) -> None:
        """Notes where an output is, unless it is damaged."""
        with contextlib.suppress(ValueError):
            key, *_, counts = _record(line)
            self._starts[key] = start
            self._sizes[key] = counts["sentences"]


def part_file(target: Path) -> Path:
    """OUT.part."""
    return own(Path(f"{target}.part"))


def encoded(key: str, output: WindowOutput) -> bytes:
    """The line of OUT.part for the output of a window. Trees are left out, which the
    outputs have as text.
    """
    n_best = []
    for outputs in output.n_best:
        n_best.append([list(vars(each).values())[:KEPT_FIELDS] for each in outputs])
    content = json.dumps([key, output.sources, n_best, output.counts])
    return f"{_sha256(content)} {content}\n".encode()


def encode_lines(lines: Iterable[str]) -> bytes:
    """Lines as they are in a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def _record(line: bytes) -> list[Any]:
    """What `encoded` wrote. Raises ValueError if it is damaged."""
    sha256, _, content = line.decode().rstrip("\n").partition(" ")
    if sha256 != _sha256(content):
        raise ValueError("OUT.part has changed. Run the same command again.")
    record: list[Any] = json.loads(content)
    return record


def _output(record: list[Any]) -> WindowOutput:
    _, sources, n_best, counts = record
    outputs = []
    for fields in n_best:
        hypotheses = []
        for text, score, log_prob, ids, *more in fields:
            hypotheses.append(Output(text, score, log_prob, tuple(ids), *more))
        outputs.append(hypotheses)
    return WindowOutput(sources, outputs, counts)


def _sha256(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()
