"""Imports tensor2tensor checkpoints into a run folder, which changes when all are read
and checked.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import t2tlite
from t2tlite.console import progress_bar, say
from t2tlite.data.manifest import ImportedFrom, RunManifest
from t2tlite.files import checkpoint_paths, own_files, records, same_file
from t2tlite.files.text_files import check_file
from t2tlite.programs.tensor2tensor.hparams import convert_hparams
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import TranslationTask
from t2tlite.trees.linearise import T2T
from t2tlite.vocabularies.encoders import VocabularyEntry

# in a run
VOCABULARY_NAMES = {
    1: ["vocab.subwords"],
    2: ["vocab.source.subwords", "vocab.target.subwords"],
}
# The defaults of tensor2tensor's decoder: at most 100 tokens more than the longest
# source of a batch.
DECODE_DEFAULTS = {"beam_size": 4, "alpha": 0.6, "extra_length": 100, "t2t_rules": True}
# Problem -> task and options, unless it is translation. tensor2tensor's only problem
# whose targets are trees:
TASKS = {"wsj_parsing": (ParsingTask.name, {"linearisation": T2T.name})}


@dataclasses.dataclass(frozen=True)
class T2TFiles:
    """The files of a model that tensor2tensor trained."""

    checkpoints: list[str]  # oldest first
    hparams: Path
    vocabularies: Sequence[Path]  # the .subwords file, or the source's and the target's
    problem: str

    @classmethod
    def find(
        cls,
        checkpoint: str,
        vocabularies: Sequence[str],
        hparams: str | None = None,
        problem: str | None = None,
    ) -> "T2TFiles":
        """Looks for what is not named.

        `checkpoint` is model.ckpt-N, or a folder, all of whose checkpoints are
        imported. `hparams` is by default hparams.json beside it or in the folder above,
        and `problem` the one in flags_t2t.txt there; otherwise "imported". Raises
        ValueError for a number of vocabularies that no model has, and FileNotFoundError
        if a file is missing.
        """
        if len(vocabularies) not in VOCABULARY_NAMES:
            count = len(vocabularies)
            raise ValueError(f"--t2t_vocab must be one file or two. Received: {count}.")
        given = Path(checkpoint).absolute()
        checkpoints = checkpoint_paths.list_checkpoints(given)
        if not checkpoints:
            prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(given))
            checkpoints = [checkpoint_paths.checkpoint_at(prefix)]
        folder = Path(checkpoints[0]).parent
        name = "hparams.json"
        path = check_file(hparams or _find(name, folder) or folder / name)
        paths = [check_file(file) for file in vocabularies]
        if not problem:
            problem = _recorded_problem(folder, path.parent)
        if not re.match(records.NAME, problem):
            raise ValueError(
                "--problem must have letters, digits, '_', '.' and '-' alone. Received:"
                f" {problem!r}."
            )
        return cls(checkpoints, path, paths, problem)


def _find(name: str, *folders: Path) -> Path | None:
    """A file in one of the folders or, since averages have their own folders, in the
    one above.
    """
    for folder in folders:
        for path in (folder / name, folder.parent / name):
            if path.is_file():
                return path
    return None


def _recorded_problem(*folders: Path) -> str:
    """The problem that tensor2tensor's trainer recorded; otherwise "imported"."""
    path = _find("flags_t2t.txt", *folders)
    text = path.read_text(encoding="utf-8", errors="replace") if path else ""
    match = re.search(r"^\s*--problem=(.*?)\s*$", text, re.MULTILINE)
    return match[1] if match else "imported"


