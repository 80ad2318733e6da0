"""Imports tensor2tensor checkpoints into a run folder, which changes when all are read
and checked.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

import t2tlite
from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.data.manifest import ImportedFrom, RunManifest
from t2tlite.files.checkpoint_paths import (
    CHECKPOINT_PREFIX,
    readable_path,
    remove_unfinished,
    saving_folder,
    step_of,
)
from t2tlite.files.lock import only_process
from t2tlite.files.same_file import check_not_overwritten
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.programs.tensor2tensor.given import VOCABULARY_NAMES, Given, beside
from t2tlite.programs.tensor2tensor.hparams import convert_hparams, read_hparams
from t2tlite.programs.tensor2tensor.variables import (
    SCOPE,
    TARGET_SPACES_MOMENTS,
    embedding_sizes,
    load_variables,
    model_variables,
    trained_target_space,
)
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import TranslationTask
from t2tlite.training.checkpoints import reason_of, restore_weights, save_weights
from t2tlite.training.cost import count_parameters
from t2tlite.trees.linearise import T2T
from t2tlite.vocabularies.encoders import VocabularyEntry

# The defaults of tensor2tensor's decoder: at most 100 tokens more than the longest
# source of a batch.
DECODE_DEFAULTS = {"beam_size": 4, "alpha": 0.6, "extra_length": 100, "t2t_rules": True}
# Problem -> task and options, unless it is translation. tensor2tensor's only problem
# whose targets are trees:
TASKS = {"wsj_parsing": (ParsingTask.name, {"linearisation": T2T.name})}
# fields in which manifests of one model may differ
NOT_COMPARED = ("imported_from", "t2tlite")


@dataclasses.dataclass(frozen=True)
class Imported:
    """What was imported."""

    checkpoints: list[str]  # in the run directory
    parameters: int
    # the imported row of the target space embedding, if there is one
    target_space: int | None
    notes: list[str]  # for the user, one line each


def import_run(
    given: Given,
    folder: RunFolder,
    command: Sequence[str],
    progress: Callable[[Sequence[str]], Iterable[str]],
) -> Imported:
    """Imports checkpoints of tensor2tensor's model `transformer` into a run, which may
    have earlier imports.

    `command`, the command line, is recorded in flags.txt; `progress` wraps the sequence
    of checkpoints, say in a tqdm bar. Raises ValueError for an unsupported model, or
    files or a folder that do not fit. The same call resumes.
    """
    paths = given.checkpoints()
    trained_in = Path(paths[0]).parent
    hparams_file = given.hparams_path()
    recorded_problem = _recorded_problem(trained_in, hparams_file.parent)
    # of the newest: at step 0 the optimizer state is still empty
    variables = _read(paths[-1])
    hparams, notes = convert_hparams(read_hparams(hparams_file))
    # the files of older versions have other endings
    names = VOCABULARY_NAMES[len(given.vocabularies)]
    entries = [
        VocabularyEntry.of(path, name)
        for path, name in zip(given.vocabularies, names, strict=True)
    ]
    _check_vocabularies(given.vocabularies, entries, embedding_sizes(variables))
    sizes = [entries[0].size, entries[-1].size]
    if hparams.shared_embedding_and_softmax_weights and sizes[0] != sizes[1]:
        hparams = dataclasses.replace(
            hparams, shared_embedding_and_softmax_weights=False
        )
        notes.append(
            "The vocabularies are of different sizes, so tensor2tensor did not share"
            " embeddings either."
        )
    target_space = _target_space(hparams, variables, given.target_space, notes)
    manifest = _manifest(
        given.problem or recorded_problem, entries, trained_in, target_space
    )
    _check_folder(folder, hparams, manifest)
    for vocabulary, entry in zip(given.vocabularies, entries, strict=True):
        target = folder.path / entry.file
        others = [other for other in given.vocabularies if other != vocabulary]
        check_not_overwritten(
            [(str(target), target)],
            [(f"--t2t_vocab={other}", other) for other in others],
        )
    stored = sum(variables[name].size for name in model_variables(variables))
    described = count_parameters(hparams, sizes)
    if described > 4 * stored:  # it may not fit in memory
        raise ValueError(
            f"{hparams_file} must describe the model of {paths[-1]}, which has"
            f" {stored:,} weights. Received: hparams of {described:,}. Give the"
            " hparams.json that it was trained with."
        )

    model = build_transformer(hparams, *sizes)
    saved = []
    with only_process(folder.path, "import into a run"):
        remove_unfinished(folder.path)
        # the run changes when all are read and checked
        with saving_folder(folder.path) as saving:
            for path in progress(paths[::-1]):  # the newest first, which has been read
                if path != paths[-1]:
                    variables = _read(path)
                load_variables(model, variables, target_space or 0)
                _check_checkpoint(folder, model, step_of(path))
                saved.append(save_weights(model, folder.path, step_of(path), saving))
            folder.create(hparams, manifest, given.vocabularies)
            folder.write_flags(command)
    return Imported(saved[::-1], model.count_params(), target_space, notes)


def _read(path: str) -> dict[str, np.ndarray]:
    """The model's variables by name, and the optimizer state of the target space
    embedding.
    """
    try:
        with readable_path(path) as readable:
            reader = tf.train.load_checkpoint(readable)
            names = reader.get_variable_to_shape_map()
            wanted = model_variables(names) + [
                name for name in names if name.endswith(TARGET_SPACES_MOMENTS)
            ]
            if not any(name.startswith(f"{SCOPE}body/") for name in wanted):
                scopes = sorted({name.split("/")[0] for name in wanted})
                raise ValueError(
                    "The checkpoint must be of tensor2tensor's model transformer."
                    f" Received: {path}, with variables of"
                    f" {', '.join(scopes) or 'no model'}."
                )
            return {name: reader.get_tensor(name) for name in wanted}
    except (tf.errors.OpError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"A whole checkpoint is required. Received: {path}, which cannot be read:"
            f" {reason_of(error)}. Copy it again, all its files."
        ) from error


def _recorded_problem(*folders: Path) -> str:
    """The problem that tensor2tensor's trainer recorded in a folder or above it;
    otherwise "imported".

    Raises ValueError if it recorded another model than `transformer`.
    """
    path = beside("flags_t2t.txt", *folders)
    text = path.read_text(encoding="utf-8", errors="replace") if path else ""
    matches = (re.match(r"--(\w+)=(.*)$", line.strip()) for line in text.split("\n"))
    flags = {match[1]: match[2] for match in matches if match}
    if flags.get("model", "transformer") != "transformer":
        raise ValueError(
            f"model must be transformer. Received: model={flags['model']} in its"
            " flags_t2t.txt."
        )
    return flags.get("problem", "imported")


def _check_vocabularies(
    paths: Sequence[Path], entries: Sequence[VocabularyEntry], wanted: Sequence[int]
) -> None:
    """Raises ValueError unless the vocabularies have the sizes of a checkpoint's
    embeddings, `wanted`.
    """
    if {entry.size for entry in entries} != set(wanted):
        pairs = zip(paths, entries, strict=True)
        given = " and ".join(f"{path} with {entry.size:,}" for path, entry in pairs)
        raise ValueError(
            "The vocabularies must be those of the checkpoint, whose embeddings are"
            f" for {' and '.join(f'{size:,}' for size in wanted) or 'no'} subtokens."
            f" Received: {given}. Give --t2t_vocab the file or the two files"
            " (source,target) that the model was trained with."
        )


def _target_space(
    hparams: HParams,
    variables: dict[str, np.ndarray],
    wanted: int | None,
    notes: list[str],
) -> int | None:
    """The row of the target space embedding, or None if the model has none; may add to
    `notes`.
    """
    if not hparams.use_target_space_embedding:
        if wanted is not None:
            raise ValueError(
                "--target_space_id is for models with use_target_space_embedding=true."
                f" Received: --target_space_id={wanted}, and hparams with false. Leave"
                " it out."
            )
        return None
    trained = trained_target_space(variables)
    if wanted is None and trained is None:
        notes.append(
            "The checkpoint does not show which row of its target space embedding was"
            " trained. Row 0 is used, as in nearly all problems; if yours set"
            " target_space_id, give --target_space_id."
        )
    elif None not in (wanted, trained) and wanted != trained:
        notes.append(
            f"Row {trained} of the target space embedding was trained; row {wanted} is"
            " used as requested."
        )
    return next((row for row in (wanted, trained) if row is not None), 0)


def _manifest(
    problem: str,
    entries: Sequence[VocabularyEntry],
    trained_in: Path,
    target_space: int | None,
) -> RunManifest:
    task, options = TASKS.get(problem, (TranslationTask.name, {}))
    return RunManifest(
        problem=problem,
        task=task,
        t2tlite=t2tlite.__version__,
        options=options,
        decode_defaults=DECODE_DEFAULTS,
        vocabulary=entries[0],
        target_vocabulary=entries[1] if len(entries) == 2 else None,
        splits={},
        reverse=False,
        data_dir="",
        imported_from=ImportedFrom("tensor2tensor", str(trained_in)),
        target_space=target_space,
    )


def _check_folder(folder: RunFolder, hparams: HParams, manifest: RunManifest) -> None:
    """Raises ValueError unless the folder has no run, or the same imported model, to be
    added to.
    """
    folder.check_path()
    if not folder.has_manifest():
        if not folder.exists() and not folder.checkpoints():
            return
        what = "files of another program"  # such as tensor2tensor's own
    elif folder.manifest().imported_from is None:
        what = "a run that was not imported"
    else:
        before = folder.manifest()
        compared = [
            field.name
            for field in dataclasses.fields(RunManifest)
            if field.name not in NOT_COMPARED
        ]
        differing = [
            name
            for name in compared
            if getattr(before, name) != getattr(manifest, name)
        ]
        differing += [
            name for name in hparams.diff(folder.hparams()) if name in MODEL_FIELDS
        ]
        if not differing:
            return
        what = f"another model, which differs in {', '.join(differing)}"
    raise ValueError(
        "--output_dir must be a new folder, or hold checkpoints imported from the same"
        f" model. Received: {folder}, which holds {what}. Use another --output_dir."
    )


def _check_checkpoint(folder: RunFolder, model: Transformer, step: int) -> None:
    """Raises ValueError if the run has a checkpoint of this step with other weights
    than the model's.
    """
    path = str(folder.path / f"{CHECKPOINT_PREFIX}-{step}")
    if path not in folder.checkpoints():
        return
    weights = model.get_weights()
    restore_weights(model, path)
    if not all(map(np.array_equal, weights, model.get_weights())):
        raise ValueError(
            f"A run has one checkpoint of a step. Received: {folder}, whose"
            f" {CHECKPOINT_PREFIX}-{step} has other weights. Use another --output_dir,"
            f" or delete {path}.* first."
        )
