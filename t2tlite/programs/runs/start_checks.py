"""Checks that a run may start, or resume, with the given hparams and data. Each change
is refused or reported.
"""

from __future__ import annotations

import contextlib
import dataclasses
from pathlib import Path

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.data.splits import DEV
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import Identity, TrainedWith
from t2tlite.training.checkpoints import check_size
from t2tlite.training.cost import count_parameters

# what cannot change when a run resumes
FIXED = ("problem", "vocabulary", "pairs", "random_seed", "model", "mixed_float16")


def check_new(
    dataset: Dataset, hparams: HParams, warm_start_from: str | None
) -> str | None:
    """Returns the checkpoint that a new run starts from, or None.

    Raises ValueError if it has another vocabulary or is damaged, or if the model would
    share embeddings of two vocabularies. Reports hparams of the model that differ from
    those of its run.
    """
    _check_shared_embeddings(hparams, dataset, warm_start_from)
    if not warm_start_from:
        return None
    checkpoint = checkpoint_at(warm_start_from)
    _check_start(checkpoint, dataset, hparams)
    sizes = dataset.manifest.vocabulary_sizes
    check_size(checkpoint, count_parameters(hparams, sizes))
    return checkpoint


def check_resumed(
    folder: RunFolder,
    dataset: Dataset,
    hparams: HParams,
    new: TrainedWith,
    warm_start_from: str | None,
) -> TrainedWith:
    """Returns the record of a run that resumes: `new`, with the start of the old one.

    Raises ValueError for another model, problem, direction, vocabulary, seed or other
    pairs, and for an imported run, which has no optimizer state. Reports other hparams,
    another global batch, a `warm_start_from` that is not used, and dev sets that
    changed.
    """
    if folder.manifest().imported_from is not None:
        raise ValueError(
            "A run can be resumed only with the state of its optimizer. Received:"
            f" {folder}, imported without one. Use another --output_dir with"
            f" --warm_start_from={folder}."
        )
    old = folder.trained_with() or new
    then = dataclasses.replace(folder.identity(), random_seed=old.random_seed)
    now = Identity.of(dataset.manifest, hparams, new.random_seed)
    if difference := then.difference(now, *FIXED):
        is_vocabulary = difference.startswith("vocabulary")
        advice = _with_vocabulary_of(folder) if is_vocabulary else ""
        raise ValueError(
            "A run resumes with the model, data and seed that it has. Received:"
            f" {folder}, which differs in {difference}. Give the same as before, or"
            f" another --output_dir, with --warm_start_from={folder} to start from its"
            f" weights.{advice}"
        )
    _report_changes(folder, hparams, old, new)
    _report_unused_start(warm_start_from, old, folder)
    _report_other_dev_sets(folder, dataset)
    return dataclasses.replace(new, warm_start_from=old.warm_start_from)


def _report_changes(
    folder: RunFolder, hparams: HParams, old: TrainedWith, new: TrainedWith
) -> None:
    """Reports other hparams and another global batch."""
    changes = []
    for name, (now, then) in hparams.diff(folder.hparams()).items():
        changes.append(f"{name} {then} -> {now}")
    if changes:
        say(f"Changed hparams, from here on: {', '.join(changes)}.")
    if new.global_batch_tokens != old.global_batch_tokens:
        say(
            f"Changed global batch, from here on: {old.global_batch_tokens:,} ->"
            f" {new.global_batch_tokens:,} tokens ({old.replicas} -> {new.replicas}"
            f" replicas). --global_batch_tokens={old.global_batch_tokens} keeps it."
        )


def _check_start(checkpoint: str, dataset: Dataset, hparams: HParams) -> None:
    """Raises ValueError if the run of a checkpoint has another vocabulary than that of
    `dataset`, and reports other hparams of its model: the weights may fit, but mean
    something else.
    """
    run = run_of(checkpoint)
    if not run.has_manifest():
        say(
            f"The vocabulary of {checkpoint} is not known: {run} has no manifest. Its"
            f" embeddings must be of the vocabulary of {dataset.folder}."
        )
    if not run.exists():
        return
    then = run.identity()
    now = Identity.of(dataset.manifest, hparams)
    if difference := then.difference(now, "vocabulary"):
        raise ValueError(
            "--warm_start_from needs a run of the same vocabulary. Received:"
            f" {run}, which differs from {dataset.folder} in"
            f" {difference}.{_with_vocabulary_of(run)}"
        )
    if difference := then.difference(now, "model"):
        say(
            f"The weights of {checkpoint} were trained in another model, which differs"
            f" in {difference}."
        )


def _with_vocabulary_of(run: RunFolder) -> str:
    """A sentence on how to make data with the vocabulary of a run."""
    entries = run.manifest().vocabulary_entries()
    files = ",".join(str(run.path / entry.file) for entry in entries)
    return (
        f" Make data with the run's vocabulary, t2t-datagen --vocab_file={files}, in"
        " another --data_dir."
    )


def _check_shared_embeddings(
    hparams: HParams, dataset: Dataset, warm_start_from: str | None = None
) -> None:
    """Raises ValueError if source and target would share embeddings, but have different
    vocabularies, even of the same size.

    A run imported from tensor2tensor may share them nevertheless, and then so does a
    run that starts from its weights.
    """
    manifest = dataset.manifest
    if not hparams.shared_embedding_and_softmax_weights or manifest.has_one_vocabulary:
        return
    if warm_start_from:
        with contextlib.suppress(FileNotFoundError):
            if run_of(warm_start_from).hparams().shared_embedding_and_softmax_weights:
                return
    source, target = manifest.vocabularies
    raise ValueError(
        "Shared embeddings need one vocabulary for source and target. Received:"
        f" {dataset.folder / source.file} and {dataset.folder / target.file}, whose"
        " contents differ. Set shared_embedding_and_softmax_weights=false with"
        " --hparams, or make data with one vocabulary."
    )


def _report_unused_start(
    given: str | None, trained_with: TrainedWith, folder: RunFolder
) -> None:
    """Reports that a run resumes instead of starting from the run `given` for a warm
    start, unless it did start from that.
    """
    if given is None:
        return
    started_from = trained_with.warm_start_from
    if started_from and Path(started_from).is_relative_to(Path(given).expanduser()):
        return
    say(
        f"--warm_start_from={given} is not used: {folder} resumes, and started from"
        f" {started_from or 'random weights'}. To start from {given}, use another"
        " --output_dir."
    )


def _report_other_dev_sets(folder: RunFolder, dataset: Dataset) -> None:
    """Reports dev sets other than dev whose pairs have changed, which is allowed: they
    decide nothing.
    """
    before = folder.manifest().splits
    changed = []
    for split, name in dataset.manifest.dev_sets.items():
        if split == DEV:
            continue
        now = dataset.manifest.splits[split].shards
        if split not in before or before[split].shards != now:
            changed.append(name)
    if changed:
        say(f"Other pairs than before, from here on: {', '.join(changed)}.")
