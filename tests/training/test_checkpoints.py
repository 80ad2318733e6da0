"""Checkpoints: saved, kept, restored, averaged."""

import os
import shutil
from pathlib import Path
from unittest import mock

import keras
import numpy as np
import pytest
import tensorflow as tf
from tiny_task import contents

from t2tlite.files.checkpoint_paths import (
    copy_checkpoint,
    list_checkpoints,
    remove_checkpoint,
    saving_folder,
    step_of,
)
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation
from t2tlite.training.checkpoints import (
    Checkpoints,
    average_checkpoints,
    restore_weights,
    write_weights,
)
from t2tlite.training.progress import Progress


def dense(width=3, layers=("dense",)):
    """A model of one layer, or as many as there are names."""
    model = keras.Sequential([keras.layers.Input((2,))], name="model")
    for name in layers:
        model.add(keras.layers.Dense(width, name=name))
    return model


def checkpoints(folder, model, keep=20):
    optimizer = keras.optimizers.Adam(name="adam")
    optimizer.build(model.trainable_variables)
    return Checkpoints(RunFolder(folder), model, optimizer, keep), optimizer


def fill(model, value):
    for variable in model.trainable_variables:
        variable.assign(np.full(variable.shape, value, np.float32))


def values(path):
    """The different values of the weights in a checkpoint of `dense`."""
    model = dense()
    restore_weights(model, str(path))
    return set(np.concatenate([weight.ravel() for weight in model.get_weights()]))


@pytest.fixture(scope="module")
def three(tmp_path_factory):
    """A folder with checkpoints 5, 40 and 100, whose weights are all 5, 40 and 100;
    read only.
    """
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


def test_a_full_disk_is_not_too_little_memory(run, monkeypatch):
    """TensorFlow has one error for both, with this message for a full disk."""
    reason = (
        "{{function_node __wrapped__SaveV2}} model.ckpt-7_temp/part-00000-of-00001; No"
        " space left on device [Op:SaveV2]"
    )
    full = tf.errors.ResourceExhaustedError(None, None, reason)
    saved, _ = checkpoints(run, dense())
    monkeypatch.setattr(tf.train.Checkpoint, "write", mock.Mock(side_effect=full))
    message = r" must fit .*/run\. Received: \S+; No space left on device\."
    with pytest.raises(OSError, match=rf"^model\.ckpt-7{message}"):
        saved.save(7)
    monkeypatch.setattr(tf.summary, "create_file_writer", mock.Mock(side_effect=full))
    with pytest.raises(OSError, match=rf"^TensorBoard events{message}"):
        Progress(saved._run, keras.optimizers.Adam(), 0, 7)


def test_newest_is_restored_with_optimizer_and_step(tmp_path):
    model = dense()
    saved, optimizer = checkpoints(tmp_path, model)
    assert saved.restore() == 0
    gradients = [np.ones(v.shape, np.float32) for v in model.trainable_variables]
    optimizer.apply(gradients, model.trainable_variables)
    saved.save(7)
    other = dense()
    again, other_optimizer = checkpoints(tmp_path, other)
    assert again.restore() == 7
    written = [*model.variables, *optimizer.variables]
    restored = [*other.variables, *other_optimizer.variables]
    for first, second in zip(written, restored, strict=True):
        np.testing.assert_array_equal(first.numpy(), second.numpy())


def test_as_many_are_kept_as_asked(tmp_path):
    saved, _ = checkpoints(tmp_path, dense(), keep=2)
    for step in (1, 2, 3):
        saved.save(step)
    saved, _ = checkpoints(tmp_path, dense(), keep=2)  # another process resumes
    saved.restore()
    saved.save(4)
    assert [step_of(path) for path in list_checkpoints(tmp_path)] == [3, 4]
    # no data files without their index
    assert len(list(tmp_path.glob("model.ckpt-*"))) == 4


