"""Locks on a folder or a file that one process at a time may write."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from t2tlite.files.own_files import own, remove_if_empty

LOCK = ".lock"  # exists while a process holds the folder's lock
# Windows would write each line end as two bytes without O_BINARY
OPEN_TO_LOCK = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


@contextlib.contextmanager
def only_process(folder: Path, what: str, wait: bool = False) -> Iterator[None]:
    """Creates `folder` if needed and locks it against other processes, as `locked`;
    removes it if it is left empty.
    """
    try:
        with locked(folder / LOCK, what, wait):
            yield
    finally:
        remove_if_empty(folder)


@contextlib.contextmanager
def locked(path: Path, what: str, wait: bool = False) -> Iterator[int]:
    """Opens a file to append to it, locked against other processes; removes it if it
    is left empty.

    The lock ends with its process, however that ends. Without file-system support
    nothing is locked. If another process has the lock, raises a ValueError that says
    `what` only one can do, such as "make data"; with `wait`, waits instead.
    """
    handle = _open_locked(path, what, wait)
    try:
        yield handle
    finally:
        if not os.fstat(handle).st_size:
            # the file must go before another process locks it; Windows keeps an open
            # one
            with contextlib.suppress(PermissionError):
                path.unlink(missing_ok=True)
        os.close(handle)


def _open_locked(path: Path, what: str, wait: bool) -> int:
    import portalocker  # importing it takes a tenth of the time of --help

    flags = portalocker.LockFlags.EXCLUSIVE
    if not wait:
        flags |= portalocker.LockFlags.NON_BLOCKING
    while True:
        # the last process may have removed the empty folder
        path.parent.mkdir(parents=True, exist_ok=True)
        # NFS locks only files that are open for writing
        handle = os.open(own(path), OPEN_TO_LOCK, 0o666)
        try:
            portalocker.lock(handle, flags)
        except portalocker.AlreadyLocked:
            os.close(handle)
            if wait:  # Windows waits for seconds only
                continue
            raise ValueError(
                f"Only one process at a time can {what}. Received:"
                f" {path.parent if path.name == LOCK else path}, which another"
                " process is using. Wait until it is done, or name another."
            ) from None
        except portalocker.LockException:  # a file system without locks
            pass
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        # the last process removed or renamed the file after it was opened here
        os.close(handle)
