"""Checkpoints: found, kept, restored, averaged."""

from __future__ import annotations

import gc
import json
import shutil
from pathlib import Path

import keras
import numpy as np
import pytest
import tensorflow as tf

from t2tlite.files.atomic_file import write_text
from t2tlite.files.checkpoint_paths import find_checkpoint, list_checkpoints, step_of
from t2tlite.runs.run_folder import BestCheckpoint, RunFolder
from t2tlite.training.checkpoints import Checkpoints, average_checkpoints, restore_weights


def dense(width=3, layers=("dense",)):
    """A model of one layer, or as many as there are names."""
    return keras.Sequential(
        [keras.layers.Input((2,)), *(keras.layers.Dense(width, name=name) for name in layers)], name="model"
    )


def checkpoints(folder, model, keep=20):
    optimizer = keras.optimizers.Adam(name="adam")
    optimizer.build(model.trainable_variables)
    return Checkpoints(RunFolder(folder), model, optimizer, keep), optimizer


def fill(model, value):
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, value, np.float32))


def values(model):
    return {float(v) for variable in model.trainable_variables for v in variable.numpy().ravel()}


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A folder with checkpoints 5, 40 and 100, whose weights are all 5, 40 and 100; read only."""
    folder, model = tmp_path_factory.mktemp("three"), dense()
    saved, _ = checkpoints(folder, model)
    for step in (5, 40, 100):
        fill(model, step)
        saved.save(step)
    return folder


@pytest.fixture
def run(three, tmp_path):
    """A copy of that folder."""
    return Path(shutil.copytree(three, tmp_path / "run"))


def test_listed_by_step(run):
    (run / "model.ckpt-x.index").touch()
    (run / "other.ckpt-7.index").touch()
    assert list_checkpoints(run) == [f"{run}/model.ckpt-{step}" for step in (5, 40, 100)]
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
    with pytest.raises(FileNotFoundError, match=rf"no checkpoint at {empty}\. .* Train first, or name another\."):
        find_checkpoint(empty)
    with pytest.raises(FileNotFoundError, match=rf"{run} has model\.ckpt-5, model\.ckpt-40, model\.ckpt-100\."):
        find_checkpoint(run, f"{run}/model.ckpt-41")


def test_found_from_within_the_run(run, monkeypatch, tmp_path_factory):
    monkeypatch.chdir(tmp_path_factory.mktemp("elsewhere"))
    assert find_checkpoint(run, "model.ckpt-40") == f"{run}/model.ckpt-40"


def test_newest_is_restored_with_optimizer_and_step(tmp_path):
    model = dense()
    saved, optimizer = checkpoints(tmp_path, model)
    assert saved.restore() == 0
    optimizer.apply([np.ones(v.shape, np.float32) for v in model.trainable_variables], model.trainable_variables)
    saved.save(7)
    written = [variable.numpy().copy() for variable in (*model.variables, *optimizer.variables)]

    other = dense()
    again, other_optimizer = checkpoints(tmp_path, other)
    assert again.restore() == 7

    found = [variable.numpy() for variable in (*other.variables, *other_optimizer.variables)]
    assert len(found) == len(written)
    for one, two in zip(written, found, strict=True):
        np.testing.assert_array_equal(one, two)


def test_as_many_are_kept_as_asked(tmp_path):
    model = dense()
    saved, _ = checkpoints(tmp_path, model, keep=2)
    for step in (1, 2, 3):
        saved.save(step)
    saved, _ = checkpoints(tmp_path, model, keep=2)  # another process resumes
    saved.restore()
    saved.save(4)
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [3, 4]
    assert len(list(tmp_path.glob("model.ckpt-*"))) == 4  # no data files without their index


def test_a_step_is_saved_once(run):
    before = {path.name: path.stat().st_mtime_ns for path in run.iterdir()}
    saved, _ = checkpoints(run, dense())
    saved.restore()
    saved.save(100)
    assert {path.name: path.stat().st_mtime_ns for path in run.iterdir()} == before


def test_best(tmp_path):
    model = dense()
    saved, _ = checkpoints(tmp_path, model)
    assert saved.best is None
    for step in (3, 9):
        fill(model, step)
        saved.save_best(BestCheckpoint(step, {"loss": 1 / step}))
    assert saved.best == RunFolder(tmp_path).best() == BestCheckpoint(9, {"loss": 1 / 9})
    assert json.loads((tmp_path / "best" / "best.json").read_text()) == {"step": 9, "loss": 1 / 9}
    assert list_checkpoints(tmp_path / "best") == [f"{tmp_path}/best/model.ckpt-9"]
    assert list_checkpoints(tmp_path) == []  # the newest are those in the run's folder
    restore_weights(dense(), find_checkpoint(tmp_path / "best"))


def test_weights_alone(run):
    model = dense()
    restore_weights(model, f"{run}/model.ckpt-40")
    assert values(model) == {40.0}


def test_mean(run):
    model = dense()
    paths = list_checkpoints(run)
    assert average_checkpoints(model, paths[1:], run / "averaged") == f"{run}/averaged/model.ckpt-100"
    other = dense()
    restore_weights(other, f"{run}/averaged/model.ckpt-100")
    assert values(other) == {70.0}  # (40 + 100) / 2
    average_checkpoints(model, paths[:2], run / "averaged")
    assert list_checkpoints(run / "averaged") == [f"{run}/averaged/model.ckpt-40"]


def test_another_shape_is_refused(run, caplog):
    tf.get_logger().addHandler(caplog.handler)
    with pytest.raises(ValueError, match=r"the model's model/dense/kernel has the shape \[2, 4\], but .* \[2, 3\]\."):
        restore_weights(dense(width=4), f"{run}/model.ckpt-100")
    gc.collect()  # when a half-used checkpoint is freed, TensorFlow would warn of each name in it
    tf.get_logger().removeHandler(caplog.handler)
    assert caplog.records == []


def test_a_model_with_more_weights_is_refused(run):
    with pytest.raises(ValueError, match=r"the model's model/dense_1/kernel has the shape \[3, 3\], but it has none\."):
        restore_weights(dense(layers=("dense", "dense_1")), f"{run}/model.ckpt-100")


def test_a_model_with_fewer_weights_is_refused(tmp_path):
    checkpoints(tmp_path, dense(layers=("dense", "dense_1")))[0].save(1)
    with pytest.raises(ValueError, match=r"it is of a model with more weights, such as model/dense_1/bias\."):
        restore_weights(dense(), f"{tmp_path}/model.ckpt-1")


@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("size", [0, 100])
def test_damaged(run, ending, size):
    file = run / f"model.ckpt-100.{ending}"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"model\.ckpt-100 cannot be restored: .*\. Use another; if it is damaged"):
        restore_weights(dense(), f"{run}/model.ckpt-100")
    saved, _ = checkpoints(run, dense())
    with pytest.raises(ValueError, match=r"if it is damaged, delete it to resume from the one before\."):
        saved.restore()


def test_text_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "new" / "file.txt"
    write_text(file, "one\n")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        write_text(file, "two \udc80\n")
    assert file.read_text() == "one\n"
    assert [path.name for path in file.parent.iterdir()] == ["file.txt"]
