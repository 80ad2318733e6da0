"""The output of bulk decoding in a file, which can be resumed after a kill.

While the file OUT is made, two files beside it hold what is done:

OUT.part        the output of all windows so far, not compressed
OUT.part.json   the lines of the input that these are, and what they were made with: a
                `PartRecord`

The record is there before OUT.part has anything: an OUT.part without it is somebody
else's, and so is a record that does not begin as ours. The same command resumes after
what is done. At the end OUT.part becomes OUT in one step, so OUT is always complete.
For a split, OUT.part holds the records needed for scoring; OUT and the scores are
computed from it at the end.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import os
import shutil
import signal
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO, Literal

from t2tlite.console import say
from t2tlite.decoding.source_text import Origin
from t2tlite.files.atomic_file import (
    atomic_file,
    full_disk_is_named,
    remove_temporary_files,
)
from t2tlite.files.lock import open_locked
from t2tlite.files.records import (
    FORMAT_VERSION,
    Amount,
    Count,
    read_record,
    write_record,
)
from t2tlite.files.text_files import compressed, is_compressed
from t2tlite.programs.bulk.jobs import Input, Provenance, Window, WindowOutput

RECORD_START = (
    f'{{\n  "format_version": {FORMAT_VERSION},\n  "written_by": "t2t-decoder"'.encode()
)
FULL_DISK_ADVICE = (
    "Free some space and run the same command again, which resumes, or name another"
    " output."
)
# of the names of the files beside OUT
PART_ENDINGS = (".part", ".part.json")
SHA256_OF_NOTHING = hashlib.sha256().hexdigest()


@dataclasses.dataclass(frozen=True)
class PartRecord:
    """How much of an input is decoded, and with what."""

    # the first field, so that even a damaged record is recognised by its start
    written_by: Literal["t2t-decoder"] = dataclasses.field(
        default="t2t-decoder", kw_only=True
    )
    provenance: Provenance  # with another the output would be another
    lines: Count = 0  # of the input
    lines_sha256: str = SHA256_OF_NOTHING  # of these lines
    # of their output; the file may have more, which are of the window that was
    # interrupted
    bytes: Count = 0
    sha256: str = SHA256_OF_NOTHING  # of these bytes
    # for the summary
    counts: dict[str, Count] = dataclasses.field(default_factory=dict)
    seconds: Amount = 0.0


class Terminated(KeyboardInterrupt):
    """SIGTERM came."""

    signal_number = signal.SIGTERM


@contextlib.contextmanager
def interrupt_at_sigterm() -> Iterator[None]:
    """Raises Terminated at SIGTERM, so that files are closed and it is said what is
    done.
    """
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _interrupt(number: int, frame: object) -> None:
    raise Terminated("Stopped by SIGTERM.")


@contextlib.contextmanager
def resumable_output(target: Path, provenance: Provenance) -> Iterator[ResumableOutput]:
    """OUT.part, to be resumed or begun; no other process writes it meanwhile.

    Raises ValueError if another process writes it, or OUT.part or its record is not
    t2t-decoder's. After an exception in the block, says what is done; if that is
    nothing, removes both files.
    """
    part = Path(f"{target}.part")
    handle = open_locked(part)
    if handle is None:
        raise ValueError(
            f"Only one process can write an output. Received: {target}, and another"
            f" writes {part} now. Wait for it, or name another file."
        )
    with (
        full_disk_is_named(target, FULL_DISK_ADVICE),
        interrupt_at_sigterm(),
        os.fdopen(handle, "a+b") as file,
    ):
        output = ResumableOutput(target, file, provenance)
        try:
            output.begin()
            yield output
        except BaseException:
            if output.record.lines:
                say(
                    f"{output.record.lines:,} lines are done, in {part}. The same"
                    " command resumes after them."
                )
            elif not output.record.seconds and not output.is_of_others:
                output.discard()
            raise


class ResumableOutput:
    """OUT.part, open and locked, and its record."""

    def __init__(self, target: Path, file: BinaryIO, provenance: Provenance) -> None:
        self.record = PartRecord(provenance)
        self._target, self.part, self._record_file = (
            target,
            Path(f"{target}.part"),
            Path(f"{target}.part.json"),
        )
        self._file = file
        # of the lines done, and their output
        self._input_digest, self._digest = hashlib.sha256(), hashlib.sha256()
        self._started = time.monotonic()
        # whether OUT.part or its record is a file of the user's
        self.is_of_others = False

    def begin(self) -> None:
        """Reads how much is done, and begins anew if that cannot be resumed. Raises
        ValueError if OUT.part or its record is not t2t-decoder's.
        """
        for path in (self._target, self._record_file):
            remove_temporary_files(path.parent, path.name)
        size = os.fstat(self._file.fileno()).st_size
        if size or self._record_file.exists():
            self._check_own(size)
            self._read_record(size)
        else:
            self._begin()

    def skip_done(self, text: Input) -> tuple[Iterator[str], Origin]:
        """The lines of an input without those whose output is there already, and their
        origin.

        If those are not the lines that the output was made of, it starts anew with all
        lines.
        """
        lines = text.lines()
        self._input_digest = hashlib.sha256()
        for line in itertools.islice(lines, self.record.lines):
            self._input_digest.update(_hashed(line))
        if self._input_digest.hexdigest() != self.record.lines_sha256:
            if text.is_pipe:
                raise ValueError(
                    f"{text.origin.file} does not begin with the lines that {self.part}"
                    " is of. Delete that file."
                )
            self._restart("the input has changed")
            lines = text.lines()
        self._started = time.monotonic() - self.record.seconds
        return lines, text.origin.after(self.record.lines)

    def write(self, window: Window, output: WindowOutput) -> None:
        """Writes the output of the next window, and records it as done."""
        data = encode_lines(output.lines)
        self._file.write(data)
        self._file.flush()
        os.fsync(self._file.fileno())
        self._digest.update(data)
        for line in window.lines:
            self._input_digest.update(_hashed(line))
        done = dataclasses.replace(
            self.record,
            lines=self.record.lines + len(window.lines),
            lines_sha256=self._input_digest.hexdigest(),
            bytes=self.record.bytes + len(data),
            sha256=self._digest.hexdigest(),
            counts=dict(Counter(self.record.counts) + Counter(output.counts)),
        )
        self._write_record(done)

    def record_seconds(self) -> None:
        """Records the time that the work has taken, in this process and before."""
        self._write_record(self.record)

    def _write_record(self, done: PartRecord) -> None:
        """Records what is done, and the time until now."""
        done = dataclasses.replace(done, seconds=time.monotonic() - self._started)
        write_record(self._record_file, done)
        self.record = done

    def publish(self) -> None:
        """OUT.part becomes OUT."""
        if not is_compressed(self._target):
            os.replace(self.part, self._target)
        else:
            with (
                atomic_file(self._target) as file,
                compressed(file, self._target) as out,
            ):
                self._file.seek(0)
                shutil.copyfileobj(self._file, out, 1 << 20)
        self.discard()

    def discard(self) -> None:
        """Removes OUT.part and its record."""
        self.part.unlink(missing_ok=True)
        self._record_file.unlink(missing_ok=True)

    def _read_record(self, size: int) -> None:
        """Reads how much of OUT.part is done, and begins anew if that cannot be
        resumed.
        """
        try:
            record = read_record(self._record_file, PartRecord, "")
        except ValueError:
            return self._restart(f"{self._record_file.name} is damaged")
        expected = self.record.provenance
        changed = [
            name for name in expected if record.provenance.get(name) != expected[name]
        ]
        if changed:
            return self._restart(f"it was made with another {', '.join(changed)}")
        self._file.truncate(min(size, record.bytes))
        self._file.seek(0)
        while block := self._file.read(1 << 20):
            self._digest.update(block)
        if self._digest.hexdigest() != record.sha256:
            return self._restart("it has changed since it was written")
        self.record = record
        if record.lines:
            say(f"Resuming after line {record.lines:,}.")

    def _check_own(self, size: int) -> None:
        """Raises ValueError unless OUT.part and its record are t2t-decoder's."""
        record = self._record_file
        start = record.read_bytes()[: len(RECORD_START)] if record.exists() else b""
        if start == RECORD_START:
            return
        self.is_of_others = True
        if not size:
            self.part.unlink()
        received = f"a file without its record {record.name}"
        if start:
            received = (
                f"{record.name}, which is not its record of format_version"
                f" {FORMAT_VERSION}: it begins {start!r}"
            )
        raise ValueError(
            f"{self.part} must be what t2t-decoder has done of {self._target.name}."
            f" Received: {received}, perhaps yours. Move or delete it, or name another"
            " output."
        )

    def _restart(self, reason: str) -> None:
        say(f"{self.part} cannot be resumed: {reason}. Starting anew.")
        self._begin()

    def _begin(self) -> None:
        """Begins anew; the record says so before the file is emptied."""
        self.record = PartRecord(self.record.provenance)
        write_record(self._record_file, self.record)
        self._file.truncate(0)
        self._input_digest, self._digest = hashlib.sha256(), hashlib.sha256()


def encode_lines(lines: Sequence[str]) -> bytes:
    """Lines as they are in a file."""
    return "".join(f"{line}\n" for line in lines).encode()


def _hashed(line: str) -> bytes:
    """A line of the input as it is hashed; `repr` keeps lines apart whatever they
    contain.
    """
    return f"{line!r}\n".encode()
