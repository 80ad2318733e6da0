"""The windows of an input, and OUT.part, which keeps what is done of the output OUT.

An input is cut into windows: consecutive lines, which are decoded by themselves. The
first line of OUT.part is PART_HEADER. Each further one has the output of a window: the
SHA-256 of what follows, and a key, which is a hash of the window's lines and of
everything else that the output depends on (`DecodeJob.key`). Lines are only appended,
and what a killed process wrote of one is cut off. The same command, run again, finds
the windows that are done by their keys. At the end it makes OUT of all outputs and
removes OUT.part.

The workers of a pipeline write such lines into files of their own, in the folder
OUT.pieces; OUT.part takes them up.
"""

import contextlib
import dataclasses
import json
import os
import pickle
import sys
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from t2tlite.console import say
from t2tlite.decoding.text_decoder import NO_FILE, Origin
from t2tlite.files import atomic_file, own_files, text_files
from t2tlite.tasks.task import Output

PART_HEADER = b"What t2t-decoder has done so far, format 1\n"
KEY_DIGITS = 32  # hexadecimal
KEPT_FIELDS = 6  # of an Output; the others are a parser's tree and its repairs
WHOLE = sys.maxsize  # the size of a window that has all lines of an input


@dataclasses.dataclass(frozen=True)
class Window:
    """Consecutive lines of an input, which are decoded by themselves, elsewhere or
    later.
    """

    lines: list[str]
    origin: Origin = NO_FILE  # of the first line


class WindowOutput(NamedTuple):
    """What was decoded for a window, or a whole input."""

    sources: list[str]
    n_best: list[list[Output]]  # of each source, best first
    counts: dict[str, int]  # sentences, tokens, milliseconds, repairs


KeyOf = Callable[[Window], str]
# the lines of an output, of which the first has this number
LinesOf = Callable[[WindowOutput, int], Iterable[str]]


