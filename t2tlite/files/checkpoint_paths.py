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

from t2tlite.files.atomic_file import (
    copy_file,
    file_sha256,
    remove_temporary_files,
    synchronise,
)
from t2tlite.files.own_files import own, remove, remove_files

CHECKPOINT_PREFIX = "model.ckpt"
# a run's checkpoint; the last two are folders
NEWEST, BEST, AVERAGED = "newest", "best", "averaged"
# the folder in which a checkpoint is written before it is moved to its place
SAVING = ".saving"
CHECKPOINT_FILE = re.compile(r"(model\.ckpt-\d+)\.(index|data-\d+-of-\d+)")


def list_checkpoints(folder: Path) -> list[str]:
    """The checkpoints directly in a folder, `folder/model.ckpt-N`, oldest first; the
    folder may be absent.
    """
    checkpoints = []
    for path in folder.glob("*.index"):
        if CHECKPOINT_FILE.fullmatch(path.name):
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
        return checkpoint_at(text)
    path = run if text == NEWEST else run / text
    if text.isdecimal():
        path = run / f"{CHECKPOINT_PREFIX}-{text}"
        in_best = run / BEST / path.name
        if _checkpoint_in(in_best) and not _checkpoint_in(path):
            path = in_best
    others = [Path(other).name for other in list_checkpoints(run)]
    return _required(path, f"{run} has {', '.join(others) or 'none'}.")


def checkpoint_at(path: str | Path) -> str:
    """The checkpoint at a path, or the newest in a folder; FileNotFoundError if there
    is none.
    """
    return _required(Path(path).expanduser(), "Name another.")


def _required(path: Path, advice: str) -> str:
    checkpoint = _checkpoint_in(path)
    if checkpoint is None:
        raise FileNotFoundError(
            f"There is no checkpoint at {path}, with {CHECKPOINT_PREFIX}-N.index and"
            f" its data file. {advice}"
        )
    return checkpoint


def _checkpoint_in(path: Path) -> str | None:
    prefix = str(path).removesuffix(".index")
    if Path(f"{prefix}.index").exists():
        return prefix
    checkpoints = list_checkpoints(path)
    return checkpoints[-1] if checkpoints else None


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
    work = own(folder / SAVING)
    remove(work)
    work.mkdir(parents=True)
    try:
        yield work
        synchronise(work)
        for checkpoint in list_checkpoints(work):
            _place(checkpoint, folder, os.replace)
    finally:
        remove(work)


def copy_checkpoint(path: str, folder: Path) -> str:
    """Copies a checkpoint to a folder, by hard links if the file system has them;
    returns its path there.
    """
    folder.mkdir(exist_ok=True)
    _place(path, folder, _link_or_copy)
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
    remove(own(folder / SAVING))

    def is_left(name: str) -> bool:
        match = CHECKPOINT_FILE.fullmatch(name)
        return match is not None and not (folder / f"{match[1]}.index").exists()

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
    files = Path(path).parent.iterdir()
    return sorted(file for file in files if name.fullmatch(file.name))


def _place(
    checkpoint: str, folder: Path, place: Callable[[Path, Path], object]
) -> None:
    """Places the files of a checkpoint in a folder, the index last; an earlier one of
    that name loses its index first.
    """
    files = checkpoint_files(checkpoint)
    (folder / files[-1].name).unlink(missing_ok=True)
    for file in files:
        place(file, folder / file.name)


def _link_or_copy(source: Path, target: Path) -> None:
    target.unlink(missing_ok=True)
    try:
        os.link(source, target)
    except OSError:  # a file system without hard links
        copy_file(source, target)
