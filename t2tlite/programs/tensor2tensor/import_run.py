"""Imports tensor2tensor checkpoints into a run folder, which changes when all are read
and checked.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import progress_bar
from t2tlite.data.manifest import ImportedFrom, RunManifest
from t2tlite.files.checkpoint_paths import (
    remove_unfinished,
    saving_folder,
    step_of,
)
from t2tlite.files.own_files import only_process
from t2tlite.files.records import NAME, read_record
from t2tlite.files.same_file import check_not_overwritten
from t2tlite.models.transformer import Transformer
from t2tlite.programs.tensor2tensor.hparams import convert_hparams
from t2tlite.programs.tensor2tensor.t2t_files import VOCABULARY_NAMES, T2TFiles
from t2tlite.programs.tensor2tensor.variables import (
    Variables,
    embedding_sizes,
    load_variables,
    read_variables,
    trained_target_space,
)
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import TranslationTask
from t2tlite.training.checkpoints import write_weights, writing
from t2tlite.trees.linearise import T2T
from t2tlite.vocabularies.encoders import VocabularyEntry

# The defaults of tensor2tensor's decoder: at most 100 tokens more than the longest
# source of a batch.
DECODE_DEFAULTS = {"beam_size": 4, "alpha": 0.6, "extra_length": 100, "t2t_rules": True}
# Problem -> task and options, unless it is translation. tensor2tensor's only problem
# whose targets are trees:
TASKS = {"wsj_parsing": (ParsingTask.name, {"linearisation": T2T.name})}


@dataclasses.dataclass(frozen=True)
class Imported:
    """What was imported."""

    checkpoints: list[str]  # in the run directory
    parameters: int
    # the imported row of the target space embedding, if there is one
    target_space: int | None
    notes: list[str]  # for the user, one line each


def import_run(files: T2TFiles, folder: RunFolder, command: Sequence[str]) -> Imported:
    """Imports checkpoints of tensor2tensor's model `transformer` into a new run.

    `command`, the command line, is recorded in flags.txt. Raises ValueError for an
    unsupported model, or files or a folder that do not fit. After an interruption the
    same call imports.
    """
    paths = files.checkpoints()
    recorded_problem = files.recorded_problem()
    # of the newest: at step 0 the optimizer state is still empty
    variables = read_variables(paths[-1])
    theirs = read_record(
        files.hparams_path(), dict[str, Any], "Copy it again.", unversioned=True
    )
    hparams, notes = convert_hparams(theirs)
    entries = _vocabulary_entries(files, embedding_sizes(variables))
    sizes = entries[0].size, entries[-1].size
    if hparams.shared_embedding_and_softmax_weights and sizes[0] != sizes[1]:
        hparams = dataclasses.replace(
            hparams, shared_embedding_and_softmax_weights=False
        )
    target_space = _target_space(hparams, variables, files.target_space, notes)
    problem = files.problem or recorded_problem
    if not re.match(NAME, problem):
        raise ValueError(
            "A problem's name has letters, digits, '_', '.' and '-' alone. Received:"
            f" {problem!r}. Name it with --problem."
        )
    _check_folder(folder)
    for vocabulary, entry in zip(files.vocabularies, entries, strict=True):
        copy = folder.path / entry.file
        others = [path for path in files.vocabularies if path != vocabulary]
        check_not_overwritten(
            [(f"{copy}", copy)], [(f"--t2t_vocab={path}", path) for path in others]
        )

    model = Transformer.from_hparams(hparams, *sizes)
    with (
        only_process(folder.path, "import into a run"),
        writing("The checkpoints", folder),
    ):
        remove_unfinished(folder.path)
        # checkpoints appear when all are read and checked
        with saving_folder(folder.path) as saving:
            newest_first = progress_bar(
                paths[::-1], desc="importing", unit=" checkpoints"
            )
            for path in newest_first:
                if path != paths[-1]:
                    variables = read_variables(path)
                load_variables(model, variables, target_space or 0)
                write_weights(model, saving, step_of(path))
            manifest = _manifest(problem, entries, files.trained_in(), target_space)
            folder.create(hparams, manifest, files.vocabularies)
            folder.write_flags(command)
    return Imported(folder.checkpoints(), model.count_params(), target_space, notes)


def _vocabulary_entries(
    files: T2TFiles, wanted: Sequence[int]
) -> list[VocabularyEntry]:
    """The vocabularies under their names in a run: the files of older versions have
    other endings.

    Raises ValueError unless they have the sizes of a checkpoint's embeddings, `wanted`.
    """
    names = VOCABULARY_NAMES[len(files.vocabularies)]
    entries = list(map(VocabularyEntry.of, files.vocabularies, names))
    if {entry.size for entry in entries} != set(wanted):
        sizes = " and ".join(f"{size:,}" for size in wanted)
        received = []
        for path, entry in zip(files.vocabularies, entries, strict=True):
            received.append(f"{path} with {entry.size:,}")
        raise ValueError(
            "The vocabularies must be those of the checkpoint, whose embeddings are"
            f" for {sizes or 'no'} subtokens. Received: {' and '.join(received)}. Give"
            " --t2t_vocab the model's."
        )
    return entries


def _target_space(
    hparams: HParams, variables: Variables, wanted: int | None, notes: list[str]
) -> int | None:
    """The row of the target space embedding, or None if the model has none; may add to
    `notes`.
    """
    if not hparams.use_target_space_embedding:
        if wanted is not None:
            raise ValueError(
                "--target_space_id is for models with use_target_space_embedding=true."
                " Leave it out."
            )
        return None
    trained = trained_target_space(variables)
    if wanted is None and trained is None:
        notes.append(
            "The checkpoint does not show which row of its target space embedding was"
            " trained. Row 0 is used, as in nearly all problems; if yours set"
            " target_space_id, give --target_space_id."
        )
    return wanted if wanted is not None else trained or 0


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


def _check_folder(folder: RunFolder) -> None:
    """Raises ValueError if the folder has a model already, other than one that an
    interrupted import has left without checkpoints.
    """
    folder.check_path()
    has_model = bool(folder.checkpoints())
    if folder.exists() and not has_model:
        of_import = folder.has_manifest() and folder.manifest().imported_from
        has_model = not of_import
    if has_model:
        raise ValueError(
            f"--output_dir must be a new folder. Received: {folder}, which has a model."
            " Use another."
        )