def cut(
    lines: Iterable[str], origin: Origin, size: int, prompt: bool = False
) -> Iterator[Window]:
    """Yields windows of `size` lines to a quarter more, which end at the first line
    whose CRC-32 is a multiple of an eighth of `size`, or, with `prompt`, with the lines
    that have arrived. Lines are read when their window is cut.

    So where a line was inserted or deleted, the window ends at the same line as before,
    nearly always, and later windows are the same.
    """
    slack = size // 4
    modulus = max(1, slack // 2)
    ahead = text_files.ReadAhead(iter(lines)) if prompt else None
    window: list[str] = []
    for line in ahead or lines:
        window.append(line)
        is_full = len(window) >= size + slack
        if len(window) >= size:
            is_full = is_full or zlib.crc32(line.encode()) % modulus == 0
        if ahead:
            is_full = is_full or not ahead.ready()
        if is_full:
            yield Window(window, origin)
            origin = origin.after(len(window))
            window = []
    if window:
        yield Window(window, origin)


@contextlib.contextmanager
def read_first(
    windows: Iterable[Window], folder: Path | None = None
) -> Iterator[tuple[int, Iterator[Window]]]:
    """Reads windows to their end, so that a bad line is found before anything is
    decoded. Yields the number of their lines, and the windows.

    They wait in a temporary file in `folder`.
    """
    with tempfile.TemporaryFile(dir=folder) as spool:
        count = 0
        for window in windows:
            pickle.dump(window, spool)
            count += len(window.lines)
        yield count, atomic_file.unpickled(spool)


class Part:
    """OUT.part, with the outputs of the windows of an input. `open_part` makes it.

    Attributes:
        path: of OUT.part.
        pieces: the folder OUT.pieces.
    """

    def __init__(self, target: Path, file: BinaryIO, key_of: KeyOf) -> None:
        self.path = part_file(target)
        self.pieces = own_files.own(Path(f"{target}.pieces"))
        self._target = target
        self._file = file
        self._key_of = key_of
        self._starts: dict[str, int] = {}  # key -> where its line begins
        self._keys: list[str] = []  # of the input's windows
        self._find_outputs()
        self.take_up_pieces()

    def missing(self, windows: Iterable[Window]) -> Iterator[Window]:
        """Yields the windows of an input that have no output yet, equal ones once, and
        then says how many lines have one.
        """
        done = 0
        seen = set()
        for window in windows:
            key = self._key_of(window)
            self._keys.append(key)
            if key in self._starts:
                done += len(window.lines)
            elif key not in seen:
                yield window
            seen.add(key)
        if done:
            say(f"Resuming: {done:,} lines are done, in {self.path}.")

    def add(self, window: Window, output: WindowOutput) -> None:
        self._append(encoded(self._key_of(window), output))

    def piece(self, window: Window) -> Path:
        """The file in which a worker writes the output of a window."""
        return self.pieces / f"{self._key_of(window)}.part"

    def outputs(self) -> Iterator[WindowOutput]:
        """Yields the outputs of the windows in the order of the input, all of which
        must be there.
        """
        for key in self._keys:
            self._file.seek(self._starts[key])
            yield _output(_record(self._file.readline()))

    def publish(self, lines_of: LinesOf) -> Counter[str]:
        """Writes the lines of all outputs to OUT, in one step, and removes OUT.part.
        Returns the sums of their counts.
        """
        totals: Counter[str] = Counter()

        def lines() -> Iterator[str]:
            for output in self.outputs():
                yield from lines_of(output, totals["sentences"])
                totals.update(output.counts)

        text_files.write_lines(self._target, lines())
        self.remove()
        return totals

    def remove(self) -> None:
        """Empties OUT.part, which is then removed: OUT is complete."""
        self._file.truncate(0)

    def take_up_pieces(self) -> None:
        """Adds what workers have done, and removes their files."""
        for piece in self.pieces.glob("[0-9a-f]" * KEY_DIGITS + ".part"):
            self._append(piece.read_bytes())
            own_files.remove(piece)
        atomic_file.remove_temporary_files(self.pieces)
        own_files.remove_if_empty(self.pieces)

    def _append(self, line: bytes) -> None:
        start = self._file.seek(0, os.SEEK_END)
        self._file.write(line if start else PART_HEADER + line)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._note(line, start or len(PART_HEADER))

    def _find_outputs(self) -> None:
        """Finds the outputs in OUT.part, and cuts off half a line at its end."""
        start = self._file.readline(len(PART_HEADER))
        if not PART_HEADER.startswith(start):
            raise ValueError(
                f"{self.path} is not what this t2t-decoder keeps of"
                f" {self._target.name}. Move it, or name another output."
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
            self._starts[_record(line)[0]] = start


@contextlib.contextmanager
def open_part(target: Path, key_of: KeyOf) -> Iterator[Part]:
    """Opens what is done of `target`, which no other process can decode to meanwhile.

    Raises ValueError if another process does, or OUT.part is not t2tlite's.
    """
    with (
        atomic_file.full_disk_is_named(target),
        own_files.locked(part_file(target), f"decode to {target.name}") as handle,
        open(handle, "r+b", closefd=False) as file,
    ):
        atomic_file.remove_temporary_files(target.parent, target.name)
        yield Part(target, file, key_of)


def part_file(target: Path) -> Path:
    """OUT.part."""
    return own_files.own(Path(f"{target}.part"))


def encoded(key: str, output: WindowOutput) -> bytes:
    """The line of OUT.part for the output of a window. Trees are left out, which the
    outputs have as text.
    """
    content = json.dumps([key, *output], default=_kept)
    return f"{atomic_file.text_sha256(content)} {content}\n".encode()


def _kept(output: Output) -> list[Any]:
    return list(vars(output).values())[:KEPT_FIELDS]


def _record(line: bytes) -> list[Any]:
    """What `encoded` wrote. Raises ValueError if it is damaged."""
    sha256, _, content = line.decode().rstrip("\n").partition(" ")
    if sha256 != atomic_file.text_sha256(content):
        raise ValueError("OUT.part has changed. Run the same command again.")
    record: list[Any] = json.loads(content)
    return record


def _output(record: list[Any]) -> WindowOutput:
    _, sources, n_best, counts = record
    for outputs in n_best:
        for i, (text, score, log_prob, ids, *more) in enumerate(outputs):
            outputs[i] = Output(text, score, log_prob, tuple(ids), *more)
    return WindowOutput(sources, n_best, counts)
