"""Checkpoints found by choice, name, step and path."""

import pytest

from t2tlite.files.checkpoint_paths import (
    checkpoint_at,
    find_checkpoint,
    list_checkpoints,
    step_of,
)


@pytest.fixture
def run(tmp_path):
    """A folder with checkpoints 5, 40 and 100; their content does not matter here."""
    folder = tmp_path / "run"
    folder.mkdir()
    for step in (5, 40, 100):
        (folder / f"model.ckpt-{step}.index").touch()
    return folder


def test_listed_by_step(run):
    (run / "model.ckpt-x.index").touch()
    (run / "other.ckpt-7.index").touch()
    assert list_checkpoints(run) == [
        f"{run}/model.ckpt-{step}" for step in (5, 40, 100)
    ]
    assert list_checkpoints(run / "absent") == []
    assert [step_of(path) for path in (f"{run}/model.ckpt-40", "model")] == [40, 0]


def test_found(run, monkeypatch):
    assert find_checkpoint(run) == f"{run}/model.ckpt-100"
    assert find_checkpoint(run / "absent", str(run)) == f"{run}/model.ckpt-100"
    assert find_checkpoint(run, f"{run}/model.ckpt-5") == f"{run}/model.ckpt-5"
    assert find_checkpoint(run, f"{run}/model.ckpt-5.index") == f"{run}/model.ckpt-5"
    monkeypatch.setenv("HOME", str(run.parent))
    assert find_checkpoint(run, f"~/{run.name}/model.ckpt-5") == f"{run}/model.ckpt-5"


def test_not_found(run, tmp_path_factory):
    empty = tmp_path_factory.mktemp("empty")
    with pytest.raises(
        FileNotFoundError,
        match=rf"no checkpoint at {empty}, .* {empty} has none\.$",
    ):
        find_checkpoint(empty)
    with pytest.raises(FileNotFoundError, match=rf"no checkpoint at {empty}, with"):
        checkpoint_at(empty)


@pytest.fixture
def with_best(run):
    """The run, with a best checkpoint of step 17, which is no longer among the newest,
    and an average.
    """
    for name in ("best/model.ckpt-17.index", "averaged/model.ckpt-100.index"):
        (run / name).parent.mkdir()
        (run / name).touch()
    return run


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ("newest", "model.ckpt-100"),
        ("best", "best/model.ckpt-17"),
        ("averaged", "averaged/model.ckpt-100"),
        ("40", "model.ckpt-40"),
        ("100", "model.ckpt-100"),
        ("17", "best/model.ckpt-17"),
        ("model.ckpt-40", "model.ckpt-40"),
        ("model.ckpt-40.index", "model.ckpt-40"),
    ],
)
def test_a_name_is_the_runs_whatever_the_current_folder_holds(
    with_best, tmp_path, monkeypatch, chosen, expected
):
    monkeypatch.chdir(tmp_path)
    for name in ("best", "averaged", "newest", "40", "100", "17"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.ckpt-7.index").touch()
    (tmp_path / "model.ckpt-40.index").touch()
    assert find_checkpoint(with_best, chosen) == f"{with_best}/{expected}"


def test_a_path_has_a_separator(run, monkeypatch, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.chdir(elsewhere)
    (elsewhere / "averaged").mkdir()
    (elsewhere / "averaged" / "model.ckpt-7.index").touch()
    assert find_checkpoint(run, "./averaged") == "averaged/model.ckpt-7"
    assert find_checkpoint(run, "averaged/model.ckpt-7") == "averaged/model.ckpt-7"
    monkeypatch.chdir(elsewhere / "averaged")
    assert find_checkpoint(run, ".") == "model.ckpt-7"
    monkeypatch.chdir(elsewhere)
    message = rf"no checkpoint at {run}/averaged, .*ckpt-100\.$"
    with pytest.raises(FileNotFoundError, match=message):
        find_checkpoint(run, "averaged")
