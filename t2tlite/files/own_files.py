"""Files and folders whose paths t2tlite chooses, and which it replaces and removes; and
the locks that let one process at a time do so.

A path that the user names may be a symbolic link: it is followed. One that t2tlite
chooses below it may not, since a run from somebody else could lead anywhere. Whatever
t2tlite removes, this package removes.
"""

import contextlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

LOCK = ".lock"  # exists while a process holds the folder's lock
# Windows would write each line end as two bytes without O_BINARY
OPEN_TO_LOCK = os.O_RDWR | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0)


def own(path: Path) -> Path:
    """The path of a file or folder of t2tlite's own, which need not exist. Raises
    ValueError if it is a symbolic link.
    """
    if path.is_symlink():
        raise ValueError(
            f"{path} must not be a link. Received: one to {os.readlink(path)}."
            " Remove it."
        )
    return path


def remove(path: Path) -> None:
    """Removes a file, or a folder with its content; of a link, the link itself."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_files(folder: Path, is_own: Callable[[str], object]) -> None:
    """Removes the files directly in a folder that have such names. Folders stay."""
    for path in folder.glob("*"):
        if is_own(path.name) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def remove_if_empty(folder: Path) -> None:
    """Removes a folder, unless there is none, or something is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()


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
            held = path.parent if path.name == LOCK else path
            raise ValueError(
                f"Only one process at a time can {what}. Received: {held}, which"
                " another process is using."
            ) from None
        except portalocker.LockException:  # a file system without locks
            pass
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        # the last process removed or renamed the file after it was opened here
        os.close(handle)
