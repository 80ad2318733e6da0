"""Opens a run directory: its model, ready to decode, and the data that it was trained on."""

from __future__ import annotations

from pathlib import Path

from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.decoding.translator import Translator
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.models.transformer import build_transformer
from t2tlite.runs.run_folder import RunFolder
from t2tlite.training.checkpoints import average_checkpoints, restore_weights


def load(run: str | Path, checkpoint_path: str | Path | None = None) -> Translator:
    """The trained model in a run directory (t2t-trainer's --output_dir), ready to decode.

    `checkpoint_path` is RUN/model.ckpt-N or a folder such as RUN/averaged; by default the newest checkpoint is loaded.
    Raises FileNotFoundError if there is no run, vocabulary or checkpoint, and ValueError if a file is damaged.
    """
    folder = RunFolder(run)
    hparams, manifest = folder.hparams(), folder.manifest()
    checkpoint = find_checkpoint(folder.path, checkpoint_path)
    encoders = folder.encoders()
    model = build_transformer(hparams, *(encoder.vocab_size for encoder in encoders))
    restore_weights(model, checkpoint)
    return Translator(model, encoders, manifest, hparams.jit_compile, checkpoint)


def average_run(run: str | Path, count: int) -> tuple[str, list[str]]:
    """Averages the newest checkpoints of a run into RUN/averaged, and returns the new one's path and those averaged.

    If the run has fewer checkpoints than `count`, raises a ValueError.
    """
    folder = RunFolder(run)
    hparams, paths = folder.hparams(), folder.checkpoints()
    if count < 1 or len(paths) < count:
        raise ValueError(
            f"--n must be from 1 to the number of checkpoints in {folder}. Received: --n={count}, {len(paths)} "
            "checkpoints. Train on with a higher --keep_checkpoint_max, or average fewer."
        )
    model = build_transformer(hparams, *(encoder.vocab_size for encoder in folder.encoders()))
    return average_checkpoints(model, paths[-count:], folder.averaged_folder), paths[-count:]


def run_dataset(folder: RunFolder, data_dir: Path | None = None) -> Dataset:
    """The data that a run was trained on, in `data_dir`, by default where it was in training.

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
        raise FileNotFoundError(f"{error} Or say with --data_dir where the data of this run is now.") from error
    if dataset.manifest.vocabulary_sha256 != manifest.vocabulary_sha256:
        raise ValueError(f"The data in {dataset.folder} has another vocabulary than the run in {folder}.")
    return dataset
