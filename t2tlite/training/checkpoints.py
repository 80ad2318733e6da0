"""Checkpoints `model.ckpt-N`: saved, restored, averaged.

A checkpoint holds the weights, the optimizer state and the step. Batches and dropout masks are functions of the step,
so nothing else is needed to resume exactly where a run stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from keras.optimizers import Optimizer

from t2tlite.files.checkpoint_paths import CHECKPOINT_PREFIX, step_of
from t2tlite.runs.run_folder import BestCheckpoint, RunFolder
from t2tlite.types import Seq2SeqModel, Variable


class Checkpoints:
    """The checkpoints of a run: the newest `keep` in the run directory, the best by dev in its folder `best`.

    Model and optimizer must be built, so that their variables exist. Workers other than the first write to `scratch`
    instead of the run directory, since all must take part in saving.
    """

    def __init__(
        self, run: RunFolder, model: Seq2SeqModel, optimizer: Optimizer, keep: int, scratch: Path | None = None
    ) -> None:
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._weights = _by_path(model.trainable_variables)
        self._checkpoint = tf.train.Checkpoint(
            model=self._weights, optimizer=_by_path(optimizer.variables), step=self.step
        )
        self._run = run
        self._target = RunFolder(scratch) if scratch else run
        self._newest = _manager(self._checkpoint, self._target.path, keep)
        self._best_manager = _manager(self._checkpoint, self._target.best_folder, 1)
        self.best = run.best()  # the best checkpoint, or None if there is none yet
        self._saved_step = -1

    def restore(self) -> int:
        """Restores the newest checkpoint and returns its step, or 0 if there is none.

        A checkpoint that is damaged or does not fit the model raises a ValueError.
        """
        paths = self._run.checkpoints()
        if not paths:
            return 0
        _restore(self._checkpoint, self._weights, paths[-1], everything=True)
        self._saved_step = int(self.step.numpy())
        return self._saved_step

    def save(self, step: int) -> None:
        """Writes model.ckpt-`step`, unless it was the last to be written."""
        if step != self._saved_step:
            self.step.assign(step)
            self._newest.save(checkpoint_number=step)
            self._saved_step = step

    def save_best(self, best: BestCheckpoint) -> None:
        """Writes the best checkpoint anew, with its metrics."""
        self.step.assign(best.step)
        self._best_manager.save(checkpoint_number=best.step)
        self.best = best
        self._target.write_best(best)


def restore_weights(model: Seq2SeqModel, path: str) -> None:
    """Gives a built model the weights of a checkpoint; ValueError if it is damaged or does not fit the model."""
    weights = _by_path(model.trainable_variables)
    _restore(tf.train.Checkpoint(model=weights), weights, path, everything=False)


def average_checkpoints(model: Seq2SeqModel, paths: Sequence[str], target: Path) -> str:
    """Checkpoint averaging (the paper averages the last 5, or 20): the mean becomes the weights of a built model.

    Writes them to `target/model.ckpt-N`, N the last of the steps averaged, and returns that path. The folder is made if
    need be. A checkpoint that is damaged or does not fit the model raises a ValueError.
    """
    sums: list[np.ndarray] = [np.zeros(v.shape, np.float64) for v in model.trainable_variables]
    for path in paths:
        restore_weights(model, path)
        for total, variable in zip(sums, model.trainable_variables, strict=True):
            total += variable.numpy().astype(np.float64)
    for total, variable in zip(sums, model.trainable_variables, strict=True):
        variable.assign((total / len(paths)).astype(np.float32))
    return save_weights(model, target, step_of(paths[-1]), keep=1)


def save_weights(model: Seq2SeqModel, folder: Path, step: int, keep: int | None = None) -> str:
    """Writes folder/model.ckpt-`step`, a checkpoint of a built model's weights alone, and returns its path.

    The folder is made if need be, and its newest `keep` checkpoints stay, by default all.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = tf.train.Checkpoint(model=_by_path(model.trainable_variables))
    return _manager(weights, folder, keep).save(checkpoint_number=step)


def _manager(checkpoint: tf.train.Checkpoint, folder: Path, keep: int | None) -> tf.train.CheckpointManager:
    return tf.train.CheckpointManager(checkpoint, str(folder), max_to_keep=keep, checkpoint_name=CHECKPOINT_PREFIX)


def _by_path(variables: Sequence[Variable]) -> dict[str, tf.Variable]:
    """Keras variables by their path, such as transformer/encoder_0/self_attention/query/kernel.

    Named one by one because tf.train.Checkpoint finds no variables below a Keras 3 model by itself, and says nothing.
    """
    return {variable.path: variable.value for variable in variables}


def _restore(checkpoint: tf.train.Checkpoint, weights: dict[str, tf.Variable], path: str, everything: bool) -> None:
    try:
        _check_weights(weights, path)
        status = checkpoint.restore(path).expect_partial()  # or TensorFlow warns of each name as well
        status.assert_existing_objects_matched()
        if everything:
            status.assert_consumed()
    except (tf.errors.OpError, ValueError, AssertionError, IndexError, RuntimeError) as error:
        reason = str(error).strip().split("\n")[0].rstrip(".")
        raise ValueError(
            f"Checkpoint {path} cannot be restored: {reason}. Use another; if it is damaged, delete it to resume from "
            "the one before."
        ) from error


def _check_weights(weights: dict[str, tf.Variable], path: str) -> None:
    """Raises ValueError where a checkpoint is of another model: TensorFlow's message names neither weight nor shape."""
    stored = {name: list(shape) for name, shape in tf.train.list_variables(path) if name.startswith("model/")}
    for name, variable in weights.items():
        escaped = name.replace(".", "..").replace("/", ".S")  # as TensorFlow writes a key of a dict
        shape = stored.pop(f"model/{escaped}/.ATTRIBUTES/VARIABLE_VALUE", None)
        if shape != list(variable.shape):
            found = "it has none" if shape is None else f"its shape there is {shape}"
            raise ValueError(f"the model's {name} has the shape {list(variable.shape)}, but {found}.")
    if stored:
        raise ValueError(f"it is of a model with more weights, such as {min(stored).split('/')[1].replace('.S', '/')}.")
