"""A tensor2tensor checkpoint becomes a run directory.

Everything is read and checked before anything is written.
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
from t2tlite.data.manifest import FORMAT, ImportedFrom, RunManifest
from t2tlite.files.checkpoint_paths import CHECKPOINT_PREFIX, list_checkpoints, step_of
from t2tlite.models.transformer import Transformer, build_transformer
from t2tlite.runs.run_folder import RunFolder
from t2tlite.tensor2tensor.hparams import convert_hparams
from t2tlite.tensor2tensor.hparams import read_hparams as read_their_hparams
from t2tlite.tensor2tensor.variables import (
    SCOPE,
    TARGET_SPACES,
    embedding_sizes,
    load_variables,
    model_variables,
    trained_target_space,
)
from t2tlite.training.checkpoints import restore_weights, save_weights
from t2tlite.vocabularies.encoders import VocabularyEntry

# As its decoder does: beam 4, alpha 0.6, at most 100 tokens more than the longest source of a batch.
DECODE_DEFAULTS = {"beam_size": 4, "alpha": 0.6, "extra_length": 100, "t2t_rules": True}
HPARAMS_FILE = "hparams.json"  # as its trainer names it
VOCABULARY_NAMES = {1: ["vocab.subwords"], 2: ["vocab.source.subwords", "vocab.target.subwords"]}  # in a run directory


@dataclasses.dataclass(frozen=True)
class Given:
    """What an import is made of.

    Attributes:
        checkpoint: `model.ckpt-N`, or a folder, all of whose checkpoints are imported.
        vocabularies: the `.subwords` file, or the source's and the target's.
        hparams_file: the model's hparams.json; by default the one in the checkpoint's folder or the folder above.
        target_space: the row of the target space embedding; by default the one that training moved, or 0.
        problem: the name of the problem; by default as its flags_t2t.txt says. `wsj_parsing` makes a parser.
    """

    checkpoint: Path
    vocabularies: Sequence[Path]
    hparams_file: Path | None = None
    target_space: int | None = None
    problem: str | None = None


@dataclasses.dataclass(frozen=True)
class Imported:
    """What an import made."""

    checkpoints: list[str]  # in the run directory
    hparams: HParams
    parameters: int
    target_space: int | None  # the row of the target space embedding that was taken; None where there is none
    notes: list[str]  # what the user should know, a line each


def import_run(
    given: Given,
    folder: RunFolder,
    command: str = "",
    progress: Callable[[Sequence[str]], Iterable[str]] = iter,
) -> Imported:
    """Turns checkpoints of tensor2tensor's model `transformer` into a run directory, or adds them to one.

    Args:
        given: the checkpoints and what belongs to them.
        folder: the run directory.
        command: the command line, recorded in flags.txt.
        progress: given the checkpoints, yields them in turn, such as a tqdm bar.

    Raises:
        ValueError: the model is not supported, files do not fit each other, or `folder` holds another run.
        FileNotFoundError: a file is missing.
        OSError: the disk is full, for one. The same call again resumes.
    """
    if len(given.vocabularies) not in VOCABULARY_NAMES:
        raise ValueError(
            f"--t2t_vocab must be one file, or source's and target's. Received: {len(given.vocabularies)} files."
        )
    paths = _checkpoints(given.checkpoint.absolute())
    trained_in = Path(paths[0]).parent
    hparams_file = given.hparams_file or _hparams_file(trained_in)
    flags = _their_flags(trained_in, hparams_file.parent) | ({"problem": given.problem} if given.problem else {})
    if flags.get("model", "transformer") != "transformer":
        raise ValueError(f"model must be transformer. Received: model={flags['model']} in its flags_t2t.txt.")
    variables = _read(paths[-1])  # the newest, since at step 0 the optimizer remembers nothing yet
    hparams, notes = convert_hparams(read_their_hparams(hparams_file))
    # older versions' files have names of other endings
    names = VOCABULARY_NAMES[len(given.vocabularies)]
    entries = [VocabularyEntry.of(path, name) for path, name in zip(given.vocabularies, names, strict=True)]
    sizes = [entries[0].size, entries[-1].size]
    _check_vocabularies(given.vocabularies, sizes, embedding_sizes(variables))
    if hparams.shared_embedding_and_softmax_weights and sizes[0] != sizes[1]:
        hparams = dataclasses.replace(hparams, shared_embedding_and_softmax_weights=False)
        notes = [*notes, "The vocabularies are of different sizes, so tensor2tensor did not share embeddings either."]
    target_space, more_notes = _target_space(hparams, variables, given.target_space)
    manifest = _manifest(flags.get("problem", "imported"), entries, trained_in, target_space)
    _check_folder(folder, hparams, manifest)

    model = build_transformer(hparams, *sizes)
    for path in paths:
        load_variables(model, _read(path), target_space or 0)
        _check_checkpoint(folder, model, step_of(path))
    folder.create(hparams, manifest, given.vocabularies)
    folder.write_flags(command)
    made = []
    for path in progress(paths):
        load_variables(model, _read(path), target_space or 0)
        made.append(_save(model, folder, step_of(path)))
    return Imported(made, hparams, model.count_params(), target_space, [*notes, *more_notes])


def _checkpoints(given: Path) -> list[str]:
    """The checkpoints meant, oldest first."""
    if given.is_dir():
        if found := list_checkpoints(given):
            return found
        raise FileNotFoundError(
            f"--t2t_checkpoint must be a folder with checkpoints model.ckpt-N, or one of these. Received: {given}, "
            "which has no model.ckpt-N.index."
        )
    prefix = re.sub(r"\.(index|meta|data-\d+-of-\d+)$", "", str(given))
    if not Path(f"{prefix}.index").is_file():
        near = ", ".join(Path(path).name for path in list_checkpoints(given.parent))
        raise FileNotFoundError(
            f"--t2t_checkpoint must be a folder with checkpoints model.ckpt-N, or one of these. Received: {given}; "
            f"there is no {prefix}.index." + (f" Its folder has {near}." if near else "")
        )
    return [prefix]


def _read(path: str) -> dict[str, np.ndarray]:
    """The model's variables by name, and what the optimizer remembers of the target space embedding.

    Raises:
        ValueError: the checkpoint is damaged, or of another model.
    """
    try:
        reader = tf.train.load_checkpoint(path)
        names = reader.get_variable_to_shape_map()
        wanted = [*model_variables(names), *(name for name in names if name.endswith(f"{TARGET_SPACES}/Adam_1"))]
        if not any(name.startswith(f"{SCOPE}body/") for name in wanted):
            scopes = sorted({name.split("/")[0] for name in wanted})
            raise ValueError(
                f"The checkpoint must be of tensor2tensor's model transformer. Received: {path}, with variables of "
                f"{', '.join(scopes) or 'no model'}."
            )
        return {name: reader.get_tensor(name) for name in wanted}
    except (tf.errors.OpError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"A whole checkpoint is required. Received: {path}, which cannot be read: {_reason(error)}. Copy it again, "
            "all its files."
        ) from error


def _reason(error: Exception) -> str:
    """TensorFlow's message, without what it says of its own operations."""
    line = str(error).strip().split("\n")[0]
    return re.sub(r"^\{\{.*?\}\} ?| ?\[Op:\w+\]$", "", line).rstrip(".")


