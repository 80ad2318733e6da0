"""The Keras model of a run: restored from a checkpoint, or made by averaging
checkpoints.
"""

from __future__ import annotations

from pathlib import Path

from t2tlite.decoding.decoder import TensorFlowEngine
from t2tlite.files.checkpoint_paths import remove_unfinished, step_of
from t2tlite.files.lock import only_process
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import (
    average_checkpoints,
    check_size,
    restore_weights,
)
from t2tlite.training.cost import count_parameters


def restored_model(folder: RunFolder, checkpoint: str) -> Transformer:
    """A run's model with the weights of a checkpoint; ValueError if that is damaged or
    of another model.
    """
    model = _build(folder, checkpoint)
    restore_weights(model, checkpoint)
    return model


def open_keras(
    folder: RunFolder, checkpoint: str, jit_compile: bool
) -> TensorFlowEngine:
    """The engine that decodes with the Keras model. Raises as `restored_model`."""
    return TensorFlowEngine(restored_model(folder, checkpoint), jit_compile)


def average_run(
    run: str | Path,
    count: int | None = None,
    from_step: int = 0,
    to_step: int | None = None,
) -> tuple[str, list[str]]:
    """Averages checkpoints of a run into RUN/averaged, and returns the new one's path
    and those averaged.

    Averaged are the newest `count` of those from `from_step` to `to_step`; all if there
    are fewer, or it is None. Raises ValueError if there are none, or another process is
    averaging them.
    """
    folder = RunFolder(run)
    folder.hparams()  # raises if there is no run
    folder.check_checkpoint_folders()
    paths = folder.checkpoints()
    if count is not None and count < 1:
        raise ValueError(f"--n must be at least 1. Received: {count}.")
    if not paths:
        raise FileNotFoundError(
            f"A run needs a checkpoint to average. {folder} has none. Train first."
        )
    within = [
        path
        for path in paths
        if from_step <= step_of(path) and (to_step is None or step_of(path) <= to_step)
    ]
    if not within:
        last = "the newest" if to_step is None else f"step {to_step:,}"
        raise ValueError(
            "There must be checkpoints from --from_step to --to_step. Received: from"
            f" step {from_step:,} to {last}; {folder} has those of {len(paths)} steps,"
            f" {step_of(paths[0]):,} to {step_of(paths[-1]):,}."
        )
    chosen = within[-count:] if count else within
    model = _build(folder, chosen[-1])
    with only_process(folder.averaged_folder, "average a run's checkpoints"):
        remove_unfinished(folder.averaged_folder)
        return average_checkpoints(model, chosen, folder.averaged_folder), chosen


def _build(folder: RunFolder, checkpoint: str) -> Transformer:
    """The model to restore a checkpoint into; ValueError if the checkpoint cannot have
    its weights.
    """
    hparams, sizes = (
        folder.hparams(),
        [encoder.vocab_size for encoder in folder.encoders()],
    )
    check_size(checkpoint, count_parameters(hparams, sizes))
    return build_transformer(hparams, *sizes)
