"""A run directory: made by training, and all that decoding needs.

RUN/hparams.json       the model and its training
RUN/manifest.json      the problem's manifest, as the data directory had it, and the direction
RUN/vocab.*            the vocabulary, or source's and target's
RUN/flags.txt          the command line that trained it last
RUN/environment.json   the versions and the device that trained it last
RUN/cost.json          time and floating-point operations of training so far
RUN/model.ckpt-N.*     checkpoints; RUN/best holds the best by dev; RUN/averaged what t2t-avg-checkpoints made
RUN/events.*           TensorBoard
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from t2tlite.config import HParams
from t2tlite.data.dataset import MANIFEST, Dataset, open_dataset
from t2tlite.decoding.translator import Translator
from t2tlite.models.transformer import build_transformer
from t2tlite.training.checkpoints import average_checkpoints, find_checkpoint, list_checkpoints, restore_weights
from t2tlite.vocabularies.encoders import open_encoders, same_vocabularies, vocabulary_entries

HPARAMS, ENVIRONMENT = "hparams.json", "environment.json"


def read_hparams(folder: Path) -> HParams:
    """The hparams of a run.

    Raises:
        FileNotFoundError: the folder holds no run.
        ValueError: its hparams.json is damaged.
    """
    path = folder / HPARAMS
    if not path.is_file():
        above = folder.parent
        hint = f" {above} is one; --checkpoint_path={folder} goes with it." if (above / HPARAMS).is_file() else ""
        raise FileNotFoundError(
            f"--output_dir must be the folder of a run that t2t-trainer made. Received: {folder}, which has no "
            f"{HPARAMS}.{hint}"
        )
    try:
        return HParams.from_json(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a run.

    Raises:
        FileNotFoundError: there is none.
        ValueError: it is damaged.
    """
    path = folder / MANIFEST
    if not path.is_file():
        raise FileNotFoundError(f"A run needs its {MANIFEST}. {folder} has none: was it copied whole?")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
        [manifest[name] for name in ("problem", "reverse", "data_dir", "decode_defaults")]
        [entry[name] for entry in vocabulary_entries(manifest) for name in ("file", "sha256")]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error!r}") from error
    return manifest


def run_dataset(folder: Path, data_dir: Path | None = None) -> Dataset:
    """The data that a run was trained on.

    Args:
        folder: the run directory.
        data_dir: where the data lies now; by default where it lay in training.

    Raises:
        FileNotFoundError: it is not there.
        ValueError: it is not the same data.
    """
    manifest = read_manifest(folder)
    name = manifest["problem"] + ("_rev" if manifest["reverse"] else "")
    if "imported_from" in manifest:
        if data_dir is None:
            names = dict.fromkeys(str(folder / entry["file"]) for entry in vocabulary_entries(manifest))
            raise FileNotFoundError(
                f"The run in {folder} was imported and has no data. Make some with its vocabulary, t2t-datagen "
                f"--vocab_file={','.join(names)}, and name its folder with --data_dir."
            )
        name = None  # any data of its vocabulary
    try:
        dataset = open_dataset(data_dir or Path(manifest["data_dir"]), name)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"{error} Or say with --data_dir where the data of this run lies now.") from error
    if not same_vocabularies(dataset.manifest, manifest):
        raise ValueError(f"The data in {dataset.folder} has another vocabulary than the run in {folder}.")
    return dataset


def load(run: str | Path, checkpoint_path: str | Path | None = None) -> Translator:
    """The trained model in a run directory, ready to translate.

    Args:
        run: the run directory (t2t-trainer's --output_dir).
        checkpoint_path: RUN/model.ckpt-N, or a folder such as RUN/averaged; by default the newest of the run.

    Raises:
        FileNotFoundError: there is no run, vocabulary or checkpoint.
        ValueError: a file of it is damaged.
    """
    folder = Path(run)
    hparams, manifest = read_hparams(folder), read_manifest(folder)
    checkpoint = find_checkpoint(folder, checkpoint_path)
    encoders = open_encoders(folder, manifest, manifest["reverse"])
    model = build_transformer(hparams, *(encoder.vocab_size for encoder in encoders))
    restore_weights(model, checkpoint)
    return Translator(model, encoders, hparams, manifest, checkpoint)


def average_run(run: str | Path, count: int) -> tuple[str, list[str]]:
    """Averages the newest checkpoints of a run into RUN/averaged.

    Returns:
        The new checkpoint's path, and those averaged.

    Raises:
        ValueError: the run has fewer checkpoints.
    """
    folder = Path(run)
    hparams, manifest = read_hparams(folder), read_manifest(folder)
    paths = list_checkpoints(folder)
    if count < 1 or len(paths) < count:
        raise ValueError(
            f"--n must be from 1 to the number of checkpoints in {folder}. Received: --n={count}, {len(paths)} "
            "checkpoints. Train on with a higher --keep_checkpoint_max, or average fewer."
        )
    encoders = open_encoders(folder, manifest, manifest["reverse"])
    model = build_transformer(hparams, *(encoder.vocab_size for encoder in encoders))
    return average_checkpoints(model, paths[-count:], folder / "averaged"), paths[-count:]


def run_of(path: str | Path) -> Path:
    """The run directory to which a checkpoint, or a folder of checkpoints such as RUN/best, belongs.

    Raises:
        FileNotFoundError: there is no checkpoint.
    """
    folder = Path(find_checkpoint(Path(path).expanduser(), path)).parent
    return folder if (folder / HPARAMS).is_file() else folder.parent
