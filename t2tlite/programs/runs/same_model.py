"""Whether vocabularies, a checkpoint, a run and its data belong together. Contents are
compared, since things of the same size and shape can differ.
"""

from __future__ import annotations

import contextlib

from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.run_folder import RunFolder, run_of


def check_shared_embeddings(
    hparams: HParams, dataset: Dataset, warm_start_from: str | None = None
) -> None:
    """Raises ValueError if source and target would share embeddings, but have
    vocabularies of different content.

    A run of tensor2tensor's may share them nevertheless, and so may a run that starts
    from its weights.
    """
    manifest = dataset.manifest
    if not hparams.shared_embedding_and_softmax_weights or manifest.has_one_vocabulary:
        return
    if warm_start_from:
        with contextlib.suppress(FileNotFoundError):
            if run_of(warm_start_from).hparams().shared_embedding_and_softmax_weights:
                return
    files = []
    for entry in manifest.vocabularies:
        files.append(f"{dataset.folder / entry.file} of {entry.size:,} pieces")
    raise ValueError(
        "Shared embeddings need one vocabulary for source and target, since an id is"
        f" one row of them. Received: {', and '.join(files)}, whose contents differ."
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
    changes = other.hparams().diff(folder.hparams())
    changed = []
    for name in MODEL_FIELDS:
        if name in changes:
            value, expected = changes[name]
            changed.append(f"{name}={value} instead of {expected}")
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


def warm_start_checkpoint(path: str, dataset: Dataset) -> str:
    """Returns the checkpoint at `path`. Raises ValueError if its run was trained with a
    different vocabulary than that of `dataset`.
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
            f" vocabulary, {making_data_with_vocabulary_of(run)}, in another"
            " --data_dir."
        )
    return checkpoint


def making_data_with_vocabulary_of(run: RunFolder) -> str:
    """The command, without --data_dir, that makes data with the vocabulary of a run."""
    entries = run.manifest().vocabulary_entries()
    files = [str(run.path / entry.file) for entry in entries]
    return f"t2t-datagen --vocab_file={','.join(files)}"
