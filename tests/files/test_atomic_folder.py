"""Folders that appear complete or not at all."""

import errno
import os
import re
from pathlib import Path

import pytest

from t2tlite.files.atomic_file import atomic_folder
from t2tlite.files.own_files import only_process


@pytest.fixture
def target(tmp_path):
    return tmp_path / "house"


@pytest.fixture
def work(tmp_path):
    return tmp_path / ".house.building"


def build(target, work, content, check=lambda: None, error=None):
    with atomic_folder(target, work, check) as unfinished:
        assert list(unfinished.iterdir()) == []
        (unfinished / "cellar").mkdir()
        (unfinished / "cellar" / "wine").write_text(content)
        if error:
            raise error


def contents(folder):
    """The content of every file below a folder by its path there."""
    files = filter(Path.is_file, folder.rglob("*"))
    return {str(path.relative_to(folder)): path.read_text() for path in files}


@pytest.mark.parametrize("earlier", [None, {}, {"cellar/beer": "old", "attic": "old"}])
def test_replaces_the_whole_folder(target, work, earlier):
    if earlier is not None:
        target.mkdir()
    for name, text in (earlier or {}).items():
        (target / name).parent.mkdir(exist_ok=True)
        (target / name).write_text(text)
    build(target, work, "red")
    assert contents(target.parent) == {"house/cellar/wine": "red"}
    assert not work.exists()


def test_files_are_on_the_disk_before_they_move(target, work, monkeypatch):
    events = []
    rename = Path.rename
    monkeypatch.setattr(os, "fsync", lambda handle: events.append("fsync"))
    monkeypatch.setattr(
        Path,
        "rename",
        lambda path, new: (events.append(path.name), rename(path, new))[1],
    )
    build(target, work, "red")
    build(target, work, "white")
    assert events == ["fsync", "new", "fsync", "house", "new"]


def test_an_exception_leaves_the_earlier_folder(target, work):
    build(target, work, "red")
    full = OSError(errno.ENOSPC, "No space left on device")
    for error, message in ((full, f"device: '{target}'$"), (KeyboardInterrupt(), "^$")):
        with pytest.raises(type(error), match=message):
            build(target, work, "white", error=error)
    assert contents(target.parent) == {"house/cellar/wine": "red"}
    assert not work.exists()


def test_earlier_folder_returns_if_the_new_one_cannot_be_moved(
    target, work, monkeypatch
):
    build(target, work, "red")
    rename = Path.rename

    def fail_for_the_new_one(path, new):
        if path.name == "new":
            raise OSError("Input/output error")
        return rename(path, new)

    monkeypatch.setattr(Path, "rename", fail_for_the_new_one)
    with pytest.raises(OSError, match="Input/output error"):
        build(target, work, "white")
    assert contents(target.parent) == {"house/cellar/wine": "red"}


@pytest.mark.parametrize("moved_aside", [True, False])
def test_what_a_killed_process_left_is_put_back_or_removed(target, work, moved_aside):
    """The earlier folder is back before the check whether it may be replaced."""
    build(target, work, "red")
    (work / "new" / "cellar").mkdir(parents=True)
    (work / "part").write_text("half")
    if moved_aside:
        target.rename(work / "old")

    def check():
        assert contents(target) == {"cellar/wine": "red"}
        raise ValueError("It is in use.")

    with pytest.raises(ValueError, match=re.escape("It is in use.")):
        build(target, work, "white", check)
    assert contents(target.parent) == {"house/cellar/wine": "red"}
    assert not work.exists()
    build(target, work, "white")
    assert contents(target) == {"cellar/wine": "white"}


def test_a_lock_in_the_work_folder_stays_until_it_is_released(target, work):
    with only_process(work, "build"):
        build(target, work, "red")
        assert [path.name for path in work.iterdir()] == [".lock"]
    assert not work.exists()
