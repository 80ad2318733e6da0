"""Checks that vocabularies, a checkpoint, a run and its data belong together, by their
content: the same size and shape are not enough.
"""

from __future__ import annotations

import contextlib

from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.data.splits import DEV
from t2tlite.run_folder import RunFolder, TrainedWith, run_of


def check_shared_embeddings(
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
        "Shared embeddings need one vocabulary for source and target, since an id is"
        f" one row of them. Received: {dataset.folder / source.file} of"
        f" {source.size:,} pieces, and {dataset.folder / target.file} of"
        f" {target.size:,} pieces, whose contents differ."
        " Set shared_embedding_and_softmax_weights=false with --hparams, or make data"
        " with one vocabulary."
    )


def check_same_model(folder: RunFolder, checkpoint: str) -> None:
    """Raises ValueError for a checkpoint of another run whose vocabulary or model
    differs, even if its weights have the same shapes.
    """
    other = run_of(checkpoint)
    if other.path.resolve() == folder.path.resolve() or not other.exists():
        return
    reason = ""
    ours = folder.manifest().vocabulary_sha256
    if other.has_manifest() and other.manifest().vocabulary_sha256 != ours:
        reason = "has another vocabulary"
    changes = _model_changes(other.hparams(), folder.hparams())
    if changes:
        shown = [f"{name}={new} instead of {old}" for name, new, old in changes]
        reason = f"has {', '.join(shown)}"
    if reason:
        raise ValueError(
            f"checkpoint_path must be a checkpoint of the same model. Received:"
            f" {checkpoint}, whose run {reason}; the run here is {folder}. Name the"
            " run of that checkpoint."
        )


def report_other_model(checkpoint: str, hparams: HParams) -> None:
    """Reports hparams of the model that differ from those of the run to start from: its
    weights may fit, but mean something else.
    """
    run = run_of(checkpoint)
    if not run.exists():
        return
    changes = _model_changes(hparams, run.hparams())
    if changes:
        shown = [f"{name} {old} -> {new}" for name, new, old in changes]
        say(
            f"The weights of {checkpoint} were trained in another model:"
            f" {', '.join(shown)}."
        )


def _model_changes(new: HParams, old: HParams) -> list[tuple[str, object, object]]:
    """Name, new and old value of each hparam of the model that differs."""
    changes = new.diff(old)
    return [(name, *changes[name]) for name in MODEL_FIELDS if name in changes]


def report_unused_start(
    given: str | None, trained_with: TrainedWith, folder: RunFolder
) -> None:
    """Reports that a run resumes instead of starting from the run `given` for a warm
    start, unless it did start from that.
    """
    if given is None:
        return
    started_from = trained_with.warm_start_from
    if started_from:
        if str(given) == started_from:
            return
        with contextlib.suppress(FileNotFoundError):
            first = run_of(started_from)
            if run_of(given).path.resolve() == first.path.resolve():
                return
    say(
        f"--warm_start_from={given} is not used: {folder} resumes, and started from"
        f" {started_from or 'random weights'}. To start from {given}, use another"
        " --output_dir."
    )


def report_other_dev_sets(folder: RunFolder, dataset: Dataset) -> None:
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