def test_best(tmp_path):
    model = dense()
    saved, _ = checkpoints(tmp_path, model, keep=1)
    for step in (3, 9):
        fill(model, step)
        saved.save(step)
        saved.save_best(DevEvaluation(step, {"loss": 1 / step}))
    fill(model, 12)
    saved.save(12)
    assert saved.best() == DevEvaluation(9, {"loss": 1 / 9})
    assert list_checkpoints(tmp_path / "best") == [f"{tmp_path}/best/model.ckpt-9"]
    # the newest are those in the run's folder
    assert list_checkpoints(tmp_path) == [f"{tmp_path}/model.ckpt-12"]
    assert values(f"{tmp_path}/best/model.ckpt-9") == {9.0}


def test_mean(run):
    paths = list_checkpoints(run)
    written = average_checkpoints(paths[1:], run / "averaged")
    assert written == f"{run}/averaged/model.ckpt-100"
    assert values(written) == {70.0}  # (40 + 100) / 2
    average_checkpoints(paths[:2], run / "averaged")
    assert list_checkpoints(run / "averaged") == [f"{run}/averaged/model.ckpt-40"]


@pytest.mark.parametrize(
    ("width", "layers", "message"),
    [
        (4, ["dense"], r"dense/bias has the shape \[3\] there, and here \[4\]"),
        (3, ["dense", "dense_1"], "dense_1/bias .* None there, and here"),
        (3, [], "dense/bias .* there, and here None"),
    ],
)
def test_another_model_is_refused(run, width, layers, message):
    with pytest.raises(ValueError, match=rf"ckpt-100 cannot be restored: .*{message}"):
        restore_weights(dense(width, layers), f"{run}/model.ckpt-100")


@pytest.mark.parametrize("ending", ["index", "data-00000-of-00001"])
@pytest.mark.parametrize("size", [0, 20])
def test_damaged(run, ending, size):
    file = run / f"model.ckpt-100.{ending}"
    file.write_bytes(file.read_bytes()[:size])
    with pytest.raises(ValueError, match=r"model\.ckpt-100 cannot be restored:"):
        restore_weights(dense(), f"{run}/model.ckpt-100")
    saved, _ = checkpoints(run, dense())
    with pytest.raises(ValueError, match="if it is damaged, delete it to resume"):
        saved.restore()


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_is_not_saved(run, value):
    before = sorted(path.name for path in run.iterdir())
    model = dense()
    saved, optimizer = checkpoints(run, model)
    saved.restore()
    fill(model, value)
    with pytest.raises(FloatingPointError, match="diverged: model/dense/kernel"):
        saved.save(101)
    fill(model, 1.0)
    momentum = optimizer.variables[-1]
    momentum.assign(np.full(momentum.shape, value, np.float32))
    with pytest.raises(FloatingPointError, match=r"adam/.* has values that are"):
        saved.save(101)
    assert sorted(path.name for path in run.iterdir()) == before


def test_what_is_not_finite_is_not_restored(run):
    model = dense()
    fill(model, np.nan)
    with saving_folder(run) as saving:
        write_weights(model, saving, 101)
    with pytest.raises(ValueError, match=r"kernel has values that are not finite"):
        restore_weights(dense(), f"{run}/model.ckpt-101")


def test_an_error_while_saving_leaves_what_was_there(run, monkeypatch):
    """The disk is full while the checkpoint is written, or when it is moved to its
    place.
    """
    before = contents(run)
    saved, _ = checkpoints(run, dense())
    saved.restore()
    full = mock.Mock(side_effect=OSError("No space left on device"))
    for owner, name in ((tf.train.Checkpoint, "write"), (os, "replace")):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, full)
            with pytest.raises(OSError, match="No space left on device"):
                saved.save(101)
        assert contents(run) == before
    saved.save(101)
    assert step_of(list_checkpoints(run)[-1]) == 101


@pytest.mark.parametrize("folder", ["best", "averaged"])
def test_later_than_the_newest(run, folder):
    saved, _ = checkpoints(run, dense())
    copy_checkpoint(f"{run}/model.ckpt-100", run / folder)
    assert saved.restore() == 100
    remove_checkpoint(f"{run}/model.ckpt-100")
    later = rf"{run}/{folder} must have no later checkpoint than the run\. Delete it"
    with pytest.raises(ValueError, match=later):
        saved.restore()