def import_run(
    files: T2TFiles,
    folder: RunFolder,
    command: Sequence[str],
    target_space: int | None = None,
) -> str:
    """Imports checkpoints of tensor2tensor's model `transformer` into a new run.

    `command`, the command line, is recorded in flags.txt. `target_space` is the row of
    the target space embedding, by default the one trained, or 0. Returns what was
    imported, after saying what differs in training. Raises ValueError for an
    unsupported model, or files or a folder that do not fit. After an interruption the
    same call imports.
    """
    # these load TensorFlow
    from t2tlite.models.transformer import Transformer
    from t2tlite.programs.tensor2tensor import variables
    from t2tlite.training.checkpoints import write_weights, writing

    paths = files.checkpoints
    # of the newest: at step 0 the optimizer state is still empty
    values = variables.read_variables(paths[-1])
    theirs = records.read_record(
        files.hparams, dict[str, Any], "Copy it again.", unversioned=True
    )
    hparams, notes = convert_hparams(theirs)
    entries = _vocabulary_entries(files.vocabularies, variables.embedding_sizes(values))
    sizes = entries[0].size, entries[-1].size
    if hparams.shared_embedding_and_softmax_weights and sizes[0] != sizes[1]:
        hparams = dataclasses.replace(
            hparams, shared_embedding_and_softmax_weights=False
        )
    if hparams.use_target_space_embedding:
        if target_space is None:
            target_space = variables.trained_target_space(values)
    elif target_space is not None:
        raise ValueError(
            "--target_space_id is for models with use_target_space_embedding=true."
        )
    _check_folder(folder)
    named = [(f"--t2t_vocab={path}", path) for path in files.vocabularies]
    for vocabulary, entry in zip(named, entries, strict=True):
        copy = folder.path / entry.file
        others = [other for other in named if other != vocabulary]
        same_file.check_not_overwritten([(str(copy), copy)], others)

    task, task_options = TASKS.get(files.problem, (TranslationTask.name, {}))
    trained_in = str(Path(paths[0]).parent)
    manifest = RunManifest(
        problem=files.problem,
        task=task,
        t2tlite=t2tlite.__version__,
        options=task_options,
        decode_defaults=DECODE_DEFAULTS,
        vocabulary=entries[0],
        target_vocabulary=entries[1] if len(entries) == 2 else None,
        splits={},
        reverse=False,
        data_dir="",
        imported_from=ImportedFrom("tensor2tensor", trained_in),
        target_space=target_space,
    )
    model = Transformer.from_hparams(hparams, *sizes)
    with (
        own_files.only_process(folder.path, "import into a run"),
        writing("The checkpoints", folder),
    ):
        checkpoint_paths.remove_unfinished(folder.path)
        # checkpoints appear when all are read and checked
        with checkpoint_paths.saving_folder(folder.path) as saving:
            newest_first = progress_bar(
                paths[::-1], desc="importing", unit=" checkpoints"
            )
            for path in newest_first:
                if path != paths[-1]:
                    values = variables.read_variables(path)
                variables.load_variables(model, values, target_space or 0)
                write_weights(model, saving, checkpoint_paths.step_of(path))
            folder.create(hparams, manifest, files.vocabularies)
            folder.write_flags(command)
    for note in notes:
        say(f"Note: {note}")
    names = ", ".join(Path(path).name for path in folder.checkpoints())
    space = "" if target_space is None else f", target space {target_space}"
    return (
        f"Imported {names}: {model.count_params():,} parameters{space}. The run is in"
        f" {folder}."
    )


def _vocabulary_entries(
    vocabularies: Sequence[Path], wanted: Sequence[int]
) -> list[VocabularyEntry]:
    """The vocabularies under their names in a run: the files of older versions have
    other endings.

    Raises ValueError unless they have the sizes of a checkpoint's embeddings, `wanted`.
    """
    entries = []
    received = []
    names = VOCABULARY_NAMES[len(vocabularies)]
    for path, name in zip(vocabularies, names, strict=True):
        entry = VocabularyEntry.of(path, name)
        entries.append(entry)
        received.append(f"{path} with {entry.size:,}")
    if {entry.size for entry in entries} != set(wanted):
        sizes = " and ".join(f"{size:,}" for size in wanted)
        raise ValueError(
            f"--t2t_vocab must be the model's, with {sizes or 'no'} subtokens."
            f" Received: {' and '.join(received)}."
        )
    return entries


def _check_folder(folder: RunFolder) -> None:
    """Raises ValueError if the folder has a model already, other than one that an
    interrupted import has left without checkpoints.
    """
    folder.check_path()
    is_begun = folder.has_manifest() and folder.manifest().imported_from
    if folder.checkpoints() or (folder.exists() and not is_begun):
        raise ValueError(
            f"--output_dir must be a new folder. Received: {folder}, which has a model."
        )
