"""Folders that appear complete or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from t2tlite.files.lock import LOCK
from t2tlite.files.own_files import own, remove

NEW, OLD = "new", "old"


@contextlib.contextmanager
def atomic_folder(
    target: Path,
    work: Path,
    check: Callable[[], object] = lambda: None,
    place: Callable[[Path, Path], object] | None = None,
) -> Iterator[Path]:
    """Yields an empty folder, which replaces the folder `target` when the block ends.

    Until then it is `work`/new, whose files are synchronised with the disk before they
    move. `work` must be on the file system of `target`, and nobody else may be writing
    there (`only_process`). After an exception `target` is unchanged. If a process is
    killed, the next call removes what it left, and puts back the earlier folder if that
    was moved aside; `check` is then called, and raises if `target` may not be replaced.

    `place(folder, target)` moves the files in another way.
    """
    new = work / NEW
    _recover(target, work)
    try:
        check()
        new.mkdir(parents=True)
        yield new
        _synchronise(new)
        if place is not None:
            place(new, target)
        else:
            if target.exists():
                target.rename(work / OLD)
            new.rename(target)
    finally:
        _recover(target, work)


def remove_leftovers(work: Path) -> None:
    """Removes what a killed process left in the work folder of an `atomic_folder`."""
    if not own(work).is_dir():
        return
    for path in work.iterdir():
        if path.name != LOCK:
            remove(path)
    with contextlib.suppress(OSError):  # it holds the lock
        work.rmdir()


def _recover(target: Path, work: Path) -> None:
    """Puts back an earlier folder without a successor, and removes the rest."""
    old = own(work) / OLD
    is_folder = old.is_dir() and not old.is_symlink()
    if is_folder and not target.exists():
        old.rename(target)
    remove_leftovers(work)


def _synchronise(folder: Path) -> None:
    """Writes all files in a folder to the disk."""
    for path in folder.rglob("*"):
        if path.is_file():
            with path.open("rb+") as file:  # Windows needs the right to write
                os.fsync(file.fileno())
