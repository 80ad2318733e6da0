"""Opens a run directory: its model, ready to decode with an engine, and the data that
it was trained on. Says which of its checkpoints is used.

Importing this module loads neither TensorFlow nor CTranslate2; loading a run loads the
one that decodes. CTranslate2's model is converted once, for which TensorFlow reads the
checkpoint, and kept in the run directory:

RUN/ctranslate2/QUANTIZATION-HASH/   a model directory of CTranslate2

The hash is that of the checkpoint and of t2tlite's version. A directory of others is
removed when a model is converted.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from t2tlite import __version__
from t2tlite.checked_fields import checked
from t2tlite.config import DecodeHParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.decoding.engine import (
    CTRANSLATE2,
    ENGINES,
    EVERYTHING,
    TENSORFLOW,
    Engine,
    check_supported,
)
from t2tlite.files import atomic_file, own_files, same_file
from t2tlite.files.checkpoint_paths import (
    checkpoint_files,
    checkpoint_identity,
    find_checkpoint,
    list_checkpoints,
    step_of,
)
from t2tlite.machine import check_not_forked, import_tensorflow
from t2tlite.programs.export import ctranslate2_engine
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import Identity
from t2tlite.training.cost import count_parameters

# what the runs of an ensemble have in common
DATA = ("problem", "languages", "vocabulary")
# of metrics of decoded dev, in percent
METRIC_NAMES = {
    "bleu": "BLEU",
    "chrf2": "chrF2",
    "f1": "F1",
    "exact_match": "exact match",
    "token_accuracy": "token accuracy",
    "wer": "WER",
    "per": "PER",
}
DIGITS = {"loss": 4, "perplexity": 3, "accuracy": 4}  # otherwise 2


def load(
    run: str | Path | Sequence[str | Path],
    checkpoint_path: str | Path | int | None = None,
    engine: str = TENSORFLOW,
    quantization: str | None = None,
    *,
    threads: int = 1,
) -> Translator:
    """The trained model in a run directory, or an ensemble of several, ready to decode;
    `t2tlite.load` explains the arguments and errors.
    """
    paths: list[Any] = list(run) if isinstance(run, list | tuple) else [run]
    if not paths:
        raise ValueError("run must be one run folder or several. Received: [].")
    checked("engine", str, engine, choices=ENGINES)
    if engine == TENSORFLOW and quantization is not None:
        raise ValueError(
            f"quantization goes with engine={CTRANSLATE2}. Received: {quantization}"
            f" with {engine}."
        )
    threads = checked("threads", int, threads, low=1)
    folders = [RunFolder(path) for path in paths]
    if len(folders) > 1:
        check_ensemble(folders, checkpoint_path, engine)
    checkpoints = []
    notes = []
    for folder in folders:
        checkpoint = _chosen_checkpoint(folder, checkpoint_path)
        checkpoints.append(checkpoint)
        notes += notes_on_checkpoint(folder, checkpoint)
    first = folders[0]
    manifest = first.manifest()
    encoders = first.encoders()
    check_not_forked()
    opened: Engine
    if engine == CTRANSLATE2:
        opened = _open_converted(first, checkpoints[0], quantization, threads)
    else:
        opened = _keras_run().open_keras(folders, checkpoints, threads)
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
            f"An ensemble needs engine={TENSORFLOW}, and a checkpoint_path that each"
            f" run has, such as best. Received: {engine}, {checkpoint_path}."
        )
    first = folders[0].identity()
    for folder in folders[1:]:
        first.require_same(
            folder.identity(),
            DATA,
            "An ensemble must have one problem and vocabulary.",
            f"{folders[0]} and {folder}, which differ",
            "Leave one out.",
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


def _keras_run() -> ModuleType:
    """The module of that name, which needs TensorFlow."""
    import_tensorflow()
    from t2tlite.programs.runs import keras_run

    return keras_run


def _open_converted(
    folder: RunFolder,
    checkpoint: str,
    quantization: str | None,
    threads: int,
) -> Engine:
    """The engine that decodes with a run's model, converted to CTranslate2, by default
    in float32.

    The Keras model is loaded only for its attention. `threads` is how many decode at a
    time. Raises ValueError if CTranslate2 cannot compute the model here or the
    converted one is damaged, and OSError if the run cannot be written.
    """
    quantization = quantization or ctranslate2_engine.FLOAT32
    ctranslate2_engine.check_computable(quantization)
    hparams = folder.hparams()
    ctranslate2_engine.check_expressible(hparams)
    parameters = count_parameters(hparams, folder.manifest().vocabulary_sizes)
    made_from = f"{__version__} {checkpoint_identity(checkpoint)}"
    digest = atomic_file.text_sha256(made_from)[:8]
    path = folder.own(f"ctranslate2/{quantization}-{digest}")
    if not path.is_dir():
        _convert(folder, checkpoint, parameters, path, quantization)
    translator = ctranslate2_engine.open_translator(path, quantization, threads)
    engine = ctranslate2_engine.CTranslate2Engine(
        translator,
        folder.encoders(),
        quantization,
        hparams.max_positions,
        parameters,
        lambda: _keras_run().restored_model(folder, checkpoint),
    )
    engine.threads = translator.num_translators  # 1 on a GPU
    return engine


def _convert(
    folder: RunFolder,
    checkpoint: str,
    parameters: int,
    path: Path,
    quantization: str,
) -> None:
    """Makes a model directory, and removes those of its quantization that were made
    from something else.
    """
    converted = path.parent
    with own_files.only_process(converted, "convert a run's model", wait=True):
        if path.is_dir():  # another process has made it meanwhile
            return
        say(
            f"Converting {checkpoint} for CTranslate2 ({quantization}), once: it is"
            f" kept in {path}."
        )
        checkpoints = _keras_run().checkpoints
        weights = checkpoints.read_weights(checkpoint, parameters)
        with atomic_file.atomic_folder(path, converted / ".converting") as unfinished:
            hparams = folder.hparams()
            convert(hparams, weights, folder.encoders(), unfinished, quantization)
        for other in converted.glob(f"{quantization}-*"):
            if other != path:
                own_files.remove(other)


def check_engine_options(engine: str, options: DecodeHParams, *features: str) -> None:
    """Raises ValueError naming an option or a feature that the engine does not
    support, without loading it.
    """
    supported = EVERYTHING
    if engine == CTRANSLATE2:
        supported = ctranslate2_engine.CTranslate2Engine.supported
    check_supported(f"The engine {engine}", supported, options, *features)


def run_files(
    folders: Sequence[RunFolder],
    checkpoint_path: str | None,
) -> list[same_file.NamedFile]:
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
                f"{folder}, an imported run, needs --data_dir. Make data with"
                f" t2t-datagen {folder.vocabulary_flag()}."
            )
    try:
        dataset = open_dataset(data_dir or manifest.data_dir, name)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} Or give --data_dir, where the data is now."
        ) from error
    Identity.of(manifest).require_same(
        Identity.of(dataset.manifest),
        ["vocabulary"],
        "The data of a run must have its vocabulary.",
        f"{folder} and {dataset.folder}, which differ",
        "Name another --data_dir.",
    )
    return dataset


def after_training(run: RunFolder) -> list[str]:
    """Lines on the newest and the best checkpoint of a run, and which is used; empty if
    a best checkpoint does not exist.
    """
    best = run.best()
    checkpoints = run.checkpoints()
    if best is None or not checkpoints:
        return []
    shown = []
    for name, value in best.metrics.items():
        shown.append(f"{METRIC_NAMES.get(name, name)} {shown_value(name, value)}")
    by = METRIC_NAMES.get(best.chosen_by, best.chosen_by)
    best_by = f"Best checkpoint by dev {by}, step {best.step:,}"
    newest = f"Newest checkpoint: step {step_of(checkpoints[-1]):,}"
    return [
        f"{newest}. t2t-decoder uses it by default.",
        f"{best_by}: dev {', '.join(shown)}. --checkpoint_path=best uses it.",
    ]


def newest_checkpoints(
    run: RunFolder,
    count: int | None,
    from_step: int,
    to_step: int | None,
) -> list[str]:
    """The newest `count` checkpoints of a run from `from_step` to `to_step`, oldest
    first; all if there are fewer, or if `count` is None.

    Raises FileNotFoundError and ValueError if there is no run, or no such checkpoint.
    """
    run.hparams()  # raises if there is no run
    steps = {step_of(path): path for path in run.checkpoints()}
    if not steps:
        raise FileNotFoundError(f"{run} needs a checkpoint to average. Train first.")
    last = max(steps) if to_step is None else to_step
    within = [path for step, path in steps.items() if from_step <= step <= last]
    if not within:
        raise ValueError(
            f"--from_step to --to_step must be within {min(steps):,} to"
            f" {max(steps):,}, the steps of {run}. Received: {from_step:,} to {last:,}."
        )
    return within[-count:] if count else within


def notes_on_checkpoint(run: RunFolder, checkpoint: str) -> list[str]:
    """A note on a checkpoint that is about to be used, unless it is the newest and no
    other is the best.
    """
    if [checkpoint] != run.checkpoints()[-1:]:
        return [f"Using checkpoint {checkpoint}."]
    best = list_checkpoints(run.best_folder)[-1:]
    if not best or step_of(best[0]) == step_of(checkpoint):
        return []
    return [
        f"Using the newest checkpoint, of step {step_of(checkpoint):,}; the best by"
        f" dev, of step {step_of(best[0]):,}, is --checkpoint_path=best."
    ]


def shown_value(metric: str, value: float | None) -> str:
    """The value of a metric of dev with its usual number of digits; empty if there is
    none.
    """
    return "" if value is None else f"{value:.{DIGITS.get(metric, 2)}f}"
