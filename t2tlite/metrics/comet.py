"""COMET (Rei et al., 2020): a trained model's opinion of translations, given source and
reference. The package `unbabel-comet` computes it, if it is installed.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature

PACKAGE = "unbabel-comet"
BATCH_SIZE = 16  # sentences


class CometSignature(Signature):
    """nrefs:1|model:Unbabel/wmt22-comet-da|version:2.2.4"""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.update("model", args["model_name"])
        self.update("version", importlib.metadata.version(PACKAGE))


class Comet(Metric):
    """The mean score of the sentences, times 100, in the form of sacrebleu's metrics.

    Args:
        model_name: of Hugging Face, or the path of a .ckpt file.
        sources: the source of each sentence.

    Raises ValueError if the package is not installed; scoring raises it if there are no
    sources, several references, or the model cannot be loaded.
    """

    _SIGNATURE_TYPE = CometSignature

    def __init__(self, model_name: str, sources: Sequence[str] | None = None) -> None:
        super().__init__()
        self.model_name = model_name
        self.num_refs = 1
        self._sources = sources
        try:
            importlib.metadata.version(PACKAGE)
        except importlib.metadata.PackageNotFoundError as error:
            raise ValueError(
                f"The metric comet needs the package {PACKAGE}. Install it: pip install"
                " 't2tlite[comet]'"
            ) from error

    @functools.cached_property
    def _model(self) -> Any:
        import comet

        name = self.model_name
        try:
            path = name if Path(name).is_file() else comet.download_model(name)
            return comet.load_from_checkpoint(path)
        except Exception as error:  # of many kinds, Exception itself among them
            raise ValueError(
                f"COMET's model {name} cannot be loaded: {error}. It is downloaded"
                " once; comet_model may also be the path of a .ckpt file."
            ) from error

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> list[list[float]]:
        """The score of each sentence, and 1, of which the corpus score is the
        quotient.
        """
        if self._sources is None or len(self._sources) != len(hypotheses):
            received = "none" if self._sources is None else len(self._sources)
            raise ValueError(
                "comet needs the source of each translation. Received:"
                f" {len(hypotheses)} translations, sources: {received}. Give"
                " --source."
            )
        if references is None or len(references) != 1:
            raise ValueError(
                "comet compares with one reference. Received:"
                f" {len(references or ())}. Leave the others out."
            )
        samples = []
        lines = zip(self._sources, hypotheses, references[0], strict=True)
        for source, translation, reference in lines:
            samples.append({"src": source, "mt": translation, "ref": reference})
        gpus = int(import_torch().cuda.is_available())
        prediction = self._model.predict(samples, batch_size=BATCH_SIZE, gpus=gpus)
        return [[float(score), 1.0] for score in prediction.scores]

    def _aggregate_and_compute(self, stats: Sequence[Sequence[float]]) -> Score:
        total = sum(score for score, _ in stats)
        return self._compute_score_from_stats([total, len(stats)])

    def _compute_score_from_stats(self, stats: Sequence[float]) -> Score:
        total, sentences = stats
        return Score("COMET", 100.0 * float(total) / float(sentences))

    # sacrebleu's steps for a sentence, which a model that reads batches has not

    def _preprocess_segment(self, sent: str) -> str:
        raise NotImplementedError

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        raise NotImplementedError

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> list[Any]:
        raise NotImplementedError


def import_torch() -> Any:
    """The package torch, which comet brings."""
    import torch

    return torch
