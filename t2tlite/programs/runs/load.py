"""Opens a run directory: its model, ready to decode with an engine, and the data that
it was trained on.

Importing this module loads neither TensorFlow nor CTranslate2; loading a run loads the
one that decodes.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2tlite.checked_fields import checked
from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.decoding.engine import CTRANSLATE2, ENGINES, TENSORFLOW, Engine
from t2tlite.files.checkpoint_paths import checkpoint_files, find_checkpoint
from t2tlite.files.same_file import NamedFile
from t2tlite.machine import check_not_forked, import_tensorflow
from t2tlite.programs.export.ctranslate2_engine import CTranslate2Engine
from t2tlite.programs.runs.checkpoint_choice import notes_on_checkpoint
from t2tlite.programs.runs.ctranslate2_run import open_converted
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import Identity

# what the runs of an ensemble have in common
DATA = ("problem", "languages", "vocabulary")


def load(
    run: str | Path | Sequence[str | Path],
    checkpoint_path: str | Path | int | None = None,
    engine: str = TENSORFLOW,
    quantization: str | None = None,
    *,
    jit_compile: bool | None = None,
    threads: int = 1,
) -> Translator:
    """The trained model in a run directory, or an ensemble of several, ready to decode;
    `t2tlite.load` explains the arguments and errors.

    `jit_compile` is whether XLA compiles TensorFlow's search, by default as in
    training.
    """
    paths: list[Any] = list(run) if isinstance(run, list | tuple) else [run]
    if not paths or not all(isinstance(path, str | Path) for path in paths):
        raise TypeError(
            f"run must be a run folder, or a list of several. Received: {run!r}."
        )
    if engine not in ENGINES:
        raise ValueError(
            f"engine must be one of {', '.join(ENGINES)}. Received: {engine!r}."
        )
    if engine == TENSORFLOW and quantization is not None:
        raise ValueError(
            f"quantization goes with engine={CTRANSLATE2}. Received:"
            f" quantization={quantization} with engine={engine}."
        )
    threads = checked("threads", int, threads, low=1)
    folders = [RunFolder(path) for path in paths]
    if len(folders) > 1:
        check_ensemble(folders, checkpoint_path, engine)
    checkpoints = [_chosen_checkpoint(folder, checkpoint_path) for folder in folders]
    first = folders[0]
    hparams = first.hparams()
    manifest = first.manifest()
    encoders = first.encoders()
    check_not_forked()
    opened: Engine
    if engine == CTRANSLATE2:
        opened = open_converted(first, checkpoints[0], quantization, threads)
    else:
        import_tensorflow()
        from t2tlite.programs.runs.keras_run import open_keras

        if jit_compile is None:
            jit_compile = hparams.jit_compile
        opened = open_keras(folders, checkpoints, jit_compile, threads)
    notes: list[str] = []
    for folder, checkpoint in zip(folders, checkpoints, strict=True):
        notes += notes_on_checkpoint(folder, checkpoint)
    return Translator(
        opened,
        encoders,
        manifest,
        checkpoints[0],
        run=",".join(map(str, folders)),
        others=tuple(checkpoints[1:]),
        notes=notes,
    )


def check_ensemble(
    folders: Sequence[RunFolder],
    checkpoint_path: str | Path | int | None = None,
    engine: str = TENSORFLOW,
) -> None:
    """Raises ValueError if these runs cannot decode as one: their problems, languages
    or vocabularies differ, the checkpoint is a path, which one run alone has, or
    another engine than TensorFlow is to decode. Raises FileNotFoundError if there is no
    such run.
    """
    if engine != TENSORFLOW or os.sep in str(checkpoint_path):
        raise ValueError(
            f"An ensemble decodes with engine={TENSORFLOW}, and with the checkpoint"
            " newest, best, averaged or a step of each run. Received:"
            f" engine={engine}, checkpoint_path={checkpoint_path}."
        )
    first = folders[0].identity()
    for folder in folders[1:]:
        first.require_same(
            folder.identity(),
            DATA,
            "The runs of an ensemble must have one problem, language pair and"
            " vocabulary.",
            f"{folders[0]} and {folder}, which differ",
            "Leave one out, or train both on the same data.",
        )


def _chosen_checkpoint(folder: RunFolder, chosen: str | Path | int | None) -> str:
    """The checkpoint to use. Raises ValueError for one of another run whose vocabulary
    or model differs, even if its weights have the same shapes.
    """
    checkpoint = find_checkpoint(folder.path, chosen)
    other = run_of(checkpoint)
    if other.exists():
        folder.identity().require_same(
            other.identity(),
            ("vocabulary", "model"),
            "checkpoint_path must be a checkpoint of the same model.",
            f"{checkpoint}, whose run differs from {folder}",
            "Name the run of that checkpoint.",
        )
    return checkpoint


def check_engine_options(engine: str, options: DecodeHParams, *features: str) -> None:
    """Raises ValueError naming an option or a feature that the engine does not
    support.
    """
    if engine == CTRANSLATE2:
        CTranslate2Engine.check_supported(options, *features)


def run_files(
    folders: Sequence[RunFolder], checkpoint_path: str | None
) -> list[NamedFile]:
    """Returns the files of the runs that decoding reads. Raises FileNotFoundError if
    there is no such checkpoint.
    """
    files: list[Path] = []
    for folder in folders:
        checkpoint = find_checkpoint(folder.path, checkpoint_path)
        files += [*folder.own_files(), *checkpoint_files(checkpoint)]
    return [(f"{file}, which is the run's", file) for file in files]


def run_dataset(folder: RunFolder, data_dir: str | Path | None = None) -> Dataset:
    """The data that a run was trained on, in `data_dir`, by default where it was during
    training.

    Raises FileNotFoundError if it is not there, and ValueError if it has another
    vocabulary.
    """
    manifest = folder.manifest()
    name: str | None = manifest.name
    if manifest.imported_from:
        name = None  # any data of its vocabulary
        if not data_dir:
            raise FileNotFoundError(
                f"The run in {folder} was imported and has no data. Make some with its"
                f" vocabulary, t2t-datagen {folder.vocabulary_flag()}, and give"
                " --data_dir."
            )
    try:
        dataset = open_dataset(data_dir or Path(manifest.data_dir), name)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} Or give --data_dir, where the data of this run is now."
        ) from error
    Identity.of(manifest).require_same(
        Identity.of(dataset.manifest),
        ["vocabulary"],
        "The data of a run must have its vocabulary.",
        f"{folder} and {dataset.folder}, which differ",
        "Name another --data_dir.",
    )
    return dataset
