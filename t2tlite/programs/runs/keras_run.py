"""The Keras model of a run, with the weights of a checkpoint."""

import contextlib
import os
from collections.abc import Sequence

import tensorflow as tf

from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.machine import cores_each
from t2tlite.models.ensemble import Ensemble
from t2tlite.registry import get_model
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import check_size, restore_weights
from t2tlite.training.cost import count_parameters
from t2tlite.types import Seq2SeqModel


def restored_model(folder: RunFolder, checkpoint: str) -> Seq2SeqModel:
    """A run's model with the weights of a checkpoint; ValueError if that is damaged or
    of another model.
    """
    model = built_model(folder, checkpoint)
    restore_weights(model, checkpoint)
    return model


def open_keras(
    folders: Sequence[RunFolder],
    checkpoints: Sequence[str],
    jit_compile: bool,
    threads: int = 1,
) -> TensorFlowEngine:
    """The engine that decodes with the Keras model of a run, or of several as an
    ensemble. On a CPU, `threads` that compute at a time divide its cores. Raises as
    `restored_model`.
    """
    on_cpu = not tf.config.list_physical_devices("GPU")
    if threads > 1 and on_cpu:
        divide_cores(threads)
    models = list(map(restored_model, folders, checkpoints))
    model = models[0] if len(models) == 1 else Ensemble(models)
    engine = TensorFlowEngine(model, jit_compile, frozen=True)
    engine.threads = threads if on_cpu else 1
    return engine


def divide_cores(threads: int) -> None:
    """Gives each of so many threads its part of the cores, unless the user has set
    TF_NUM_INTRAOP_THREADS, or TensorFlow has begun to compute.

    Products of a search are too small to be divided among cores: with one core for each
    of two batches, a model of 128 dimensions decodes 1.7 times as fast as with two
    cores for both.
    """
    if "TF_NUM_INTRAOP_THREADS" in os.environ:
        return
    with contextlib.suppress(RuntimeError):  # it has begun
        tf.config.threading.set_intra_op_parallelism_threads(cores_each(threads))


def built_model(folder: RunFolder, checkpoint: str) -> Seq2SeqModel:
    """The model to restore a checkpoint into; ValueError if the checkpoint cannot have
    its weights.
    """
    hparams = folder.hparams()
    sizes = [encoder.vocab_size for encoder in folder.encoders()]
    check_size(checkpoint, count_parameters(hparams, sizes))
    model: Seq2SeqModel = get_model(hparams.model).from_hparams(hparams, *sizes)
    return model
