"""Checkpoints `model.ckpt-N`: saved, restored, averaged.

A checkpoint holds weights, optimizer state and step. Batches and dropout masks are
functions of the step, so nothing else is needed to resume exactly where a run stopped.
"""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from keras.optimizers import Optimizer

from t2tlite.console import say
from t2tlite.files.checkpoint_paths import (
    CHECKPOINT_PREFIX,
    copy_checkpoint,
    list_checkpoints,
    readable_path,
    remove_checkpoint,
    remove_other_checkpoints,
    saving_folder,
    step_of,
)
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import DevEvaluation
from t2tlite.types import Seq2SeqModel, Variable


class Checkpoints:
    """The checkpoints of a run: the newest `keep` in its directory, the best by dev in
    its folder `best`.

    Model and optimizer must be built, so that their variables exist. Only the chief's
    run is written: all workers have the same values of all variables.
    """

    def __init__(
        self, run: RunFolder, model: Seq2SeqModel, optimizer: Optimizer, keep: int
    ) -> None:
        self.step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
        self._weights = _by_path(model.trainable_variables)
        self._optimizer = _by_path(optimizer.variables)
        self._checkpoint = _checkpoint(
            model=self._weights, optimizer=self._optimizer, step=self.step
        )
        self._run = run
        self._keep = keep
        self._saved_step = -1

    def restore(self) -> int:
        """Restores the newest checkpoint and returns its step, or 0 if there is none.

        Raises a ValueError if that checkpoint is damaged or does not fit the model, or
        if a best or averaged checkpoint is later: it belongs to training that was
        undone.
        """
        paths = self._run.checkpoints()
        self._check_later(step_of(paths[-1]) if paths else None)
        if not paths:
            return 0
        _restore(self._checkpoint, self._weights, paths[-1], everything=True)
        self._saved_step = int(self.step.numpy())
        return self._saved_step

    def save(self, step: int) -> None:
        """Writes model.ckpt-`step`, unless it was written last, and removes the oldest
        beyond `keep`.

        Raises a FloatingPointError if weights or optimizer state are not finite; then
        all checkpoints stay.
        """
        if step == self._saved_step:
            return
        name = _not_finite(self._weights | self._optimizer)
        if name:
            raise diverged(f"{name} has values that are not finite", step)
        self.step.assign(step)
        if self._run.writes:
            _write(self._checkpoint, self._run.path, step)
            for path in self._run.checkpoints()[: -self._keep]:
                remove_checkpoint(path)
        self._saved_step = step

    def best(self) -> DevEvaluation | None:
        """The evaluation of the best checkpoint; None if there is none, or its
        checkpoint was deleted.
        """
        best = self._run.best()
        if best is None:
            return None
        kept = [step_of(path) for path in list_checkpoints(self._run.best_folder)]
        if best.step in kept:
            return best
        say(
            f"The best checkpoint, of step {best.step:,}, was deleted from"
            f" {self._run.best_folder}. The next is kept."
        )
        return None

    def best_path(self, best: DevEvaluation) -> str:
        """The path of the best checkpoint."""
        return str(self._run.best_folder / f"{CHECKPOINT_PREFIX}-{best.step}")

    def save_best(self, best: DevEvaluation) -> None:
        """Keeps the saved checkpoint of the evaluation `best` as the best, with its
        metrics.
        """
        if not self._run.writes:
            return
        path = copy_checkpoint(
            str(self._run.path / f"{CHECKPOINT_PREFIX}-{best.step}"),
            self._run.best_folder,
        )
        self._run.write_best(best)
        remove_other_checkpoints(path)

    def _check_later(self, step: int | None) -> None:
        """Raises ValueError if a best or averaged checkpoint is later than the newest,
        of `step`; None: there is no checkpoint.
        """
        later = []
        for folder in (self._run.best_folder, self._run.averaged_folder):
            steps = [step_of(path) for path in list_checkpoints(folder)]
            if steps and (step is None or max(steps) > step):
                later.append(str(folder))
        if later:
            newest = "missing" if step is None else f"of step {step:,}"
            raise ValueError(
                "The best and averaged checkpoints of a run must not be later than its"
                f" newest. Received: {self._run}, whose newest is {newest}, and later"
                f" ones in {' and '.join(later)}. Delete these to train from there, or"
                " put the missing checkpoints back."
            )