def _their_flags(*folders: Path) -> dict[str, str]:
    """The flags that its trainer noted in one of the folders, or above it; none where there is no flags_t2t.txt."""
    path = next(filter(None, (_beside(folder, "flags_t2t.txt") for folder in folders)), None)
    if path is None:
        return {}
    lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
    found = (re.match(r"--(\w+)=(.*)$", line.strip()) for line in lines)
    return {match[1]: match[2] for match in found if match}


def _beside(folder: Path, name: str) -> Path | None:
    """A file in the folder of a checkpoint or, since averages lie in folders of their own, in the one above."""
    return next((where / name for where in (folder, folder.parent) if (where / name).is_file()), None)


def _hparams_file(folder: Path) -> Path:
    if path := _beside(folder, HPARAMS_FILE):
        return path
    raise FileNotFoundError(
        f"The model's {HPARAMS_FILE} is required. Received: none in {folder} nor above it. Name it with --t2t_hparams: "
        "t2t-trainer wrote it into its --output_dir."
    )


def _check_vocabularies(paths: Sequence[Path], sizes: Sequence[int], embeddings: Sequence[int]) -> None:
    if set(sizes) != set(embeddings):
        given = " and ".join(f"{path} with {size:,}" for path, size in zip(paths, sizes, strict=False))
        raise ValueError(
            f"The vocabularies must be those of the checkpoint, whose embeddings are for "
            f"{' and '.join(f'{size:,}' for size in embeddings) or 'no'} subtokens. Received: {given}. Give "
            "--t2t_vocab the file or the two files (source,target) that the model was trained with."
        )


