"""The folder that keeps the outputs of an input's windows until all are done.

While the file OUT is made, the folder OUT.windows beside it has:

KEY.json       the output of a window. KEY is a hash of its lines and of everything
               else that its output depends on (`DecodeJob.key`).
KEY.in.json    its lines, for a worker of a pipeline

Each file appears in one step. The same command, run again, finds the windows that are
done by their keys. At the end it makes OUT of all outputs and removes the folder.
Files of other names are the user's.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import re
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from t2tlite.console import counted, say
from t2tlite.files.atomic_file import (
    atomic_file,
    full_disk_is_named,
    remove_temporary_files,
)
from t2tlite.files.compression import compressed
from t2tlite.files.lock import LOCK, only_process
from t2tlite.files.own_files import own, remove, remove_files
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.windows import Totals, Window, WindowOutput

OUTPUT_FILE = re.compile(r"[0-9a-f]{32}\.json")
# of a pipeline that is done or was killed, or written in part when a process was killed
LEFTOVER_FILE = re.compile(
    r"[0-9a-f]{32}\.in\.json|\.[0-9a-f]{32}(\.in)?\.json\.[0-9a-f]{8}\.tmp"
)
FULL_DISK_ADVICE = (
    "Free some space and run the same command again, which resumes, or name another"
    " output."
)
AGAIN = "The same command decodes it again."


@dataclasses.dataclass(frozen=True)
class WindowRecord:
    """KEY.json."""

    output: WindowOutput
    sha256: str  # of KEY and the output


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    signal_number = signal.SIGTERM


@contextlib.contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raises Terminated at SIGTERM, so that files are closed and progress is
    reported.
    """

    def interrupt(number: int, frame: object) -> None:
        raise Terminated("Stopped by SIGTERM.")

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextlib.contextmanager
def open_windows(
    target: Path, key_of: Callable[[Window], str]
) -> Iterator[WindowFolder]:
    """The folder of the windows of `target`, which no other process can use meanwhile.

    Raises ValueError if another process uses it, or it has other files than windows.
    After an exception in the block, reports how many lines are done. Removes the folder
    if it is empty at the end.
    """
    folder = WindowFolder(target, key_of)
    folder.check()
    with (
        full_disk_is_named(target, FULL_DISK_ADVICE),
        interrupt_at_sigterm(),
        only_process(folder.path, f"decode to {target.name}"),
    ):
        folder.remove_leftovers()
        remove_temporary_files(target.parent, target.name)
        try:
            yield folder
        except BaseException:
            if done := folder.lines_done():
                say(
                    f"{done:,} lines are done, in {folder.path}. The same command"
                    " decodes the others."
                )
            raise