def diverged(reason: str, step: int) -> FloatingPointError:
    """FloatingPointError that training diverged at `step`."""
    return FloatingPointError(
        f"Training diverged: {reason} at step {step:,}, which is not saved. Checkpoints"
        " from before are intact. Try a lower learning_rate_constant, a longer"
        " warm-up, or dtype_policy=float32."
    )


def check_size(path: str, parameters: int) -> None:
    """Raises ValueError if a checkpoint is damaged, or far too small for a model with
    this many weights.

    Call it before the model is built: damaged hparams can describe a model too large
    for any memory.
    """
    with _restoring(path) as readable:
        stored = sum(math.prod(shape) for shape in _stored_shapes(readable).values())
        if parameters > 2 * stored:
            raise ValueError(_other_size(stored, parameters))


def restore_weights(model: Seq2SeqModel, path: str) -> None:
    """Gives a built model the weights of a checkpoint. Raises ValueError if it is
    damaged or does not fit.
    """
    weights = _by_path(model.trainable_variables)
    _restore(_checkpoint(model=weights), weights, path, everything=False)


def read_weights(path: str, parameters: int) -> dict[str, np.ndarray]:
    """Reads the weights of a checkpoint by their Keras path, without a model or a
    device.

    Raises ValueError if it is damaged, or has another number of weights than
    `parameters`.
    """
    with _restoring(path) as readable:
        reader = tf.train.load_checkpoint(readable)
        weights = {}
        stored = 0
        for name in _stored_shapes(readable):
            weights[name] = reader.get_tensor(_stored_as(name))
            stored += weights[name].size
        if stored != parameters:
            raise ValueError(_other_size(stored, parameters))
        for name, array in weights.items():
            if not np.isfinite(array).all():
                raise ValueError(f"{name} has values that are not finite")
    return weights


def average_checkpoints(model: Seq2SeqModel, paths: Sequence[str], target: Path) -> str:
    """Checkpoint averaging (the paper averages the last 5, or 20): the mean becomes the
    weights of a built model.

    Writes them to `target/model.ckpt-N`, N the last of the steps averaged, and returns
    that path. Raises a ValueError for a checkpoint that is damaged or does not fit the
    model.
    """
    variables = model.trainable_variables
    sums: list[np.ndarray] = [np.zeros(v.shape, np.float64) for v in variables]
    for path in paths:
        restore_weights(model, path)
        for total, variable in zip(sums, variables, strict=True):
            total += variable.numpy()
    for total, variable in zip(sums, variables, strict=True):
        variable.assign((total / len(paths)).astype(np.float32))
    written = save_weights(model, target, step_of(paths[-1]))
    remove_other_checkpoints(written)
    return written


def save_weights(
    model: Seq2SeqModel, folder: Path, step: int, saving: Path | None = None
) -> str:
    """Writes folder/model.ckpt-`step`, a checkpoint of a built model's weights alone,
    and returns its path.

    The folder is made if needed. With `saving`, an open `saving_folder`, it appears
    when that is closed.
    """
    return _write(
        _checkpoint(model=_by_path(model.trainable_variables)), folder, step, saving
    )


def _checkpoint(
    **content: Mapping[str, tf.Variable] | tf.Variable,
) -> tf.train.Checkpoint:
    checkpoint = tf.train.Checkpoint(**content)
    # `restore` makes TensorFlow's count of savings, and asserts that it was stored
    _ = checkpoint.save_counter
    return checkpoint


def _write(
    checkpoint: tf.train.Checkpoint, folder: Path, step: int, saving: Path | None = None
) -> str:
    """Writes folder/model.ckpt-`step` and returns its path; an exception leaves what
    was there.
    """
    name = f"{CHECKPOINT_PREFIX}-{step}"
    with (
        writing(name, folder),
        contextlib.nullcontext(saving) if saving else saving_folder(folder) as where,
    ):
        checkpoint.write(str(where / name))
    return str(folder / name)


