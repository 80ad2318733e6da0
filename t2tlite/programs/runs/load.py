"""Opens a run directory: its model, ready to decode with an engine, and the data that
it was trained on.

Importing this module loads neither TensorFlow nor CTranslate2; loading a run loads the
one that decodes.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path

from t2tlite.checked_fields import checked, plain
from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.decoding.engine import CTRANSLATE2, ENGINES, TENSORFLOW, Engine
from t2tlite.files.checkpoint_paths import (
    checkpoint_files,
    find_checkpoint,
    step_of,
)
from t2tlite.files.same_file import NamedFile
from t2tlite.machine import check_not_forked
from t2tlite.programs.export.ctranslate2_engine import CTranslate2Engine
from t2tlite.programs.export.verification import keras_model
from t2tlite.programs.runs.checkpoint_choice import checkpoint_notes
from t2tlite.programs.runs.ctranslate2_run import open_converted
from t2tlite.programs.runs.translator import Translator
from t2tlite.quiet import import_tensorflow
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import Identity
from t2tlite.vocabularies.encoders import reading_notes

# what the runs of an ensemble have in common
DATA = ("problem", "languages", "vocabulary")


def load(
    run: str | Path | Sequence[str | Path],
    checkpoint_path: str | Path | int | None = None,
    engine: str = TENSORFLOW,
    quantization: str | None = None,
    *,
    report: Callable[[str], object] = lambda sentence: None,
    jit_compile: bool | None = None,
    threads: int = 1,
) -> Translator:
    """The trained model in a run directory, or an ensemble of several, ready to decode;
    `t2tlite.load` explains the first four arguments, and `threads`.

    `report` is called with messages for the user. `jit_compile` is whether XLA compiles
    TensorFlow's search, by default as in training. Raises as `t2tlite.load`.
    """
    if isinstance(run, list | tuple) and len(run) == 1:
        [run] = run
    if isinstance(run, list | tuple) and run:
        folders = [RunFolder(path) for path in run]
        check_ensemble(folders, checkpoint_path, engine)
        members = []
        for folder in folders:
            member = load(
                folder.path,
                checkpoint_path,
                quantization=quantization,
                report=report,
                jit_compile=jit_compile,
                threads=threads,
            )
            members.append(member)
        return _ensemble(members, jit_compile)
    if not isinstance(run, str | Path):
        raise TypeError(
            f"run must be a run folder, or a list of several. Received: {run!r}."
        )
    checkpoint_path = plain(checkpoint_path)
    known = isinstance(checkpoint_path, str | Path | int | None)
    if not known or isinstance(checkpoint_path, bool):
        raise TypeError(
            "checkpoint_path must be newest, best, averaged, a step, or a path."
            f" Received: {checkpoint_path!r}."
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
    folder = RunFolder(run)
    hparams = folder.hparams()
    manifest = folder.manifest()
    checkpoint = find_checkpoint(folder.path, checkpoint_path)
    _check_same_model(folder, checkpoint)
    encoders = folder.encoders()
    for note in reading_notes(encoders, manifest.options):
        report(note)
    check_not_forked()
    opened: Engine
    if engine == CTRANSLATE2:
        opened = open_converted(folder, checkpoint, quantization, report, threads)
    else:
        import_tensorflow()
        from t2tlite.programs.runs.keras_run import open_keras

        if jit_compile is None:
            jit_compile = hparams.jit_compile
        opened = open_keras(folder, checkpoint, jit_compile, threads)
    for note in checkpoint_notes(folder, checkpoint):
        report(note)
    label = _label(folder, manifest.name, opened.parameters, checkpoint)
    return Translator(opened, encoders, manifest, checkpoint, label, str(folder))


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
        difference = first.difference(folder.identity(), *DATA)
        if difference:
            raise ValueError(
                "The runs of an ensemble must have one problem, language pair and"
                f" vocabulary. Received: {folders[0]} and {folder}, which differ in"
                f" {difference}. Leave one out, or train both on the same data."
            )


def _check_same_model(folder: RunFolder, checkpoint: str) -> None:
    """Raises ValueError for a checkpoint of another run whose vocabulary or model
    differs, even if its weights have the same shapes.
    """
    other = run_of(checkpoint)
    if other.path.resolve() == folder.path.resolve() or not other.exists():
        return
    difference = folder.identity().difference(other.identity(), "vocabulary", "model")
    if difference:
        raise ValueError(
            "checkpoint_path must be a checkpoint of the same model. Received:"
            f" {checkpoint}, whose run differs from {folder} in {difference}. Name the"
            " run of that checkpoint."
        )


def _ensemble(members: Sequence[Translator], jit_compile: bool | None) -> Translator:
    """The models of several runs as one. Vocabularies, task, decoding defaults, and
    whether XLA compiles, are those of the first.
    """
    from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
    from t2tlite.models.ensemble import Ensemble

    first, *others = members
    models = [keras_model(member) for member in members]
    if jit_compile is None:
        jit_compile = models[0].hparams.jit_compile
    engine = TensorFlowEngine(Ensemble(models), jit_compile)
    engine.threads = first.engine.threads
    labels = "; ".join(member.label for member in members)
    return Translator(
        engine,
        first.encoders,
        first.manifest,
        first.checkpoint,
        f"ensemble of {len(members)}: {labels}",
        run=",".join(member.run for member in members),
        others=tuple(member.checkpoint for member in others),
    )


def check_engine_options(engine: str, options: DecodeHParams, *features: str) -> None:
    """Raises ValueError naming an option or a feature that the engine does not
    support.
    """
    if engine == CTRANSLATE2:
        CTranslate2Engine.check_supported(options, *features)


def _label(folder: RunFolder, problem: str, parameters: int, checkpoint: str) -> str:
    """Problem, hparam set, parameters, step with its metrics, and run; unknown parts
    are left out.
    """
    step = step_of(checkpoint)
    metrics = {}
    # an average was not evaluated
    if Path(checkpoint).parent.resolve() != folder.averaged_folder.resolve():
        with contextlib.suppress(ValueError):  # damaged; training reports it
            for evaluation in folder.evaluations():
                if evaluation.step == step:
                    metrics = evaluation.metrics
                    break
    label = f"problem {problem}"
    hparams_set = folder.flags().get("hparams_set", "")
    if hparams_set:
        label += f", hparams set {hparams_set}"
    label += f", {parameters:,} parameters, step {step:,}"
    if metrics:
        shown = [f"{name} {value:.4g}" for name, value in metrics.items()]
        label += f" (dev: {', '.join(shown)})"
    return f"{label}, run {folder}"


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
    # None: any data of its vocabulary
    name = None if manifest.imported_from else manifest.name
    if name is None and not data_dir:
        entries = manifest.vocabulary_entries()
        names = ",".join(str(folder.path / entry.file) for entry in entries)
        raise FileNotFoundError(
            f"The run in {folder} was imported and has no data. Make some with its"
            f" vocabulary, t2t-datagen --vocab_file={names}, and give --data_dir."
        )
    try:
        dataset = open_dataset(data_dir or Path(manifest.data_dir), name)
    except FileNotFoundError as error:
        raise FileNotFoundError(
            f"{error} Or give --data_dir, where the data of this run is now."
        ) from error
    here = Identity.of(dataset.manifest)
    if difference := Identity.of(manifest).difference(here, "vocabulary"):
        raise ValueError(
            f"The data of a run must have its vocabulary. Received: {folder} and"
            f" {dataset.folder}, which differ in {difference}."
        )
    return dataset