class WindowFolder:
    """OUT.windows, with the outputs of the windows of one input. `open_windows` makes
    it.
    """

    def __init__(self, target: Path, key_of: Callable[[Window], str]) -> None:
        self.path = _folder(target)
        self._target = target
        self._key_of = key_of
        self._is_planned = False
        self._keys: list[str] = []  # of the windows of the input, in order
        self._sizes: dict[str, int] = {}  # key -> lines of the window

    def check(self) -> None:
        """Raises ValueError if the folder is a file, or has other files than
        windows.
        """
        others = []
        if self.path.is_dir():
            for file in self.path.iterdir():
                if file.name != LOCK and not _is_own(file.name):
                    others.append(file.name)
        elif self.path.exists():
            others.append("a file")
        if others:
            raise ValueError(
                f"{self.path} must have nothing but the windows of"
                f" {self._target.name}. Received: {min(others)}, perhaps yours. Move"
                " it, or name another output."
            )

    def plan(self, windows: Iterable[Window]) -> None:
        """Reads an input for the first time: collects the keys, and reports what is
        done already.
        """
        for window in windows:
            self._add(self._key_of(window), window)
        self._is_planned = True
        self._say_what_is_done()
        stale = 0
        for file in window_files(self._target):
            stale += file.stem not in self._sizes
        if stale:
            say(
                f"{self.path} also has {counted(stale, 'window')} of another input,"
                " checkpoint, option or version, not used, and removed once"
                f" {self._target.name} is complete."
            )

    def missing(self, windows: Iterable[Window]) -> Iterator[tuple[Path, Window]]:
        """Yields the windows that have no output yet, with the files of their outputs.

        Raises ValueError if they are not the windows of `plan`. Without `plan`, as for
        a pipe, they are the windows of the input.
        """
        planned = iter(list(self._keys))
        is_reported = self._is_planned
        for window in windows:
            key = self._key_of(window)
            if not self._is_planned:
                self._add(key, window)
            elif key != next(planned, None):
                raise _changed_input()
            if self._has_output(key):
                continue
            if not is_reported:
                self._say_what_is_done()
                is_reported = True
            yield self._file(key), window
        if self._is_planned and next(planned, None):
            raise _changed_input()

    def outputs(self) -> Iterator[WindowOutput]:
        """Yields the outputs of the windows in the order of the input. Raises
        FileNotFoundError if one is missing, and ValueError if one is damaged.
        """
        for key in self._keys:
            yield read_output(self._file(key))

    def publish(self) -> Totals:
        """Writes the outputs of all windows to OUT, in one step, and removes the
        windows.
        """
        totals = Totals()
        with (
            atomic_file(self._target) as file,
            compressed(file, self._target) as out,
        ):
            for output in self.outputs():
                out.write(encode_lines(output.lines))
                totals.add(output)
        self.remove()
        return totals

    def remove(self) -> None:
        """Removes all windows, of this input or others: OUT is complete."""
        self._keys.clear()
        remove_files(self.path, _is_own)

    def remove_leftovers(self) -> None:
        """Removes the lines for workers, and what a killed process has not finished."""
        remove_files(self.path, LEFTOVER_FILE.fullmatch)

    def lines_total(self) -> int | None:
        """The lines of the input; None if it was not planned."""
        if not self._is_planned:
            return None
        return sum(self._sizes[key] for key in self._keys)

    def lines_done(self) -> int:
        """The lines whose windows have an output."""
        done = 0
        for key in self._keys:
            if self._file(key).exists():
                done += self._sizes[key]
        return done

    def _file(self, key: str) -> Path:
        return self.path / f"{key}.json"

    def _add(self, key: str, window: Window) -> None:
        self._keys.append(key)
        self._sizes[key] = len(window.lines)

    def _has_output(self, key: str) -> bool:
        """Whether a window has an output. Removes one that is damaged, and says so."""
        file = self._file(key)
        try:
            read_output(file)
        except FileNotFoundError:
            return False
        except ValueError as error:
            say(str(error))
            remove(file)
            return False
        return True

    def _say_what_is_done(self) -> None:
        if done := self.lines_done():
            say(f"Resuming: {done:,} lines are done, in {self.path}.")


def window_files(target: Path) -> list[Path]:
    """The files of windows in the folder of `target`, if there is one, also those of
    other inputs and options.
    """
    folder = _folder(target)
    if not folder.is_dir():
        return []
    return [file for file in folder.iterdir() if _is_own(file.name)]


def write_output(file: Path, output: WindowOutput) -> None:
    """Writes the output of a window to its file, whose name begins with its key."""
    write_record(file, WindowRecord(output, _sha256(file.stem, output)))


def read_output(file: Path) -> WindowOutput:
    """The output of a window. Raises FileNotFoundError if there is none, and ValueError
    if the file is damaged.
    """
    record = read_record(file, WindowRecord, AGAIN)
    if record.sha256 != _sha256(file.stem, record.output):
        raise ValueError(f"{file} has changed since it was written. {AGAIN}")
    return record.output


def write_input(output_file: Path, window: Window) -> None:
    """Writes the lines of a window for a worker, beside the file of its output."""
    write_record(_input_file(output_file), window)


def read_input(output_file: Path) -> Window:
    """The window for whose output the file is."""
    return read_record(_input_file(output_file), Window, AGAIN)


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines as they are in a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def _folder(target: Path) -> Path:
    return own(Path(f"{target}.windows"))


def _input_file(output_file: Path) -> Path:
    return output_file.with_suffix(".in.json")


def _sha256(key: str, output: WindowOutput) -> str:
    content = json.dumps([key, output.lines, output.counts, output.seconds])
    return hashlib.sha256(content.encode()).hexdigest()


def _is_own(name: str) -> bool:
    return bool(OUTPUT_FILE.fullmatch(name) or LEFTOVER_FILE.fullmatch(name))


def _changed_input() -> ValueError:
    return ValueError(
        "The input must not change while it is decoded. Received: other lines than"
        " those that were checked. Run the same command again; what is done is kept."
    )
