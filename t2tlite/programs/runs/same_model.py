"""Whether vocabularies, a checkpoint, a run and its data belong together: by content,
since things of the same size and shape can differ.
"""

from __future__ import annotations

import contextlib

from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import TrainedWith


def check_shared_embeddings(
    hparams: HParams, dataset: Dataset, warm_start_from: str | None = None
) -> None:
    """Raises ValueError if source and target would share embeddings, but have different
    vocabularies, also if these are of the same size.

    A run of tensor2tensor's may share them nevertheless: a run that starts from its
    weights continues to.
    """
    manifest = dataset.manifest
    if not hparams.shared_embedding_and_softmax_weights or manifest.has_one_vocabulary:
        return
    if warm_start_from:
        with contextlib.suppress(FileNotFoundError):
            if run_of(warm_start_from).hparams().shared_embedding_and_softmax_weights:
                return
    source, target = (
        f"{dataset.folder / entry.file} of {entry.size:,} pieces"
        for entry in manifest.vocabularies
    )
    raise ValueError(
        "Shared embeddings need one vocabulary for source and target, since an id is"
        f" one row of them. Received: {source}, and {target}, whose contents differ."
        " Set shared_embedding_and_softmax_weights=false with --hparams, or make data"
        " with one vocabulary."
    )


def check_same_model(folder: RunFolder, checkpoint: str) -> None:
    """Raises ValueError for a checkpoint of another run whose vocabulary or model
    differs, also if its weights are of the same shapes.
    """
    other = run_of(checkpoint)
    if other.path.resolve() == folder.path.resolve() or not other.exists():
        return
    reason = ""
    ours = folder.manifest().vocabulary_sha256
    if other.has_manifest() and other.manifest().vocabulary_sha256 != ours:
        reason = "has another vocabulary"
    changes = other.hparams().diff(folder.hparams())
    changed = [
        f"{name}={changes[name][0]} instead of {changes[name][1]}"
        for name in MODEL_FIELDS
        if name in changes
    ]
    if changed:
        reason = f"has {', '.join(changed)}"
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
    changes = hparams.diff(run.hparams())
    changed = []
    for name in MODEL_FIELDS:
        if name in changes:
            new, old = changes[name]
            changed.append(f"{name} {old} -> {new}")
    if changed:
        say(
            f"The weights of {checkpoint} were trained in another model:"
            f" {', '.join(changed)}."
        )


def report_unused_start(
    given: str | None, trained_with: TrainedWith, folder: RunFolder
) -> None:
    """Reports that a run resumes, and not from the run `given` for a warm start, unless
    it started from that.
    """
    if given is None:
        return
    started_from = trained_with.warm_start_from
    if started_from:
        with contextlib.suppress(FileNotFoundError):
            paths = [run_of(path).path.resolve() for path in (given, started_from)]
            if paths[0] == paths[1]:
                return
        if str(given) == started_from:
            return
    say(
        f"--warm_start_from={given} is not used: {folder} resumes, and started from"
        f" {started_from or 'random weights'}. To start from {given}, use another"
        " --output_dir."
    )


def report_other_dev_sets(folder: RunFolder, dataset: Dataset) -> None:
    """Reports dev sets after the first whose pairs are not those of before: they decide
    nothing, and so may change.
    """
    before = folder.manifest().splits
    changed = []
    for split, name in dataset.manifest.dev_sets.items():
        now = dataset.manifest.splits[split].shards
        if split != "dev" and (split not in before or before[split].shards != now):
            changed.append(name)
    if changed:
        say(f"Other pairs than before, from here on: {', '.join(changed)}.")
