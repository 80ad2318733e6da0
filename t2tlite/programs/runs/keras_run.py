"""The Keras model of a run: restored from a checkpoint, opened to decode, averaged."""

import contextlib
import os
from collections.abc import Mapping, Sequence

import tensorflow as tf

from t2tlite import registry
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.files import checkpoint_paths, own_files
from t2tlite.machine import cores_each
from t2tlite.models.ensemble import Ensemble
from t2tlite.run_folder import RunFolder
from t2tlite.training import checkpoints
from t2tlite.training.cost import count_parameters
from t2tlite.training.evaluation import make_evaluation
from t2tlite.types import Seq2SeqModel

# "the newest (step 9)", "the best (step 6)" or "the average" -> its loss on dev
Losses = Mapping[str, float]


def restored_model(folder: RunFolder, checkpoint: str) -> Seq2SeqModel:
    """A run's model with the weights of a checkpoint; ValueError if that is damaged or
    of another model.
    """
    hparams = folder.hparams()
    sizes = folder.manifest().vocabulary_sizes
    parameters = count_parameters(hparams, sizes)
    weights = checkpoints.read_weights(checkpoint, parameters)
    model_class = registry.get_model(hparams.model)
    model: Seq2SeqModel = model_class.from_hparams(hparams, *sizes)
    checkpoints.restore_weights(model, checkpoint, weights)
    return model


def open_keras(
    folders: Sequence[RunFolder],
    paths: Sequence[str],
    threads: int = 1,
) -> TensorFlowEngine:
    """The engine that decodes with the Keras model of a run, or of several as an
    ensemble, from the checkpoints at `paths`. On a CPU, `threads` that compute at a
    time divide its cores. Raises as `restored_model`.
    """
    on_cpu = not tf.config.list_physical_devices("GPU")
    if threads > 1 and on_cpu:
        divide_cores(threads)
    models = list(map(restored_model, folders, paths))
    model = models[0] if len(models) == 1 else Ensemble(models)
    engine = TensorFlowEngine(model, frozen=True)
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


def average_run(
    folder: RunFolder,
    averaged: Sequence[str],
    dataset: Dataset | None,
) -> tuple[str, Losses]:
    """Averages checkpoints of a run, oldest first, into RUN/averaged, and evaluates the
    newest, the best and the average on the first dev set of `dataset`, unless that is
    None. Returns the path of the average, and the losses.

    Raises ValueError if another process is averaging them.
    """
    target = folder.averaged_folder
    with own_files.only_process(target, "average a run's checkpoints"):
        checkpoint_paths.remove_unfinished(target)
        path = checkpoints.average_checkpoints(averaged, target)
    if dataset is None:
        return path, {}
    newest = folder.checkpoints()[-1]
    candidates = {f"the newest (step {checkpoint_paths.step_of(newest):,})": newest}
    for best in checkpoint_paths.list_checkpoints(folder.best_folder)[-1:]:
        if checkpoint_paths.step_of(best) != checkpoint_paths.step_of(newest):
            candidates[f"the best (step {checkpoint_paths.step_of(best):,})"] = best
    candidates["the average"] = path
    return path, dev_losses(folder, candidates, dataset)


def dev_losses(
    folder: RunFolder,
    candidates: Mapping[str, str],
    dataset: Dataset,
) -> Losses:
    """The losses of checkpoints on the dev set that chooses the best."""
    split = next(iter(dataset.manifest.dev_sets))
    model = restored_model(folder, candidates["the average"])
    strategy = tf.distribute.get_strategy()
    evaluate = make_evaluation(strategy, model, dataset.store(split))
    losses = {}
    for candidate, path in candidates.items():
        checkpoints.restore_weights(model, path)
        losses[candidate] = evaluate().loss
    return losses


def comparison(losses: Losses) -> list[str]:
    """Lines on the dev losses."""
    shown = [f"{candidate} {loss:.4f}" for candidate, loss in losses.items()]
    return [
        f"Loss on dev: {', '.join(shown)}.",
        "t2t-decoder --checkpoint_path=averaged uses the average.",
    ]
