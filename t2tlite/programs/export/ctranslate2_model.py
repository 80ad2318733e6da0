"""The format ctranslate2: the model directory that CTranslate2 loads, with our
vocabularies.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export.ctranslate2_engine import (
    FLOAT32,
    PATIENCE,
    QUANTIZATIONS,
    CTranslate2Engine,
    check_expressible,
    import_ctranslate2,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.programs.export.plan import ExportFormat, ExportPlan, Facts
from t2tlite.programs.export.verification import (
    DecodedInOneBatch,
    OpenedExport,
    check_equal,
    greedily,
    keras_model,
    opened_run,
)

ROUNDING = 1e-3  # CTranslate2 rounds matrix products differently


@dataclasses.dataclass(frozen=True)
class CTranslate2Format(ExportFormat):
    """Writes a model directory, with the weights quantised if asked for."""

    name = "ctranslate2"
    supported = CTranslate2Engine.supported
    quantization: str = FLOAT32

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        import_ctranslate2()
        if self.quantization not in QUANTIZATIONS:
            raise ValueError(
                f"quantization must be one of {', '.join(QUANTIZATIONS)}. Received:"
                f" {self.quantization!r}."
            )
        check_expressible(plan.run.hparams())

    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> Facts:
        keras = keras_model(model)
        weights = {}
        for variable in keras.trainable_variables:
            weights[variable.path] = variable.numpy()
        convert(keras.hparams, weights, model.encoders, folder, self.quantization)
        return {"patience": PATIENCE}

    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> OpenedExport:
        engine = CTranslate2Engine(
            open_translator(folder, self.quantization),
            model.encoders,
            self.quantization,
            model.engine.max_positions,
            model.engine.parameters,
            lambda: keras_model(model),
        )
        exported = TextDecoder(engine, model.encoders, model.manifest)
        return DecodedInOneBatch(exported, decoding)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        decoding: DecodeHParams,
        sentences: list[str],
    ) -> str:
        """Compares the directory with the model: greedy search exactly, unless the
        weights are quantised or the model computes in 16 bits. Otherwise, and for beam
        search, whose searches differ, equal translations are counted.
        """
        greedy = greedily(decoding)
        if self.quantization == keras_model(model).compute_dtype == FLOAT32:
            export = self.open(model, folder, greedy)
            check_equal(opened_run(model, greedy), export, sentences, ROUNDING)
        equal = self.count_equal(model, folder, greedy, sentences)
        of_beam = self.count_equal(model, folder, decoding, sentences)
        return f"{equal} greedy and {of_beam} beam-search translations"

    def count_equal(
        self,
        model: TextDecoder,
        folder: Path,
        options: DecodeHParams,
        sentences: list[str],
    ) -> int:
        """The number of sentences that have the run's best translation."""
        ours = opened_run(model, options).decode(sentences)
        theirs = self.open(model, folder, options).decode(sentences)
        pairs = zip(ours, theirs, strict=True)
        return sum(first[0].text == second[0].text for first, second in pairs)
