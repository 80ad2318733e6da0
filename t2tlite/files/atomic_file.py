"""Files that appear complete or not at all."""

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
    """A binary file to write, which replaces `path` in one step when the block ends.

    Until then it is `.NAME.<random>.tmp` in the same folder. After an exception it is removed, and what was at `path`
    before stays. Only a killed process leaves the temporary file behind.
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


def remove_temporary_files(folder: Path) -> None:
    """Removes the temporary files of `atomic_file` that killed processes left in `folder`."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 atomically, and creates its folder if there is none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(text.encode("utf-8"))


def copy_file(source: Path, target: Path) -> None:
    """Copies a file atomically."""
    with atomic_file(target) as file:
        file.write(source.read_bytes())


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
