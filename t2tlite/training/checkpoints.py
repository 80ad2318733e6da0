"""Checkpoints `model.ckpt-N`: saved, restored, averaged.

A checkpoint holds weights, optimizer state and step. Batches and dropout masks are
functions of the step, so nothing else is needed to resume exactly where a run stopped.
"""

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf
from keras.optimizers import Optimizer

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

# by their Keras path
Variables = Mapping[str, tf.Variable]
Values = Mapping[str, np.ndarray]


class Checkpoints:
    """The checkpoints of a run: the newest `keep` in its directory, the best by dev in
    its folder `best`.

    Model and optimizer must be built, so that their variables exist. Only the chief's
    run is written: all workers have the same values of all variables.
    """

    def __init__(
        self,
        run: RunFolder,
        model: Seq2SeqModel,
        optimizer: Optimizer,
        keep: int,
    ) -> None:
        self._weights = _by_path(model.trainable_variables)
        self._optimizer = _by_path(optimizer.variables)
        self._run = run
        self._keep = keep
        self._saved_step: int | None = None

    def restore(self) -> int:
        """Restores the newest checkpoint and returns its step, or 0 if there is none.

        Raises a ValueError if that checkpoint is damaged or does not fit the model, or
        if a best or averaged checkpoint is later: it belongs to training that was
        undone.
        """
        paths = self._run.checkpoints()
        self._check_later(paths)
        if not paths:
            return 0
        _restore(self._weights, paths[-1], _read(paths[-1], "model"))
        _restore(self._optimizer, paths[-1], _read(paths[-1], "optimizer"))
        self._saved_step = step_of(paths[-1])
        return self._saved_step

    def save(self, step: int) -> None:
        """Writes model.ckpt-`step`, unless it was written last, and removes the oldest
        beyond `keep`.

        Raises a FloatingPointError if weights or optimizer state are not finite; then
        all checkpoints stay.
        """
        if step == self._saved_step:
            return
        self._check_finite(step)
        if self._run.writes:
            _save(
                self._run.path,
                step,
                model=self._weights,
                optimizer=self._optimizer,
                step=tf.Variable(step, dtype=tf.int64),
            )
            for path in self._run.checkpoints()[: -self._keep]:
                remove_checkpoint(path)
        self._saved_step = step

    def best(self) -> DevEvaluation | None:
        """The evaluation of the best checkpoint; None if there is none, or its
        checkpoint was deleted.
        """
        best = self._run.best()
        kept = list_checkpoints(self._run.best_folder)
        return best if best and self._best_path(best) in kept else None

    def restore_best(self, best: DevEvaluation) -> None:
        """Restores the weights of the best checkpoint."""
        path = self._best_path(best)
        _restore(self._weights, path, _read(path, "model"))

    def save_best(self, best: DevEvaluation) -> None:
        """Keeps the saved checkpoint of the evaluation `best` as the best, with its
        metrics.
        """
        if self._run.writes:
            saved = self._run.path / f"{CHECKPOINT_PREFIX}-{best.step}"
            path = copy_checkpoint(str(saved), self._run.best_folder)
            self._run.write(best)
            remove_other_checkpoints(path)

    def _best_path(self, best: DevEvaluation) -> str:
        return str(self._run.best_folder / f"{CHECKPOINT_PREFIX}-{best.step}")

    def _check_finite(self, step: int) -> None:
        finite = {}  # computed for all variables before the first result is read
        for name, variable in (self._weights | self._optimizer).items():
            if variable.dtype.is_floating:
                finite[name] = tf.reduce_all(tf.math.is_finite(variable))
        for name, all_finite in finite.items():
            if not all_finite:
                raise diverged(f"{name} has values that are not finite", step)

    def _check_later(self, paths: Sequence[str]) -> None:
        """Raises ValueError if a best or averaged checkpoint is later than the newest
        of `paths`.
        """
        newest = step_of(paths[-1]) if paths else -1
        for folder in (self._run.best_folder, self._run.averaged_folder):
            if max(map(step_of, list_checkpoints(folder)), default=-1) > newest:
                raise ValueError(
                    f"{folder} must have no later checkpoint than the run. Delete it to"
                    " train from before, or put missing checkpoints back."
                )


def diverged(reason: str, step: int) -> FloatingPointError:
    """FloatingPointError that training diverged at `step`."""
    return FloatingPointError(
        f"Training diverged: {reason} at step {step:,}, which is not saved. Lower"
        " learning_rate_constant, or warm up for longer."
    )


