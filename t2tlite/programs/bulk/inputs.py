"""The input of bulk decoding: a file, or a pipe, which can be read only once."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from pathlib import Path

from t2tlite.decoding.source_text import Origin
from t2tlite.files.text_files import STANDARD_INPUT, read_lines, shown
from t2tlite.programs.bulk.file_job import FileJob


class CountedLines(Iterator[str]):
    """The lines of an input, counted and hashed as they are read."""

    def __init__(self, lines: Iterator[str]) -> None:
        self.count, self._lines, self._digest = 0, lines, hashlib.sha256()

    def __next__(self) -> str:
        line = next(self._lines)
        self.count += 1
        self._digest.update(f"{line!r}\n".encode())
        return line

    @property
    def sha256(self) -> str:
        """Of the lines read so far."""
        return self._digest.hexdigest()


class TextInput:
    """A text file, a pipe or standard input, one sentence a line."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.is_standard_input = self.path == STANDARD_INPUT
        self.is_file = not self.is_standard_input and self.path.is_file()
        self.origin = Origin(shown(path))

    def lines(self) -> Iterator[str]:
        """The lines from the first on; of a pipe only once."""
        return read_lines(self.path)

    def lines_again(self, part: Path) -> Iterator[str]:
        """The lines once more, since those read are not the ones of `part`; ValueError for a pipe."""
        if not self.is_file:
            raise ValueError(f"{self.path} does not begin with the lines that {part} is of. Delete that file.")
        return self.lines()

    def check(self, job: FileJob) -> int | None:
        """The number of lines of a file, after checking all; None for a pipe, whose lines are checked in their turn.

        Raises ValueError as `FileJob.check`.
        """
        if not self.is_file:
            return None
        lines = CountedLines(self.lines())
        job.check(lines, self.origin)
        return lines.count

    def is_in_pipe(self, to_standard_output: bool) -> bool:
        """Whether standard input or output is used and not a terminal: programs in a pipe report nothing."""
        input_is_piped = self.is_standard_input and not sys.stdin.isatty()
        return input_is_piped or (to_standard_output and not sys.stdout.isatty())
