"""Files and folders that appear complete or not at all, or have no name."""

import contextlib
import errno
import hashlib
import os
import pickle
import re
import shutil
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from t2tlite.files.own_files import (
    LOCK,
    own,
    remove,
    remove_files,
    remove_if_empty,
)

# /dev/stdout is a symbolic link to one of these
DESCRIPTOR = re.compile(r"/(?:dev|proc/self)/fd/(\d+)")
MAX_LINKS = 40  # in a chain of symbolic links, as in Linux
DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


@contextlib.contextmanager
def atomic_file(path: str | Path) -> Iterator[BinaryIO]:
    """A binary file to write, which replaces `path` in one step when the block ends.

    Until then it is `.NAME.<random>.tmp` in the same folder. After an exception it is
    removed, and `path` is unchanged. Only a killed process leaves the temporary file
    behind. A symbolic link is kept, and the file that it leads to is replaced. A path
    that is not a regular file, such as /dev/stdout, is written directly.
    """
    target = replaceable(path)
    with full_disk_is_named(path):
        if target is None:
            with open_directly(path) as file:
                yield file
            return
        temporary = temporary_path(target)
        file = temporary.open("xb")
        try:
            with file:
                yield file
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise


@contextlib.contextmanager
def full_disk_is_named(path: str | Path) -> Iterator[None]:
    """Adds the name of a file to the system's error that the disk is full, or the file
    too large, which has none.
    """
    try:
        yield
    except OSError as error:
        if error.errno in DISK_IS_FULL and error.filename is None:
            error.filename = str(path)
        raise


def check_name(path: str | Path) -> None:
    """Raises ValueError for an empty path, and for one that is not UTF-8 on the disk:
    neither TensorFlow nor a record can name it.
    """
    if path == "":
        raise ValueError("A path must not be empty: '.' is the current folder.")
    name = os.path.abspath(path)
    with contextlib.suppress(UnicodeEncodeError):
        if os.fsencode(name) == name.encode():
            return
    raise ValueError(
        f"File names must be UTF-8, as with LC_ALL=C.UTF-8. Received: {name!a}."
    )


def temporary_path(path: Path) -> Path:
    """`.NAME.<random>.tmp` beside `path`, for a new file; `remove_temporary_files`
    removes it after a kill.
    """
    return path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}.tmp")


def replaceable(path: str | Path) -> Path | None:
    """The regular file, existing or not, to which a path leads through symbolic links,
    or None.

    /dev/stdout is a file descriptor and not a file, even if standard output is
    redirected to a file.
    """
    target = _follow(Path(path))
    if isinstance(target, Path) and (target.is_file() or not target.exists()):
        return target
    return None


def open_directly(path: str | Path) -> BinaryIO:
    """Opens for writing what cannot be replaced: a device, a pipe, or a file descriptor
    (/dev/stdout).
    """
    target = _follow(Path(path))
    sys.stdout.flush()  # what was printed before comes first
    if isinstance(target, int):
        target = os.dup(target)
    return open(target, "wb")


def _follow(path: Path) -> Path | int:
    """Where symbolic links lead: a path, or the number of a file descriptor."""
    start = path
    for _ in range(MAX_LINKS):
        if descriptor := DESCRIPTOR.fullmatch(str(path)):
            return int(descriptor[1])
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(start))


def check_writable(path: str | Path) -> None:
    """Creates the folder of a file to write, and raises OSError, before long work, if
    the file cannot be written; ValueError as `check_name`.
    """
    check_name(path)
    if Path(path).is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    if target := replaceable(path):
        target.parent.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=target.parent).close()


def remove_temporary_files(folder: Path, name: str | None = None) -> None:
    """Removes the temporary files that killed processes left in `folder`: all, or those
    of the file `name`.

    Files of other names stay: t2tlite has not written them.
    """
    stem = re.escape(name) if name else ".+"
    remove_files(folder, re.compile(rf"\.{stem}\.[0-9a-f]{{8}}\.tmp").fullmatch)


def write_text(path: Path, text: str) -> None:
    """Writes a text file in UTF-8 atomically, and creates its folder if there is
    none.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        file.write(text.encode())


def copy_file(source: Path, target: Path) -> None:
    """Copies to a file of t2tlite's own, atomically."""
    with source.open("rb") as content, atomic_file(own(target)) as file:
        shutil.copyfileobj(content, file)


def unpickled(file: BinaryIO) -> Iterator[Any]:
    """Yields what was pickled to a file, one after the other."""
    file.seek(0)
    with contextlib.suppress(EOFError):
        while True:
            yield pickle.load(file)


def check_sha256(path: Path, sha256: str, advice: str) -> None:
    """Raises ValueError with `advice` unless a file's content has the recorded SHA-256.

    Raises FileNotFoundError with `advice` if there is no such file.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is missing. {advice}")
    if file_sha256(path) != sha256:
        raise ValueError(f"{path} must have the SHA-256 recorded. {advice}")


def file_sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def text_sha256(text: str) -> str:
    """The SHA-256 of a text in UTF-8, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


@contextlib.contextmanager
def atomic_folder(
    target: Path, work: Path, check: Callable[[], object] = lambda: None
) -> Iterator[Path]:
    """Yields an empty folder, which replaces the folder `target` when the block ends.

    Until then it is `work`/new, whose files are synchronised with the disk before they
    move. `work` must be on the file system of `target`, and nobody else may be writing
    there (`only_process`). After an exception `target` is unchanged. If a process is
    killed, the next call removes what it left, and puts back the earlier folder if that
    was moved aside; `check` is then called, and raises if `target` may not be replaced.
    """
    new = work / "new"
    old = own(work) / "old"
    _recover(target, old)
    try:
        check()
        with full_disk_is_named(target):
            new.mkdir(parents=True)
            yield new
            synchronise(new)
        if target.exists():
            target.rename(old)
        new.rename(target)
    finally:
        _recover(target, old)


def _recover(target: Path, old: Path) -> None:
    """Puts back an earlier folder without a successor, and removes the rest."""
    if old.is_dir() and not old.is_symlink() and not target.exists():
        old.rename(target)
    for path in old.parent.glob("*"):
        if path.name != LOCK:
            remove(path)
    remove_if_empty(old.parent)  # it may hold the lock


def synchronise(folder: Path) -> None:
    """Writes all files in a folder to the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:  # Windows needs the right to write
                os.fsync(file.fileno())
