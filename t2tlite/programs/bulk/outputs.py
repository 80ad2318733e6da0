"""The output of bulk decoding: a stream, or a file that can be resumed after a kill.

While the file OUT is made, two files beside it hold what is done:

OUT.part        the output of all windows so far, not compressed
OUT.part.json   the lines of the input that these are, and what they were made with: a `Progress`

The record is there before OUT.part has anything: an OUT.part without it is a file of somebody else's. The same
command resumes after what is done. At the end OUT.part becomes OUT in one step, so OUT is always complete. Of a
split, OUT.part holds what its scores need; these and OUT are made of it at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import shutil
import sys
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from t2tlite.console import say
from t2tlite.files.atomic_file import atomic_file, open_directly, remove_temporary_files
from t2tlite.files.lock import open_locked
from t2tlite.files.records import Amount, Count, read_record, write_record
from t2tlite.files.text_files import compressed, read_lines
from t2tlite.programs.bulk.file_job import Provenance
from t2tlite.programs.bulk.inputs import CountedLines

SHA256_OF_NOTHING = hashlib.sha256().hexdigest()


class StreamOutput(contextlib.ExitStack):
    """Standard output, a pipe or a device: lines are written as they come, and there is nothing to resume."""

    def __init__(self, target: str | Path | None) -> None:
        super().__init__()
        self._file: BinaryIO | None = None
        if target is not None:
            file = self.enter_context(open_directly(target))
            self._file = self.enter_context(compressed(file, Path(target)))

    def write(self, lines: Sequence[str]) -> None:
        """Writes the output of a window."""
        data = encode_lines(lines)
        # UTF-8 also if the terminal's locale is another; a notebook's standard output takes text alone
        file = self._file or getattr(sys.stdout, "buffer", None)
        if file is None:
            print(data.decode(), end="", flush=True)
        else:
            file.write(data)
            file.flush()


@dataclasses.dataclass(frozen=True)
class Progress:
    """How much of an input is decoded, and with what."""

    provenance: Provenance  # with another the output would be another
    lines: Count = 0  # of the input
    lines_sha256: str = SHA256_OF_NOTHING  # of these lines
    bytes: Count = 0  # of their output; the file may have more, which are of the window that was interrupted
    sha256: str = SHA256_OF_NOTHING  # of these bytes
    counts: dict[str, Count] = dataclasses.field(default_factory=dict)  # for the summary
    seconds: Amount = 0.0


class ResumableOutput:
    """OUT.part, to be resumed or begun; no other process writes it meanwhile."""

    def __init__(self, target: Path, provenance: Provenance) -> None:
        self.progress = Progress(provenance)
        self._target, self._part, self._record = target, Path(f"{target}.part"), Path(f"{target}.part.json")
        self._digest = hashlib.sha256()  # of the output so far
        self._input = CountedLines(iter(()))
        self._started = time.monotonic()

    def __enter__(self) -> ResumableOutput:
        handle = open_locked(self._part)
        if handle is None:
            raise ValueError(
                f"Only one process can write an output. Received: {self._target}, and another writes {self._part} now. "
                "Wait for it, or name another file."
            )
        with contextlib.ExitStack() as opened:
            self._file = opened.enter_context(os.fdopen(handle, "ab"))
            for file in (self._target, self._record):
                remove_temporary_files(file.parent, file.name)
            self._read_progress()
            self._opened = opened.pop_all()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, traceback: object) -> None:
        with self._opened:
            if kind is None:
                return
            if self.progress.lines:
                say(f"{self.progress.lines:,} lines are done, in {self._part}. The same command resumes after them.")
            elif not self.progress.seconds:
                self.discard()

    def skip_done(self, lines: Iterator[str], reopen: Callable[[Path], Iterator[str]]) -> CountedLines:
        """An input without the lines whose output is there already.

        If those lines are not the ones that the output was made of, it starts anew, with the lines that
        `reopen` returns for OUT.part.
        """
        self._input = CountedLines(lines)
        deque(itertools.islice(self._input, self.progress.lines), maxlen=0)
        if self._input.sha256 != self.progress.lines_sha256:
            self._input = CountedLines(reopen(self._part))
            self._restart("the input has changed")
        self._started = time.monotonic() - self.progress.seconds
        return self._input

    def write(self, lines: Sequence[str], counts: Mapping[str, int]) -> None:
        """Writes the output of a window, the last that was read of the input, and records it as done."""
        data = encode_lines(lines)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digest.update(data)
        self.progress = dataclasses.replace(
            self.progress,
            lines=self._input.count,
            lines_sha256=self._input.sha256,
            bytes=self.progress.bytes + len(data),
            sha256=self._digest.hexdigest(),
            counts=dict(Counter(self.progress.counts) + Counter(counts)),
        )
        self.record_seconds()

    def record_seconds(self) -> None:
        """Records the progress with the time it has taken, in this process and before."""
        self.progress = dataclasses.replace(self.progress, seconds=time.monotonic() - self._started)
        write_record(self._record, self.progress)

    def written_lines(self) -> Iterator[str]:
        """The lines written so far."""
        return read_lines(self._part)

    def publish(self) -> None:
        """OUT.part becomes OUT."""
        if self._target.suffix != ".gz":
            os.replace(self._part, self._target)
        else:
            with (
                atomic_file(self._target) as file,
                compressed(file, self._target) as out,
                self._part.open("rb") as part,
            ):
                shutil.copyfileobj(part, out, 1 << 20)
        self.discard()

    def discard(self) -> None:
        """Removes OUT.part and its record."""
        self._part.unlink(missing_ok=True)
        self._record.unlink(missing_ok=True)

    def _read_progress(self) -> None:
        """Reads how much is done, and discards what cannot be resumed."""
        size = os.fstat(self._file.fileno()).st_size
        try:
            progress = read_record(self._record, Progress, "")
        except FileNotFoundError:
            if size:
                raise self._refusal(f"a file without its record {self._record.name}") from None
            return self._begin()
        except ValueError:
            if not size:
                self._part.unlink()
                raise self._refusal(f"nothing, but {self._record.name}, which is no record of it") from None
            return self._restart(f"{self._record.name} is damaged")
        expected = self.progress.provenance
        changed = [name for name in expected if progress.provenance.get(name) != expected[name]]
        if changed:
            return self._restart(f"it was made with another {', '.join(changed)}")
        self._file.truncate(min(size, progress.bytes))
        with self._part.open("rb") as part:
            while block := part.read(1 << 20):
                self._digest.update(block)
        if self._digest.hexdigest() != progress.sha256:
            return self._restart("it has changed since it was written")
        self.progress = progress
        if progress.lines:
            say(f"Resuming after line {progress.lines:,}.")

    def _refusal(self, received: str) -> ValueError:
        return ValueError(
            f"{self._part} must be what t2t-decoder has done of {self._target.name}. Received: {received}, perhaps "
            "yours. Move or delete it, or name another output."
        )

    def _restart(self, reason: str) -> None:
        say(f"{self._part} cannot be resumed: {reason}. Starting anew.")
        self._begin()

    def _begin(self) -> None:
        """Begins anew; the record says so before the file is emptied."""
        self.progress = Progress(self.progress.provenance)
        write_record(self._record, self.progress)
        self._file.truncate(0)
        self._digest = hashlib.sha256()


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines as they are in a file."""
    return "".join(f"{line}\n" for line in lines).encode()