def _target_space(
    hparams: HParams, variables: dict[str, np.ndarray], wanted: int | None
) -> tuple[int | None, list[str]]:
    """The row of the target space embedding, None where the model has none, and what to tell of it."""
    if not hparams.use_target_space_embedding:
        if wanted is not None:
            raise ValueError(
                "--target_space_id is for models with use_target_space_embedding=true. Received: --target_space_id="
                f"{wanted}, and hparams with false. Leave it out."
            )
        return None, []
    trained = trained_target_space(variables)
    if wanted is None:
        if trained is not None:
            return trained, []
        return 0, [
            "The checkpoint does not tell which row of its target space embedding it was trained with. Row 0 is taken, "
            "that of nearly all problems; if yours set target_space_id, give --target_space_id."
        ]
    if trained is not None and wanted != trained:
        return wanted, [f"Training moved row {trained} of the target space embedding; row {wanted} is taken as asked."]
    return wanted, []


def _manifest(
    problem: str, entries: Sequence[VocabularyEntry], trained_in: Path, target_space: int | None
) -> RunManifest:
    parsing = problem == "wsj_parsing"  # its only problem whose targets are trees
    return RunManifest(
        format=FORMAT,
        problem=problem,
        task="parsing" if parsing else "translation",
        t2tlite=t2tlite.__version__,
        options={"linearisation": "t2t"} if parsing else {},
        decode_defaults=dict(DECODE_DEFAULTS),
        vocabulary=entries[0],
        target_vocabulary=entries[1] if len(entries) == 2 else None,
        splits={},
        reverse=False,
        data_dir="",
        imported_from=ImportedFrom("tensor2tensor", str(trained_in)),
        target_space=target_space,
    )


def _check_folder(folder: RunFolder, hparams: HParams, manifest: RunManifest) -> None:
    """A run directory that is there must be of the same imported model, to which checkpoints are added."""
    folder.check_path()
    if not folder.has_manifest() and not folder.exists() and not folder.checkpoints():
        return
    what = "files of another program"  # such as tensor2tensor's own
    if folder.has_manifest():
        before = folder.manifest()
        if before.imported_from is not None:
            ignored = ("imported_from", "t2tlite")
            fields = [field.name for field in dataclasses.fields(manifest) if field.name not in ignored]
            others = [name for name in fields if getattr(before, name) != getattr(manifest, name)]
            others += [name for name in hparams.diff(folder.hparams()) if name in MODEL_FIELDS]
            if not others:
                return
            what = f"another model, which differs in {', '.join(others)}"
        else:
            what = "a run that was not imported"
    raise ValueError(
        f"--output_dir must be a new folder, or hold checkpoints imported from the same model. Received: {folder}, "
        f"which holds {what}. Use another --output_dir."
    )


def _check_checkpoint(folder: RunFolder, model: Transformer, step: int) -> None:
    """A checkpoint of this step that is there, from an earlier import, must have the model's weights."""
    path = str(folder.path / f"{CHECKPOINT_PREFIX}-{step}")
    if path not in folder.checkpoints():
        return
    weights = model.get_weights()
    restore_weights(model, path)
    if not all(map(np.array_equal, weights, model.get_weights())):
        raise ValueError(
            f"A run has one checkpoint of a step. Received: {folder}, whose {CHECKPOINT_PREFIX}-{step} has other "
            f"weights. Use another --output_dir, or delete {path}.* first."
        )


def _save(model: Transformer, folder: RunFolder, step: int) -> str:
    try:
        return save_weights(model, folder.path, step)
    except tf.errors.OpError as error:
        raise OSError(
            f"{CHECKPOINT_PREFIX}-{step} must fit on the disk of {folder}. Received: {_reason(error)}. Free some space "
            "and run the same command again: it resumes."
        ) from error
