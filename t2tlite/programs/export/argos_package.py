"""The format argos: a package that Argos Translate and LibreTranslate install.

An `.argosmodel` is a zip file with one folder: a model directory of CTranslate2, a
SentencePiece model for both languages, and metadata.
"""

from __future__ import annotations

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
from t2tlite.programs.export.ctranslate2_engine import AUTO
from t2tlite.programs.export.ctranslate2_model import CTranslate2Format
from t2tlite.programs.export.plan import ExportPlan, Facts
from t2tlite.programs.export.verification import OpenedExport, greedily

MODEL = "model"
VOCABULARY = "sentencepiece.model"


@dataclasses.dataclass(frozen=True)
class ArgosFormat(CTranslate2Format):
    """Writes a package around a model directory of CTranslate2."""

    name = "argos"
    languages: str = ""  # such as en-de; by default those that the run records

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        run = str(plan.run)
        manifest = plan.run.manifest()
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
        package = dataclasses.replace(self, quantization=AUTO)
        equal = package.count_equal(model, folder, greedily(decoding), sentences)
        return f"{compared}, and {equal} greedy ones with ARGOS_COMPUTE_TYPE={AUTO},"
