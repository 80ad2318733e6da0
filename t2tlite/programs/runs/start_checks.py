"""Checks that a run may start, or resume, with the given hparams and data. Each change
is refused or reported.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import Identity, TrainedWith
from t2tlite.training.checkpoints import check_size
from t2tlite.training.cost import count_parameters

# what cannot change when a run resumes
FIXED = ("problem", "vocabulary", "pairs", "random_seed", "model", "mixed_float16")


def warm_start_checkpoint(
    dataset: Dataset, hparams: HParams, warm_start_from: str | None
) -> str | None:
    """Returns the checkpoint that a new run starts from, or None.

    Raises ValueError if it has another vocabulary or is damaged, or if the model would
    share embeddings of two vocabularies. Reports hparams of the model that differ from
    those of its run.
    """
    if not warm_start_from:
        _check_shared_embeddings(hparams, dataset)
        return None
    checkpoint = checkpoint_at(warm_start_from)
    run = run_of(checkpoint)
    # weights of an imported run may share embeddings nevertheless
    if not (run.exists() and run.hparams().shared_embedding_and_softmax_weights):
        _check_shared_embeddings(hparams, dataset)
    then = run.identity() if run.exists() else Identity()
    now = Identity.of(dataset.manifest, hparams)
    if run.has_manifest():
        then.require_same(
            now,
            ["vocabulary"],
            "--warm_start_from needs a run of the same vocabulary.",
            f"{run} and {dataset.folder}, which differ",
            _vocabulary_advice(run),
        )
    else:
        say(
            f"The vocabulary of {checkpoint} is not known: {run} has no manifest. Its"
            f" embeddings must be of the vocabulary of {dataset.folder}."
        )
    if difference := then.difference(now, "model"):
        say(
            f"The weights of {checkpoint} were trained in another model, which differs"
            f" in {difference}."
        )
    sizes = dataset.manifest.vocabulary_sizes
    check_size(checkpoint, count_parameters(hparams, sizes))
    return checkpoint


def resumed_record(
    folder: RunFolder,
    dataset: Dataset,
    hparams: HParams,
    new: TrainedWith,
    warm_start_from: str | None,
) -> TrainedWith:
    """Returns the record of a run that resumes: `new`, with the start of the old one.

    Raises ValueError for another model, problem, direction, vocabulary, seed or other
    pairs, and for an imported run, which has no optimizer state. Reports other hparams,
    another global batch, and a `warm_start_from` that is not used.
    """
    if folder.manifest().imported_from is not None:
        raise ValueError(
            f"A run resumes with the state of its optimizer. Received: {folder},"
            " imported without one. Use another --output_dir with"
            f" --warm_start_from={folder}."
        )
    old = folder.trained_with() or new
    then = dataclasses.replace(folder.identity(), random_seed=old.random_seed)
    advice = (
        "Give the same as before, or another --output_dir, with"
        f" --warm_start_from={folder} to start from its weights."
    )
    now = Identity.of(dataset.manifest, hparams, new.random_seed)
    if then.difference(now, "vocabulary"):
        advice += f" {_vocabulary_advice(folder)}"
    required = "A run resumes with the model, data and seed that it has."
    then.require_same(now, FIXED, required, f"{folder}, which differs", advice)

    changes = []
    for name, (value, before) in hparams.diff(folder.hparams()).items():
        changes.append(f"{name} {before} -> {value}")
    if changes:
        say(f"Changed hparams, from here on: {', '.join(changes)}.")
    if new.global_batch_tokens != old.global_batch_tokens:
        say(
            f"Changed global batch, from here on: {old.global_batch_tokens:,} ->"
            f" {new.global_batch_tokens:,} tokens ({old.replicas} -> {new.replicas}"
            f" replicas). --global_batch_tokens={old.global_batch_tokens} keeps it."
        )
    start = old.warm_start_from
    if warm_start_from and not _is_at(start, warm_start_from):
        say(
            f"--warm_start_from={warm_start_from} is not used: {folder} resumes, and"
            f" started from {start or 'random weights'}."
        )
    return dataclasses.replace(new, warm_start_from=start)


def _is_at(checkpoint: str | None, path: str) -> bool:
    """Whether a checkpoint is the one, or in the folder, at a path."""
    if not checkpoint:
        return False
    return Path(checkpoint).is_relative_to(Path(path).expanduser())


def _vocabulary_advice(run: RunFolder) -> str:
    return (
        f"Make data with the run's vocabulary, t2t-datagen {run.vocabulary_flag()}, in"
        " another --data_dir."
    )


def _check_shared_embeddings(hparams: HParams, dataset: Dataset) -> None:
    """Raises ValueError if source and target would share embeddings, but have different
    vocabularies, even of the same size.
    """
    manifest = dataset.manifest
    if not hparams.shared_embedding_and_softmax_weights or manifest.has_one_vocabulary:
        return
    source, target = manifest.vocabularies
    raise ValueError(
        "Shared embeddings need one vocabulary for source and target. Received:"
        f" {dataset.folder / source.file} and {dataset.folder / target.file}, whose"
        " contents differ. Set shared_embedding_and_softmax_weights=false with"
        " --hparams, or make data with one vocabulary."
    )
