"""Folders that appear complete or not at all."""

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from t2tlite.files.lock import LOCK
from t2tlite.files.own_files import own, remove, remove_if_empty

OLD = "old"


def _replace_folder(new: Path, target: Path) -> None:
    if target.exists():
        target.rename(new.with_name(OLD))
    new.rename(target)


@contextlib.contextmanager
def atomic_folder(
    target: Path,
    work: Path,
    check: Callable[[], object] = lambda: None,
    place: Callable[[Path, Path], object] = _replace_folder,
) -> Iterator[Path]:
    """Yields an empty folder, which replaces the folder `target` when the block ends.

    Until then it is `work`/new, whose files are synchronised with the disk before they
    move. `work` must be on the file system of `target`, and nobody else may be writing
    there (`only_process`). After an exception `target` is unchanged. If a process is
    killed, the next call removes what it left, and puts back the earlier folder if that
    was moved aside; `check` is then called, and raises if `target` may not be replaced.

    `place(folder, target)` moves the files in another way.
    """
    new = work / "new"
    _recover(target, work)
    try:
        check()
        new.mkdir(parents=True)
        yield new
        for path in new.rglob("*"):
            if path.is_file():
                with path.open("rb+") as file:  # Windows needs the right to write
                    os.fsync(file.fileno())
        place(new, target)
    finally:
        _recover(target, work)


def remove_leftovers(work: Path) -> None:
    """Removes what a killed process left in the work folder of an `atomic_folder`."""
    if not own(work).is_dir():
        return
    for path in work.iterdir():
        if path.name != LOCK:
            remove(path)
    remove_if_empty(work)  # it may hold the lock


def _recover(target: Path, work: Path) -> None:
    """Puts back an earlier folder without a successor, and removes the rest."""
    old = own(work) / OLD
    if old.is_dir() and not old.is_symlink() and not target.exists():
        old.rename(target)
    remove_leftovers(work)
