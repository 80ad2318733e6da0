"""Checkpoints as files: moved, copied and removed, whatever a killed process left."""

import os

import pytest

from t2tlite.files.checkpoint_paths import (
    list_checkpoints,
    remove_checkpoint,
    remove_unfinished,
    saving_folder,
)


def files(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def names(folder):
    return sorted(
        str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()
    )


WHOLE = [
    "model.ckpt-5.data-00000-of-00002",
    "model.ckpt-5.data-00001-of-00002",
    "model.ckpt-5.index",
]
OTHERS = [
    "model.ckpt-5.meta",
    "model.ckpt-55.index",
    "model.ckpt-x_temp",
    "notes.data-00000-of-00001",
    "notes.txt",
    ".my.tmp",
]


def test_leftovers_are_removed_and_nothing_else(tmp_path):
    files(tmp_path, *WHOLE, *OTHERS)
    before = names(tmp_path)
    files(
        tmp_path,
        ".saving/model.ckpt-6.index",
        "model.ckpt-6.data-00000-of-00001",
        ".best.json.0a1b2c3d.tmp",
    )
    remove_unfinished(tmp_path)
    assert names(tmp_path) == before
    remove_unfinished(tmp_path / "absent")


def test_a_checkpoint_is_removed_by_its_exact_name(tmp_path):
    files(tmp_path, *WHOLE, *OTHERS)
    remove_checkpoint(f"{tmp_path}/model.ckpt-5")
    assert names(tmp_path) == sorted(OTHERS)


@pytest.mark.parametrize("moves", [0, 1, 2])
def test_killed_while_a_checkpoint_is_moved_to_its_place(tmp_path, monkeypatch, moves):
    """There is no checkpoint then, not even if there was one of that name: half of each
    would be damaged.
    """
    files(tmp_path, *WHOLE)
    replace, done = os.replace, []

    def killed(source, target):
        if len(done) == moves:
            raise KeyboardInterrupt
        done.append(target)
        replace(source, target)

    monkeypatch.setattr(os, "replace", killed)
    with pytest.raises(KeyboardInterrupt), saving_folder(tmp_path) as folder:
        files(folder, *WHOLE, "temporary/part")
    assert list_checkpoints(tmp_path) == []
    assert not (tmp_path / ".saving").exists()


def test_moved_to_its_place(tmp_path):
    for _ in range(2):
        with saving_folder(tmp_path / "new") as folder:
            files(folder, *WHOLE, "temporary/part")
        assert names(tmp_path / "new") == sorted(WHOLE)
