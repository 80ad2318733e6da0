"""A folder or a file that one process at a time may write."""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

LOCK = ".lock"  # exists while a process has the folder to itself


@contextlib.contextmanager
def only_process(folder: Path, what: str, wait: bool = False) -> Iterator[None]:
    """Creates `folder` if there is none and locks it against a second process; removes it if it is left empty.

    The lock ends with the process that has it, however that ends. A file system without locks does not lock. If another
    process has the lock, raises a ValueError that says `what` only one can do, such as "make data"; with `wait`, waits
    for it instead.
    """
    path = folder / LOCK
    handle = _open_locked(path, what, wait)
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(handle)
        with contextlib.suppress(OSError):
            folder.rmdir()


def lock(handle: int, wait: bool = False) -> bool:
    """Locks an open file until it is closed; whether no other process has locked it. True where nothing can be.

    With `wait`, waits until no other process has.
    """
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except BlockingIOError:
        return False
    except OSError:  # a file system without locks
        pass
    return True


def _open_locked(path: Path, what: str, wait: bool) -> int:
    """The lock file, open and locked."""
    while True:
        path.parent.mkdir(parents=True, exist_ok=True)  # whoever had the lock may have removed it, empty
        handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)  # NFS locks only files that are open for writing
        if not lock(handle, wait):
            os.close(handle)
            raise ValueError(
                f"Only one process at a time can {what}. Received: {path.parent}, which another one is filling. Wait "
                "until it is done, or use another folder."
            )
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)  # whoever had the lock removed the file after it was opened here
