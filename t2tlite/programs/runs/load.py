"""Opens a run directory: its model, ready to decode, and the data that it was trained on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from t2tlite.config import HParams
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.files.checkpoint_paths import find_checkpoint, remove_unfinished, step_of
from t2tlite.files.lock import only_process
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.programs.runs.run_facts import model_facts
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder
from t2tlite.training.checkpoints import average_checkpoints, check_size, restore_weights
from t2tlite.training.cost import count_parameters
from t2tlite.vocabularies.text_encoder import TextEncoder


def load(run: str | Path, checkpoint_path: str | Path | None = None) -> Translator:
    """The trained model in a run directory (t2t-trainer's --output_dir), ready to decode.

    `checkpoint_path` is newest (the default), best, averaged, a step, or the path of a checkpoint or of a folder of
    checkpoints (files/checkpoint_paths.py).
    Raises FileNotFoundError if there is no run, vocabulary or checkpoint, and ValueError if a file is damaged.
    """
    folder = RunFolder(run)
    hparams, manifest = folder.hparams(), folder.manifest()
    checkpoint = find_checkpoint(folder.path, checkpoint_path)
    encoders = folder.encoders()
    model = _build(hparams, encoders, checkpoint)
    restore_weights(model, checkpoint)
    return Translator(model, encoders, manifest, hparams.jit_compile, checkpoint, facts=model_facts(folder, checkpoint))


def average_run(
    run: str | Path, count: int | None = None, from_step: int = 0, to_step: int | None = None
) -> tuple[str, list[str]]:
    """Averages checkpoints of a run into RUN/averaged, and returns the new one's path and those averaged.

    The newest `count` (or fewer, if there are not as many) of the checkpoints from `from_step` to `to_step` are
    averaged; all if `count` is None. Raises ValueError if there are none, or another process is averaging them.
    """
    folder = RunFolder(run)
    hparams, paths = folder.hparams(), folder.checkpoints()
    if count is not None and count < 1:
        raise ValueError(f"--n must be at least 1. Received: {count}.")
    if not paths:
        raise FileNotFoundError(f"A run needs a checkpoint to average. {folder} has none. Train first.")
    within = [path for path in paths if from_step <= step_of(path) and (to_step is None or step_of(path) <= to_step)]
    if not within:
        last = "the newest" if to_step is None else f"step {to_step:,}"
        raise ValueError(
            f"There must be checkpoints from --from_step to --to_step. Received: from step {from_step:,} to {last}; "
            f"{folder} has those of {len(paths)} steps, {step_of(paths[0]):,} to {step_of(paths[-1]):,}."
        )
    chosen = within[-count:] if count else within
    model = _build(hparams, folder.encoders(), chosen[-1])
    with only_process(folder.averaged_folder, "average a run's checkpoints"):
        remove_unfinished(folder.averaged_folder)
        return average_checkpoints(model, chosen, folder.averaged_folder), chosen


def _build(hparams: HParams, encoders: Sequence[TextEncoder], checkpoint: str) -> Transformer:
    """The model to restore a checkpoint into; ValueError if the checkpoint cannot have its weights."""
    sizes = [encoder.vocab_size for encoder in encoders]
    check_size(checkpoint, count_parameters(hparams, sizes))
    return build_transformer(hparams, *sizes)


def run_dataset(folder: RunFolder, data_dir: Path | None = None) -> Dataset:
    """The data that a run was trained on, in `data_dir`, by default where it was during training.

    Raises FileNotFoundError if it is not there, and ValueError if it has another vocabulary.
    """
    manifest = folder.manifest()
    name = None if manifest.imported_from else manifest.name  # None: any data of its vocabulary
    if name is None and data_dir is None:
        names = ",".join(str(folder.path / entry.file) for entry in manifest.vocabulary_entries())
        raise FileNotFoundError(
            f"The run in {folder} was imported and has no data. Make some with its vocabulary, t2t-datagen "
            f"--vocab_file={names}, and name its folder with --data_dir."
        )
    try:
        dataset = open_dataset(data_dir or Path(manifest.data_dir), name)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} Or give --data_dir, where the data of this run is now.") from error
    if dataset.manifest.vocabulary_sha256 != manifest.vocabulary_sha256:
        raise ValueError(f"The data in {dataset.folder} has another vocabulary than the run in {folder}.")
    return dataset
