"""Checks that a run may start, or resume, with the given hparams and data. Each change
is refused or reported.
"""

from __future__ import annotations

import dataclasses

from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.data.manifest import RunManifest
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.programs.runs.same_model import (
    check_shared_embeddings,
    report_other_dev_sets,
    report_other_model,
    report_unused_start,
)
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import TrainedWith
from t2tlite.training.checkpoints import check_size
from t2tlite.training.cost import count_parameters


def check_new(
    dataset: Dataset, hparams: HParams, warm_start_from: str | None
) -> str | None:
    """Returns the checkpoint that a new run starts from, or None.

    Raises ValueError if it has another vocabulary or is damaged, or if the model would
    share embeddings of two vocabularies. Reports hparams of the model that differ from
    those of its run.
    """
    warm_start = None
    if warm_start_from:
        warm_start = _warm_start(warm_start_from, dataset)
    check_shared_embeddings(hparams, dataset, warm_start_from)
    if warm_start:
        report_other_model(warm_start, hparams)
        sizes = dataset.manifest.vocabulary_sizes
        check_size(warm_start, count_parameters(hparams, sizes))
    return warm_start


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
    _check_hparams(folder, hparams)
    _check_data(folder.manifest(), dataset, folder)
    old = folder.trained_with()
    if old is None:  # deleted: only the manifest identifies the data
        old = dataclasses.replace(new, data_sha256=folder.manifest().pairs_sha256)
    _check_trained_with(old, new, folder)
    report_unused_start(warm_start_from, old, folder)
    report_other_dev_sets(folder, dataset)
    return dataclasses.replace(new, warm_start_from=old.warm_start_from)


def _check_hparams(folder: RunFolder, hparams: HParams) -> None:
    """Raises ValueError if a run cannot resume with these hparams, and reports those
    that differ.
    """
    if folder.manifest().imported_from is not None:
        raise ValueError(
            "A run can be resumed only with the state of its optimizer. Received:"
            f" {folder}, imported without one. Use another --output_dir with"
            f" --warm_start_from={folder}."
        )
    before = folder.hparams()
    changes = hparams.diff(before)
    if not changes:
        return
    listed = ", ".join(f"{name} {old} -> {new}" for name, (new, old) in changes.items())
    fixed = [name for name in MODEL_FIELDS if name in changes]
    if hparams.max_positions != before.max_positions and "pos" not in changes:
        fixed.append("max_length")
    if "mixed_float16" in changes.get("dtype_policy", ()):
        fixed.append("dtype_policy")  # the optimizer has a loss scale only with float16
    if fixed:
        raise ValueError(
            f"{folder} holds a run of another model: {listed}. A run's"
            f" {', '.join(fixed)} cannot change. Use another --output_dir, or the run's"
            " own hparams."
        )
    say(f"Changed hparams, from here on: {listed}.")


def _check_data(old: RunManifest, dataset: Dataset, folder: RunFolder) -> None:
    """Raises ValueError for data of another problem, direction or vocabulary."""
    new = dataset.manifest
    if old.problem != new.problem:
        difference = f"another problem, {old.name}. Received: {new.name}."
    elif old.reverse != new.reverse:
        difference = f"the other direction, {old.name}. Received: {new.name}."
    elif old.vocabulary_sha256 != new.vocabulary_sha256:
        difference = (
            f"{old.name} with another vocabulary: {_vocabulary(old)}. Received:"
            f" {_vocabulary(new)}, in {dataset.folder}.{_changed_options(old, new)} To"
            " train the run further, make the data with its vocabulary:"
            f" {_with_vocabulary_of(folder)} with another --data_dir."
        )
    else:
        return
    raise ValueError(
        f"{folder} holds a run of {difference} Otherwise use another --output_dir."
    )


def _vocabulary(manifest: RunManifest) -> str:
    """Files, sizes and the start of the hashes of vocabularies."""
    shown = []
    for entry in manifest.vocabulary_entries():
        digest = f"SHA-256 {entry.sha256[:12]}..."
        shown.append(f"{entry.file} of {entry.size:,} pieces ({digest})")
    return " and ".join(shown)


def _changed_options(old: RunManifest, new: RunManifest) -> str:
    """A sentence on the options of the data that differ; empty if none do."""
    changes = []
    for name in sorted({*old.options, *new.options}):
        before = old.options.get(name)
        now = new.options.get(name)
        if before != now:
            changes.append(f"{name} was {before}, now {now}")
    return f" Options: {'; '.join(changes)}." if changes else ""


def _check_trained_with(old: TrainedWith, new: TrainedWith, folder: RunFolder) -> None:
    """Raises ValueError for another seed or other pairs, and reports another global
    batch.
    """
    if new.random_seed != old.random_seed:
        raise ValueError(
            f"A run's --random_seed cannot change: it is {old.random_seed} in {folder}."
            f" Received: {new.random_seed}. Leave the seed as it is, or use another"
            " --output_dir."
        )
    if new.data_sha256 != old.data_sha256:
        raise ValueError(
            f"A run's training and dev pairs cannot change. Received: {folder}, trained"
            " on other pairs of the same vocabulary. Name those with --data_dir, or"
            f" use another --output_dir with --warm_start_from={folder}."
        )
    if new.global_batch_tokens != old.global_batch_tokens:
        say(
            f"Changed global batch, from here on: {old.global_batch_tokens:,} ->"
            f" {new.global_batch_tokens:,} tokens ({old.replicas} -> {new.replicas}"
            f" replicas). --global_batch_tokens={old.global_batch_tokens} keeps it."
        )


def _warm_start(path: str, dataset: Dataset) -> str:
    """Returns the checkpoint at `path`. Raises ValueError if its run was trained with a
    vocabulary other than that of `dataset`.
    """
    checkpoint = checkpoint_at(path)
    run = run_of(path)
    if not run.has_manifest():
        say(
            f"The vocabulary of {checkpoint} is not known: {run} has no manifest. Its"
            f" embeddings must be of the vocabulary of {dataset.folder}."
        )
    elif run.manifest().vocabulary_sha256 != dataset.manifest.vocabulary_sha256:
        raise ValueError(
            "--warm_start_from needs a run of the same vocabulary: its embeddings are"
            f" of other tokens otherwise. Received: {run}, whose vocabulary is not that"
            f" of {dataset.name} in {dataset.folder}. Make the data with the run's"
            f" vocabulary, {_with_vocabulary_of(run)}, in another --data_dir."
        )
    return checkpoint


def _with_vocabulary_of(run: RunFolder) -> str:
    """The command, without --data_dir, that makes data with the vocabulary of a run."""
    entries = run.manifest().vocabulary_entries()
    files = [str(run.path / entry.file) for entry in entries]
    return f"t2t-datagen --vocab_file={','.join(files)}"
