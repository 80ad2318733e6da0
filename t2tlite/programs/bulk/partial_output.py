"""Where the lines go that are made of an input: standard output, a device, or a file that a killed process can resume.

While the file OUT is made, two files beside it hold what is done:

OUT.part        the output of all windows so far (`decode.WINDOW` lines of the input each), not compressed
OUT.part.json   the lines that these are, and what they were made with: a `Progress`

The same command resumes after them. At the end OUT.part becomes OUT in one step, so that OUT is always complete. Of a
split, OUT.part holds what its scores need; these and OUT are made of it at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import os
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from tqdm import tqdm

from t2tlite.files.atomic_file import atomic_file, open_directly, remove_temporary_files
from t2tlite.files.lock import open_locked
from t2tlite.files.records import Amount, Count, read_record, write_record
from t2tlite.files.text_files import compressed, read_lines

SHA256_OF_NOTHING = hashlib.sha256().hexdigest()


@dataclasses.dataclass(frozen=True)
class Progress:
    """How much of an input is decoded, and with what."""

    made_with: dict[str, Any]  # the version, the checkpoint and the options: with others the output would be another
    lines: Count = 0  # of the input
    lines_sha256: str = SHA256_OF_NOTHING  # of these lines
    bytes: Count = 0  # of their output; the file may have more, which are of the window that was interrupted
    sha256: str = SHA256_OF_NOTHING  # of these bytes
    counts: dict[str, Count] = dataclasses.field(default_factory=dict)  # for the summary
    seconds: Amount = 0.0


class DirectOutput:
    """Standard output, a pipe or a device: lines are written as they come, and there is nothing to resume."""

    def __init__(self, target: str | Path | None, made_with: dict[str, Any]) -> None:
        self.progress = Progress(made_with)
        self._opened = contextlib.ExitStack()
        self._file: BinaryIO | None = None
        if target is not None:
            file = self._opened.enter_context(open_directly(target))
            self._file = self._opened.enter_context(compressed(file, Path(target)))

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        self._opened.close()

    def restart(self, reason: str) -> None:
        """Does nothing: there is no earlier output to discard."""

    def write(self, lines: Sequence[str], count: int, sha256: str, counts: Mapping[str, int], seconds: float) -> None:
        """Writes the output of a window, after which `count` lines of the input are done."""
        done = dataclasses.replace(
            self.progress, lines=count, lines_sha256=sha256, counts=dict(counts), seconds=seconds
        )
        self.progress = self._put("".join(f"{line}\n" for line in lines).encode(), done)

    def _put(self, data: bytes, progress: Progress) -> Progress:
        """Writes output, and returns the progress after it; until then it counts as not written."""
        # UTF-8 also if the terminal's locale is another; a notebook's standard output takes text alone
        file = self._file or getattr(sys.stdout, "buffer", None)
        if file is None:
            print(data.decode(), end="", flush=True)
        else:
            file.write(data)
            file.flush()
        return progress


class PartialOutput(DirectOutput):
    """OUT.part, to be resumed or begun; no other process writes it meanwhile."""

    def __init__(self, target: Path, made_with: dict[str, Any]) -> None:
        super().__init__(None, made_with)
        self._target, self._part, self._record = target, *(Path(f"{target}.part{end}") for end in ("", ".json"))
        self._digest = hashlib.sha256()  # of the output so far
        handle = open_locked(self._part)
        if handle is None:
            raise ValueError(
                f"Only one process can write an output. Received: {target}, and another writes {self._part} now. "
                "Wait for it, or name another file."
            )
        self._file = self._lines = self._opened.enter_context(os.fdopen(handle, "ab"))
        for file in (target, self._record):
            remove_temporary_files(target.parent, file.name)
        self._read_progress()

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        try:
            if kind is None:
                self._finish()
            elif self.progress.lines:
                _say(f"{self.progress.lines:,} lines are done, in {self._part}. The same command resumes after them.")
            else:
                self._part.unlink()
        finally:
            super().__exit__(kind, error, traceback)

    def restart(self, reason: str) -> None:
        """Begins anew, and says why."""
        _say(f"{self._part} cannot be resumed: {reason}. Starting anew.")
        self.progress = Progress(self.progress.made_with)
        self._record.unlink(missing_ok=True)
        self._lines.truncate(0)
        self._digest = hashlib.sha256()

    def _put(self, data: bytes, progress: Progress) -> Progress:
        """Writes output, and then records the progress."""
        super()._put(data, progress)
        os.fsync(self._lines.fileno())
        self._digest.update(data)
        size = progress.bytes + len(data)
        progress = dataclasses.replace(progress, bytes=size, sha256=self._digest.hexdigest())
        write_record(self._record, progress)
        return progress

    def _read_progress(self) -> None:
        """Reads how much is done, and discards what cannot be resumed."""
        try:
            found = read_record(self._record, Progress, "")
        except FileNotFoundError:
            self._lines.truncate(0)  # of the first window
            return
        except ValueError:
            return self.restart(f"{self._record.name} is damaged")
        made_with = self.progress.made_with
        changed = [name for name in made_with if found.made_with.get(name) != made_with[name]]
        if changed:
            return self.restart(f"it was made with another {', '.join(changed)}")
        self._lines.truncate(min(os.fstat(self._lines.fileno()).st_size, found.bytes))
        with self._part.open("rb") as part:
            while block := part.read(1 << 20):
                self._digest.update(block)
        if self._digest.hexdigest() != found.sha256:
            return self.restart("it has changed since it was written")
        self.progress = found
        _say(f"Resuming after line {found.lines:,}.")

    def _finish(self) -> None:
        if self._target.suffix == ".gz":
            with (
                atomic_file(self._target) as file,
                compressed(file, self._target) as out,
                self._part.open("rb") as part,
            ):
                shutil.copyfileobj(part, out, 1 << 20)
            self._part.unlink()
        else:
            os.replace(self._part, self._target)
        self._record.unlink(missing_ok=True)


class IntermediateOutput(PartialOutput):
    """OUT.part alone, which is read when all is decoded; it is removed, and whoever has it makes OUT before that."""

    def lines(self) -> Iterator[str]:
        """The lines written so far."""
        return read_lines(self._part)

    def _finish(self) -> None:
        self._record.unlink(missing_ok=True)
        self._part.unlink()


def _say(sentence: str) -> None:
    tqdm.write(sentence, file=sys.stderr)
