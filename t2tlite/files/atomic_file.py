"""Files that are either whole or not there."""

from __future__ import annotations

import contextlib
import hashlib
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write, which takes its place at `path` when the block ends, in one step.

    Until then it lies in the same folder as `.NAME.<random>.tmp`; after an exception it is removed and whatever
    was at `path` before stays. Only a killed process leaves the temporary file behind.

    Raises:
        OSError: the file cannot be written, for one because the disk is full.
    """
    path = Path(path)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def write_text(path: Path, text: str) -> None:
    """Writes a whole text file in UTF-8, and the folder it lies in if need be.

    Raises:
        OSError: the file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def copy_file(source: Path, target: Path) -> None:
    """Copies a file, which appears at `target` whole or not at all.

    Raises:
        OSError: it cannot be read or written.
    """
    with atomic_file(target) as file:
        file.write(source.read_bytes())


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def remove_temporary_files(folder: Path) -> None:
    """Removes what a killed process left half-written in `folder`."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)
