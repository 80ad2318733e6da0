"""Paths of checkpoints: `model.ckpt-N`, N being the step, in a run directory or a
folder inside it.

A checkpoint is the file model.ckpt-N.index and data files, model.ckpt-N.data-I-of-M. It
exists while it has its index: the index appears last and is removed first. No glob
patterns are used, since a folder's name can be one (lr[1]).
"""

import contextlib
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from t2tlite.files.atomic_file import copy_file, file_sha256, remove_temporary_files
from t2tlite.files.atomic_folder import atomic_folder, remove_leftovers
from t2tlite.files.own_files import remove_files

CHECKPOINT_PREFIX = "model.ckpt"
# a run's checkpoint; the last two are folders
NEWEST, BEST, AVERAGED = "newest", "best", "averaged"
# the folder in which a checkpoint is written before it is moved to its place
SAVING = ".saving"


def list_checkpoints(folder: Path) -> list[str]:
    """The checkpoints directly in a folder, `folder/model.ckpt-N`, oldest first; the
    folder may be absent.
    """
    name = re.compile(rf"{re.escape(CHECKPOINT_PREFIX)}-\d+\.index")
    checkpoints = []
    for path in folder.glob("*.index"):
        if name.fullmatch(path.name):
            checkpoints.append(str(path.with_suffix("")))
    return sorted(checkpoints, key=step_of)


def find_checkpoint(run: Path, chosen: str | Path | int | None = None) -> str:
    """The checkpoint of the run directory `run` to use; `chosen` is one of these:

    newest            the newest checkpoint; the default
    best, averaged    the checkpoint in the folder RUN/best or RUN/averaged
    2000              the checkpoint of this step, among the newest or the best
    model.ckpt-2000   another name in the run
    DIR/model.ckpt-N  any checkpoint, or DIR/, a folder of checkpoints: a path has a
                      separator, a name has none

    So a name always refers to the run, whatever the current folder holds. Raises
    FileNotFoundError if there is no such checkpoint.
    """
    text = NEWEST if chosen in (None, "") else str(chosen)
    if os.sep in text or text in (os.curdir, os.pardir):
        paths = [Path(text).expanduser()]
    elif text.isdecimal():
        name = f"{CHECKPOINT_PREFIX}-{text}"
        paths = [run / name, run / BEST / name]
    else:
        paths = [run if text == NEWEST else run / text]
    for path in paths:
        if checkpoint := _checkpoint_at(path):
            return checkpoint
    others = []
    for folder in (run, run / BEST, run / AVERAGED):
        for other in list_checkpoints(folder):
            others.append(str(Path(other).relative_to(run)))
    advice = "Train first, or name another."
    if others:
        advice = (
            f"{run} has {', '.join(others)}. Choose newest, best, averaged, a step, or"
            f" a path with a {os.sep}."
        )
    raise _not_found(paths[0], advice)


def checkpoint_at(path: str | Path) -> str:
    """The checkpoint at a path, or the newest in a folder; FileNotFoundError if there
    is none.
    """
    path = Path(path).expanduser()
    checkpoint = _checkpoint_at(path)
    if checkpoint is None:
        raise _not_found(path, "Name another.")
    return checkpoint


def _checkpoint_at(path: Path) -> str | None:
    path = Path(str(path).removesuffix(".index"))
    if Path(f"{path}.index").exists():
        return str(path)
    checkpoints = list_checkpoints(path)
    return checkpoints[-1] if checkpoints else None


def _not_found(where: Path, advice: str) -> FileNotFoundError:
    return FileNotFoundError(
        f"There is no checkpoint at {where}. Expected {CHECKPOINT_PREFIX}-N.index and"
        f" its data file. {advice}"
    )


def step_of(path: str) -> int:
    """The N of `model.ckpt-N`; 0 if the name has no step."""
    match = re.search(r"-(\d+)$", path)
    return int(match[1]) if match else 0


def checkpoint_identity(path: str) -> str:
    """The name of a checkpoint and the SHA-256 of its index, which contains the
    checksums of all weights.
    """
    return f"{Path(path).name} {file_sha256(Path(f'{path}.index'))}"


@contextlib.contextmanager
def saving_folder(folder: Path) -> Iterator[Path]:
    """Yields an empty folder for checkpoints, which are moved to `folder` if the block
    ends without an exception.
    """
    work = folder / SAVING
    with atomic_folder(folder, work, place=_move_checkpoints) as unfinished:
        yield unfinished


def copy_checkpoint(path: str, folder: Path) -> str:
    """Copies a checkpoint to a folder, by hard links if the file system has them;
    returns its path there.
    """
    folder.mkdir(exist_ok=True)
    _place(checkpoint_files(path), folder, _link_or_copy)
    return str(folder / Path(path).name)


def remove_checkpoint(path: str) -> None:
    """Removes the files of a checkpoint, the index first."""
    for file in reversed(checkpoint_files(path)):
        file.unlink(missing_ok=True)


def remove_other_checkpoints(path: str) -> None:
    """Removes all other checkpoints in the folder of this checkpoint."""
    for other in list_checkpoints(Path(path).parent):
        if other != path:
            remove_checkpoint(other)


def remove_unfinished(folder: Path) -> None:
    """Removes what killed processes left in a folder of checkpoints. No other process
    may be writing there.
    """
    remove_temporary_files(folder)
    remove_leftovers(folder / SAVING)
    checkpoints = list_checkpoints(folder)
    data_file = re.compile(rf"({re.escape(CHECKPOINT_PREFIX)}-\d+)\.data-\d+-of-\d+")

    def is_left(name: str) -> bool:
        match = data_file.fullmatch(name)
        return match is not None and str(folder / match[1]) not in checkpoints

    remove_files(folder, is_left)


@contextlib.contextmanager
def readable_path(path: str) -> Iterator[str]:
    """Yields a path by which TensorFlow can read a checkpoint.

    TensorFlow reads the path as a glob pattern, and so finds no checkpoint in a folder
    such as lr[1]. There the path leads through a symbolic link.
    """
    if not set(path) & {"[", "\\"}:
        yield path
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder, "run")
        link.symlink_to(Path(path).parent.absolute())
        yield str(link / Path(path).name)


def checkpoint_files(path: str) -> list[Path]:
    """The files of a checkpoint, the index last."""
    name = re.compile(rf"{re.escape(Path(path).name)}\.(index|data-\d+-of-\d+)")
    return sorted(
        file for file in Path(path).parent.iterdir() if name.fullmatch(file.name)
    )


def _move_checkpoints(source: Path, target: Path) -> None:
    """Moves the checkpoints in a folder to another."""
    for path in list_checkpoints(source):
        _place(checkpoint_files(path), target, os.replace)


def _place(
    files: list[Path], folder: Path, place: Callable[[Path, Path], object]
) -> None:
    """Places files in a folder, the index last; an earlier checkpoint of that name
    loses its index first.
    """
    (folder / files[-1].name).unlink(missing_ok=True)
    for file in files:
        place(file, folder / file.name)


def _link_or_copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        copy_file(source, target)
