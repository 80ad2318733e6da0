"""Files and folders whose paths t2tlite chooses, and which it replaces and removes.

A path that the user names may be a symbolic link: it is followed. One that t2tlite
chooses below it may not, since a run from somebody else could lead anywhere. Whatever
t2tlite removes, this package removes.
"""

import contextlib
import os
import shutil
from collections.abc import Callable
from pathlib import Path


def own(path: Path) -> Path:
    """The path of a file or folder of t2tlite's own, which need not exist. Raises
    ValueError if it is a symbolic link.
    """
    if path.is_symlink():
        raise ValueError(
            f"{path} must not be a link, since t2tlite replaces what is there."
            f" Received: a link to {os.readlink(path)}. Remove the link."
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
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if is_own(path.name) and (path.is_symlink() or not path.is_dir()):
            path.unlink(missing_ok=True)


def remove_if_empty(folder: Path) -> None:
    """Removes a folder, unless there is none, or something is in it."""
    with contextlib.suppress(OSError):
        folder.rmdir()