def read_weights(path: str, parameters: int = 0) -> Values:
    """Reads the weights of a checkpoint by their Keras path, without a model or a
    device.

    Raises ValueError if it is damaged, or does not have as many weights as a model with
    these `parameters`; 0 if their number is not known. Call it before a model is built:
    damaged hparams can describe one too large for any memory.
    """
    weights = _read(path, "model")
    stored = sum(weight.size for weight in weights.values())
    if parameters and parameters != stored:
        raise _unusable(
            path,
            f"hparams and vocabularies need {parameters:,} weights, not {stored:,}",
        )
    return weights


def restore_weights(
    model: Seq2SeqModel,
    path: str,
    weights: Values | None = None,
) -> None:
    """Gives a built model the weights of a checkpoint, which may have been read before.
    Raises ValueError if it is damaged or does not fit.
    """
    variables = _by_path(model.trainable_variables)
    _restore(variables, path, weights or _read(path, "model"))


def average_checkpoints(paths: Sequence[str], target: Path) -> str:
    """Checkpoint averaging: the mean of the weights (the paper averages the last 5
    checkpoints, or 20).

    Writes it to `target/model.ckpt-N`, N the last of the steps averaged, and returns
    that path. Raises a ValueError if a checkpoint is damaged.
    """
    sums: dict[str, np.ndarray] = {}
    for path in paths:
        for name, weight in read_weights(path).items():
            sums[name] = sums.get(name, 0.0) + weight.astype(np.float64)
    means = {}
    for name, total in sums.items():
        means[name] = tf.Variable((total / len(paths)).astype(np.float32))
    written = _save(target, step_of(paths[-1]), model=means)
    remove_other_checkpoints(written)
    return written


def _save(folder: Path, number: int, **content: Variables | tf.Variable) -> str:
    """Writes folder/model.ckpt-`number`, and returns its path. The folder is made if
    needed.
    """
    name = f"{CHECKPOINT_PREFIX}-{number}"
    with writing(name, folder), saving_folder(folder) as saving:
        _write(saving, number, **content)
    return str(folder / name)


def write_weights(model: Seq2SeqModel, saving: Path, step: int) -> None:
    """Writes the weights into an open `saving_folder`."""
    _write(saving, step, model=_by_path(model.trainable_variables))


def _write(saving: Path, number: int, **content: Variables | tf.Variable) -> None:
    # Variables are named one by one: tf.train.Checkpoint finds none below a Keras 3
    # model, without a warning.
    checkpoint = tf.train.Checkpoint(**content)
    _ = checkpoint.save_counter  # older versions need it to restore a checkpoint
    checkpoint.write(str(saving / f"{CHECKPOINT_PREFIX}-{number}"))


@contextlib.contextmanager
def writing(what: str, folder: object) -> Iterator[None]:
    """Turns an error of TensorFlow's while it writes files into an OSError.

    A full disk has the same error as too little memory, ResourceExhaustedError, which
    means memory elsewhere.
    """
    try:
        yield
    except tf.errors.OpError as error:
        raise OSError(
            f"{what} must fit on the disk of {folder}. Received: {reason_of(error)}."
            " The same command resumes."
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
    """
    return {variable.path: variable.value for variable in variables}


def _unusable(path: str, reason: str) -> ValueError:
    return ValueError(
        f"Checkpoint {path} cannot be restored: {reason}. Use another; if it is"
        " damaged, delete it to resume from the one before."
    )


def _read(path: str, group: str) -> Values:
    """The variables of a group, "model" or "optimizer", by their Keras path, which
    TensorFlow escapes. Raises ValueError if the checkpoint is damaged.
    """
    values = {}
    try:
        with readable_path(path) as readable:
            reader = tf.train.load_checkpoint(readable)
            for key in reader.get_variable_to_shape_map():
                if key.startswith(f"{group}/"):
                    name = key.split("/")[1].replace(".S", "/").replace("..", ".")
                    values[name] = reader.get_tensor(key)
    except (tf.errors.OpError, ValueError, IndexError, RuntimeError) as error:
        raise _unusable(path, reason_of(error)) from error
    for name, value in values.items():
        if not np.isfinite(value).all():
            raise _unusable(path, f"{name} has values that are not finite")
    return values


def _restore(variables: Variables, path: str, values: Values) -> None:
    """Assigns the values in a checkpoint. Raises ValueError if it is that of another
    model.
    """
    for name in sorted(values.keys() | variables.keys()):
        there = list(values[name].shape) if name in values else None
        here = list(variables[name].shape) if name in variables else None
        if here != there:
            reason = f"{name} has the shape {there} there, and here {here}"
            raise _unusable(path, reason)
    for name, variable in variables.items():
        variable.assign(values[name])
