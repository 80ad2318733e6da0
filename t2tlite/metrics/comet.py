"""COMET (Rei et al., 2020): a trained model's opinion of translations, given source and
reference. The package `unbabel-comet` computes it, if it is installed.
"""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from t2tlite.metrics.sequence_metrics import Counts, ShareMetric


class Comet(ShareMetric):
    """The mean score of the sentences, times 100.

    Args:
        model: its name on Hugging Face, or the path of a .ckpt file.
        sources: the source of each sentence.

    Raises ValueError if the package is not installed; scoring raises it if there are no
    sources, several references, or the model cannot be loaded.
    """

    name = "COMET"

    def __init__(self, model: str, sources: Sequence[str] | None = None) -> None:
        super().__init__()
        self._sources = sources
        self.num_refs = 1  # for the signature
        try:
            version = importlib.metadata.version("unbabel-comet")
        except importlib.metadata.PackageNotFoundError as error:
            raise ValueError(
                "The metric comet needs a package that is not installed. Install it:"
                " pip install 't2tlite[comet]'"
            ) from error
        self.settings = {"model": model, "version": version}

    @functools.cached_property
    def _model(self) -> Any:
        import comet

        model = self.settings["model"]
        try:
            path = model if Path(model).is_file() else comet.download_model(model)
            return comet.load_from_checkpoint(path)
        except Exception as error:  # comet raises Exception itself
            raise ValueError(
                f"comet_model must be a model that can be downloaded, or a .ckpt file."
                f" Received: {model}: {error}."
            ) from error

    def _extract_corpus_statistics(
        self, hypotheses: Sequence[str], references: Sequence[Sequence[str]] | None
    ) -> list[Counts]:
        if self._sources is None or references is None or len(references) != 1:
            raise ValueError(
                "comet needs one source and one reference for each translation."
                f" Received: {'no ' if self._sources is None else ''}sources,"
                f" {len(references or ())} references. Give --source once, and"
                " --reference once."
            )
        samples = []
        lines = zip(self._sources, hypotheses, references[0], strict=True)
        for source, translation, reference in lines:
            samples.append({"src": source, "mt": translation, "ref": reference})
        import torch  # comet needs it

        gpus = int(torch.cuda.is_available())
        scores = self._model.predict(samples, batch_size=16, gpus=gpus).scores
        return [[float(score), 1] for score in scores]
