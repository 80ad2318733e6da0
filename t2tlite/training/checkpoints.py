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

STORED = "/.ATTRIBUTES/VARIABLE_VALUE"  # the end of a variable's key
OTHER_SIZE = "it has {:,} weights, and hparams and vocabularies describe {:,}"


class Checkpoints:
    """The checkpoints of a run: the newest `keep` in its directory, the best by dev in
    its folder `best`.

    Model and optimizer must be built, so that their variables exist. Only the chief's
    run is written: all workers have the same values of all variables.
    """

    def __init__(
        self, run: RunFolder, model: Seq2SeqModel, optimizer: Optimizer, keep: int
    ) -> None:
        self._step = tf.Variable(0, dtype=tf.int64, trainable=False, name="step")
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
        with _reading(paths[-1]) as reader:
            _assign(self._weights, reader, "model")
            _assign(self._optimizer, reader, "optimizer")
            self._saved_step = int(reader.get_tensor(f"step{STORED}"))
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
        self._step.assign(step)
        if self._run.writes:
            folder = self._run.path
            name = f"{CHECKPOINT_PREFIX}-{step}"
            with writing(name, folder), saving_folder(folder) as saving:
                _write(
                    saving,
                    step,
                    model=self._weights,
                    optimizer=self._optimizer,
                    step=self._step,
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
        return best if best and self.best_path(best) in kept else None

    def best_path(self, best: DevEvaluation) -> str:
        """The path of the best checkpoint."""
        return str(self._run.best_folder / f"{CHECKPOINT_PREFIX}-{best.step}")

    def save_best(self, best: DevEvaluation) -> None:
        """Keeps the saved checkpoint of the evaluation `best` as the best, with its
        metrics.
        """
        if not self._run.writes:
            return
        saved = self._run.path / f"{CHECKPOINT_PREFIX}-{best.step}"
        path = copy_checkpoint(str(saved), self._run.best_folder)
        self._run.write_best(best)
        remove_other_checkpoints(path)

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
        later = []
        for folder in (self._run.best_folder, self._run.averaged_folder):
            if max(map(step_of, list_checkpoints(folder)), default=-1) > newest:
                later.append(str(folder))
        if later:
            is_newest = f"of step {newest:,}" if paths else "missing"
            raise ValueError(
                "The best and averaged checkpoints of a run must not be later than its"
                f" newest. Received: {self._run}, whose newest is {is_newest}, and"
                f" later ones in {' and '.join(later)}. Delete these to train from"
                " there, or put the missing checkpoints back."
            )


def diverged(reason: str, step: int) -> FloatingPointError:
    """FloatingPointError that training diverged at `step`."""
    return FloatingPointError(
        f"Training diverged: {reason} at step {step:,}, which is not saved. Checkpoints"
        " from before are intact. Try a lower learning_rate_constant, a longer warm-up,"
        " or dtype_policy=float32."
    )


def check_size(path: str, parameters: int) -> None:
    """Raises ValueError if a checkpoint is damaged, or far too small for a model with
    this many weights.

    Call it before the model is built: damaged hparams can describe a model too large
    for any memory.
    """
    with _reading(path) as reader:
        stored = _size(_stored_shapes(reader, "model"))
        if parameters > 2 * stored:
            raise ValueError(OTHER_SIZE.format(stored, parameters))


def restore_weights(model: Seq2SeqModel, path: str) -> None:
    """Gives a built model the weights of a checkpoint. Raises ValueError if it is
    damaged or does not fit.
    """
    with _reading(path) as reader:
        _assign(_by_path(model.trainable_variables), reader, "model")


def read_weights(path: str, parameters: int) -> dict[str, np.ndarray]:
    """Reads the weights of a checkpoint by their Keras path, without a model or a
    device.

    Raises ValueError if it is damaged, or has another number of weights than
    `parameters`.
    """
    with _reading(path) as reader:
        shapes = _stored_shapes(reader, "model")
        stored = _size(shapes)
        if stored != parameters:
            raise ValueError(OTHER_SIZE.format(stored, parameters))
        return {name: _read(reader, "model", name) for name in shapes}


def _size(shapes: Mapping[str, Sequence[int]]) -> int:
    """The number of weights in variables of these shapes."""
    return sum(map(math.prod, shapes.values()))


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


def save_weights(model: Seq2SeqModel, folder: Path, step: int) -> str:
    """Writes folder/model.ckpt-`step`, a checkpoint of a built model's weights alone,
    and returns its path. The folder is made if needed.
    """
    name = f"{CHECKPOINT_PREFIX}-{step}"
    with writing(name, folder), saving_folder(folder) as saving:
        write_weights(model, saving, step)
    return str(folder / name)


def write_weights(model: Seq2SeqModel, saving: Path, step: int) -> None:
    """Writes the weights into an open `saving_folder`."""
    _write(saving, step, model=_by_path(model.trainable_variables))


def _write(
    saving: Path, number: int, **content: Mapping[str, tf.Variable] | tf.Variable
) -> None:
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
            " Free some space; the same command resumes."
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


@contextlib.contextmanager
def _reading(path: str) -> Iterator[tf.train.CheckpointReader]:
    """Opens a checkpoint; an error in the block becomes a ValueError about `path`."""
    try:
        with readable_path(path) as readable:
            yield tf.train.load_checkpoint(readable)
    except (tf.errors.OpError, ValueError, IndexError, RuntimeError) as error:
        raise ValueError(
            f"Checkpoint {path} cannot be restored: {reason_of(error)}. Use another; if"
            " it is damaged, delete it to resume from the one before."
        ) from error


def _stored_shapes(
    reader: tf.train.CheckpointReader, group: str
) -> dict[str, list[int]]:
    """The shapes of the variables of a group, "model" or "optimizer", by their Keras
    path. TensorFlow escapes the path, the key of a dict.
    """
    shapes = {}
    for key, shape in reader.get_variable_to_shape_map().items():
        if key.startswith(f"{group}/"):
            name = key.split("/")[1].replace(".S", "/").replace("..", ".")
            shapes[name] = list(shape)
    return shapes


def _read(reader: tf.train.CheckpointReader, group: str, name: str) -> np.ndarray:
    key = name.replace(".", "..").replace("/", ".S")
    value: np.ndarray = reader.get_tensor(f"{group}/{key}{STORED}")
    if not np.isfinite(value).all():
        raise ValueError(f"{name} has values that are not finite")
    return value


def _assign(
    variables: Mapping[str, tf.Variable], reader: tf.train.CheckpointReader, group: str
) -> None:
    """Assigns the values in a checkpoint. Raises ValueError if it is that of another
    model.
    """
    stored = _stored_shapes(reader, group)
    for name, variable in variables.items():
        shape = stored.pop(name, None)
        if shape != list(variable.shape):
            other = "it has none" if shape is None else f"its shape there is {shape}"
            raise ValueError(
                f"the {group}'s {name} has the shape {list(variable.shape)}, but"
                f" {other}."
            )
    if stored:
        raise ValueError(f"its {group} has more variables, such as {min(stored)}")
    for name, variable in variables.items():
        variable.assign(_read(reader, group, name))
