"""The format ctranslate2, the model directory that CTranslate2 loads, with our
vocabularies; and argos, a package of such a directory that Argos Translate and
LibreTranslate install.

An `.argosmodel` is a zip file with one folder: a model directory of CTranslate2, a
SentencePiece model for both languages, and metadata.
"""

import dataclasses
import json
import shutil
import tempfile
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.console import say
from t2tlite.data.language_codes import contradiction, language_name, pair_of_run
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.own_files import remove
from t2tlite.programs.export.ctranslate2_engine import (
    AUTO,
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
    count_equal,
    keras_model,
    opened_run,
)

ROUNDING = 1e-3  # CTranslate2 rounds matrix products differently
# in an .argosmodel
MODEL = "model"
VOCABULARY = "sentencepiece.model"


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
        greedy = dataclasses.replace(decoding, beam_size=1, return_beams=1)
        run = opened_run(model, greedy)
        export = self.open(model, folder, greedy)
        if self.quantization == keras_model(model).compute_dtype == FLOAT32:
            check_equal(run, export, sentences, ROUNDING)
        equal = count_equal(run, export, sentences)
        run = opened_run(model, decoding)
        export = self.open(model, folder, decoding)
        of_beam = count_equal(run, export, sentences)
        return f"{equal} greedy and {of_beam} beam-search translations"


@dataclasses.dataclass(frozen=True)
class ArgosFormat(CTranslate2Format):
    """Writes a package around a model directory of CTranslate2."""

    name = "argos"
    languages: str = ""  # such as en-de; by default those that the run records

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        manifest = plan.run.manifest()
        run = str(plan.run)
        note = contradiction(run, manifest, self._pair(manifest, run))
        if note:
            say(note)
        source, target = manifest.vocabularies
        if source != target or source.type != "sentencepiece":
            raise ValueError(
                "format=argos needs one SentencePiece vocabulary for source and target."
                f" Received: {source.file} and {target.file}. Use format=ctranslate2."
            )

    def _pair(self, manifest: RunManifest, run: str) -> tuple[str, str]:
        return pair_of_run(run, manifest, self.languages or None)

    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> Facts:
        from_code, to_code = self._pair(model.manifest, repr(model))
        name = f"translate-{from_code}_{to_code}"
        metadata = {
            # greater than those of published packages, whose updates then do not
            # replace this one
            "package_version": f"{model.step}.0",
            "argos_version": "1.9",
            "from_code": from_code,
            "from_name": language_name(from_code),
            "to_code": to_code,
            "to_name": language_name(to_code),
            "type": "translate",
        }
        package = folder / name
        (package / MODEL).mkdir(parents=True)
        super().write(model, package / MODEL, decoding)
        vocabulary = package / MODEL / model.source_encoder.path.name
        vocabulary.rename(package / VOCABULARY)
        text = json.dumps(metadata, ensure_ascii=False, indent=2)
        (package / "metadata.json").write_text(text, encoding="utf-8")
        shutil.make_archive(str(package), "zip", folder, name)
        (folder / f"{name}.zip").rename(folder / f"{name}.argosmodel")
        remove(package)
        return {"package": name, **metadata}

    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> OpenedExport:
        [archive] = folder.glob("*.argosmodel")
        with tempfile.TemporaryDirectory() as unpacked:
            shutil.unpack_archive(archive, unpacked, "zip")
            directory = Path(unpacked) / archive.stem / MODEL
            return super().open(model, directory, decoding)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        decoding: DecodeHParams,
        sentences: list[str],
    ) -> str:
        """Also counts equal greedy translations in the type that Argos Translate
        computes in.
        """
        compared = super().verify(model, folder, decoding, sentences)
        greedy = dataclasses.replace(decoding, beam_size=1, return_beams=1)
        package = dataclasses.replace(self, quantization=AUTO)
        export = package.open(model, folder, greedy)
        equal = count_equal(opened_run(model, greedy), export, sentences)
        return f"{compared}, and {equal} greedy ones with ARGOS_COMPUTE_TYPE={AUTO},"
