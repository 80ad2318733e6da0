"""Several runs that decode together, as an ensemble: which may, and the translator that
they make.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.programs.export.verification import keras_model
from t2tlite.programs.runs.translator import SentencePair, Translator
from t2tlite.run_folder import RunFolder


class EnsembleTranslator(Translator):
    """The models of several runs, which decode as one (`models/ensemble.py`).

    Vocabularies, task and decoding defaults are those of the first run. An ensemble
    cannot be exported, and has no attention to show.

    Args:
        members: the loaded runs, at least two, for which `check_ensemble` raised
            nothing.
        jit_compile: whether XLA compiles the search.
    """

    def __init__(self, members: Sequence[Translator], jit_compile: bool) -> None:
        from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
        from t2tlite.models.ensemble import Ensemble

        first = members[0]
        ensemble = Ensemble([keras_model(member) for member in members])
        labels = "; ".join(member.label for member in members)
        super().__init__(
            TensorFlowEngine(ensemble, jit_compile),
            first.encoders,
            first.manifest,
            first.checkpoint,
            f"ensemble of {len(members)}: {labels}",
        )
        self.run = ",".join(member.run for member in members)
        self._checkpoints = [member.checkpoint for member in members]

    @property
    def checkpoints(self) -> list[str]:
        return self._checkpoints

    def sentence_pair(self, source: str, target: str | None = None) -> SentencePair:
        """Raises ValueError: the heads of several models are not one picture."""
        raise ValueError(
            "Attention is shown of one run. Received: an ensemble of"
            f" {len(self._checkpoints)}. Load one of its runs."
        )


def check_ensemble(
    folders: Sequence[RunFolder],
    checkpoint_path: str | Path | int | None = None,
    engine: str = TENSORFLOW,
) -> None:
    """Raises ValueError if these runs cannot decode as one: they are of different
    problems or vocabularies, a checkpoint is named that only one of them has, or
    another engine than TensorFlow is to decode. Raises FileNotFoundError if there is no
    such run.
    """
    if engine != TENSORFLOW:
        raise ValueError(
            f"An ensemble decodes with engine={TENSORFLOW}. Received: engine={engine},"
            f" and {len(folders)} runs. Leave the engine out, or name one run."
        )
    if os.sep in str(checkpoint_path or ""):
        raise ValueError(
            "The checkpoint of an ensemble must be newest, best, averaged or a step,"
            f" of each run. Received: the path {checkpoint_path}, and"
            f" {len(folders)} runs."
        )
    manifests = []
    for folder in folders:
        folder.hparams()  # raises if there is no run
        manifests.append(folder.manifest())
    for folder, manifest in zip(folders, manifests, strict=True):
        if _kind(manifest) != _kind(manifests[0]):
            raise ValueError(
                "The runs of an ensemble must be of one problem. Received:"
                f" {folders[0]} of {_kind(manifests[0])}, and {folder} of"
                f" {_kind(manifest)}. Leave one of them out."
            )
        if manifest.vocabulary_sha256 != manifests[0].vocabulary_sha256:
            entries = manifests[0].vocabulary_entries()
            files = ",".join(str(folders[0].path / entry.file) for entry in entries)
            raise ValueError(
                "The runs of an ensemble must have the same vocabulary, by content."
                f" Received: {folders[0]} and {folder}, whose vocabularies differ. To"
                " train such runs, make their data once, or with the first one's"
                f" vocabulary: t2t-datagen --vocab_file={files}."
            )


def _kind(manifest: RunManifest) -> str:
    """The problem of a run, with its languages if it names them."""
    languages = "-".join(filter(None, manifest.language_pair))
    return f"{manifest.name} ({languages})" if languages else manifest.name