def _not_finite(variables: dict[str, tf.Variable]) -> str | None:
    """The name of a variable with a value that is not finite, or None."""
    finite = {}  # computed for all variables before the first result is read
    for name, variable in variables.items():
        if variable.dtype.is_floating:
            finite[name] = tf.reduce_all(tf.math.is_finite(variable))
    for name, all_finite in finite.items():
        if not all_finite:
            return name
    return None


@contextlib.contextmanager
def writing(what: str, folder: str | Path) -> Iterator[None]:
    """Turns an error of TensorFlow's while it writes files into an OSError.

    A full disk has the same error as too little memory, ResourceExhaustedError, which
    means memory elsewhere.
    """
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"{what} must fit on the disk of {folder}. Received: {reason_of(error)}."
            " Free some space and run the same command again: it resumes."
        ) from error


def reason_of(error: Exception) -> str:
    """The first line of TensorFlow's message, without names of operations and without
    the period.
    """
    line = str(error).strip().split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} ?| ?\[Op:\w+\]$", "", line).rstrip(".")


def _by_path(variables: Sequence[Variable]) -> dict[str, tf.Variable]:
    """Keras variables by their path, such as
    transformer/encoder_0/self_attention/query/kernel.

    They are named one by one: tf.train.Checkpoint finds no variables below a Keras 3
    model, without a warning.
    """
    return {variable.path: variable.value for variable in variables}


def _restore(
    checkpoint: tf.train.Checkpoint,
    weights: dict[str, tf.Variable],
    path: str,
    everything: bool,
) -> None:
    with _restoring(path) as readable:
        _check_weights(weights, readable)
        # or TensorFlow warns of each name as well
        status = checkpoint.restore(readable).expect_partial()
        status.assert_existing_objects_matched()
        if everything:
            status.assert_consumed()
        name = _not_finite(weights)
        if name:
            raise ValueError(f"{name} has values that are not finite")


@contextlib.contextmanager
def _restoring(path: str) -> Iterator[str]:
    """A path of the checkpoint that TensorFlow can read; an error becomes a ValueError
    about `path`.
    """
    try:
        with readable_path(path) as readable:
            yield readable
    except (
        tf.errors.OpError,
        ValueError,
        AssertionError,
        IndexError,
        RuntimeError,
    ) as error:
        raise ValueError(
            f"Checkpoint {path} cannot be restored: {reason_of(error)}. Use another; if"
            " it is damaged, delete it to resume from the one before."
        ) from error


def _check_weights(weights: dict[str, tf.Variable], path: str) -> None:
    """Raises ValueError for a checkpoint of another model; TensorFlow names neither
    weight nor shape.
    """
    stored = _stored_shapes(path)
    for name, variable in weights.items():
        shape = stored.pop(name, None)
        if shape != list(variable.shape):
            other = "it has none" if shape is None else f"its shape there is {shape}"
            raise ValueError(
                f"the model's {name} has the shape {list(variable.shape)}, but {other}."
            )
    if stored:
        raise ValueError(f"it is of a model with more weights, such as {min(stored)}.")


def _stored_shapes(path: str) -> dict[str, list[int]]:
    """The shapes of the weights in a checkpoint by their Keras path."""
    shapes = {}
    for name, shape in tf.train.list_variables(path):
        if name.startswith("model/"):
            key = name.split("/")[1]
            shapes[key.replace(".S", "/").replace("..", ".")] = list(shape)
    return shapes


def _stored_as(name: str) -> str:
    """TensorFlow's name for the weight with this Keras path: it escapes the key of a
    dict.
    """
    return (
        f"model/{name.replace('.', '..').replace('/', '.S')}/.ATTRIBUTES/VARIABLE_VALUE"
    )


def _other_size(stored: int, parameters: int) -> str:
    return (
        f"it has {stored:,} weights, and hparams and vocabularies describe"
        f" {parameters:,}"
    )
