"""The format argos: a package that Argos Translate and LibreTranslate install.

An `.argosmodel` is a zip file with one folder: a model directory of CTranslate2, a
SentencePiece model for both languages, and metadata.
"""

from __future__ import annotations

import json
import shutil
import tempfile
import zipfile
from pathlib import Path

from t2tlite.console import say
from t2tlite.data.language_codes import contradiction, language_name, pair_of_run
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export.ctranslate2_model import CTranslate2Format
from t2tlite.programs.export.marian_model import check_sentencepiece
from t2tlite.programs.export.plan import ExportPlan
from t2tlite.programs.export.verification import DecodedInOneBatch

MODEL = "model"
VOCABULARY = "sentencepiece.model"

USAGE = """\
`{file}` is a package of Argos Translate ({source} to {target}).

- `argospm install {file}` installs it, and `argos-translate -f {from_code} -t {to_code}
  "A sentence."` translates with it.
- LibreTranslate serves the packages that are installed for its user.

Argos Translate splits text into sentences with a model of its own, which it downloads
when it first translates. Its beam search has a length penalty of its own too.
"""


class ArgosFormat(CTranslate2Format):
    """Writes a package around a model directory of CTranslate2."""

    name = "argos"
    names_languages = True

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        check_sentencepiece(self.name, plan)
        note = contradiction(str(plan.run), plan.manifest, _languages(plan))
        if note:
            say(note)
        if not plan.manifest.has_one_vocabulary:
            raise ValueError(
                "format=argos needs one vocabulary for source and target: a package"
                " has one SentencePiece model. Received: a run with two. Export it"
                " with format=ctranslate2."
            )

    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        from_code, to_code = _languages(plan)
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
        usage = USAGE.format(
            file=f"{name}.argosmodel",
            source=metadata["from_name"],
            target=metadata["to_name"],
            from_code=from_code,
            to_code=to_code,
        )
        package = folder / name
        (package / MODEL).mkdir(parents=True)
        super().write(model, package / MODEL, plan)
        vocabulary = package / MODEL / model.source_encoder.path.name
        vocabulary.rename(package / VOCABULARY)
        text = json.dumps(metadata, ensure_ascii=False, indent=2)
        (package / "metadata.json").write_text(text, encoding="utf-8")
        (package / "README.md").write_text(usage, encoding="utf-8")
        shutil.make_archive(str(package), "zip", folder, name)
        (folder / f"{name}.zip").rename(folder / f"{name}.argosmodel")
        shutil.rmtree(package)
        return usage

    def open(
        self, model: TextDecoder, folder: Path, plan: ExportPlan
    ) -> DecodedInOneBatch:
        [archive] = folder.glob("*.argosmodel")
        with tempfile.TemporaryDirectory() as unpacked:
            with zipfile.ZipFile(archive) as package:
                package.extractall(unpacked)
            directory = Path(unpacked) / archive.stem / MODEL
            return super().open(model, directory, plan)


def _languages(plan: ExportPlan) -> tuple[str, str]:
    return pair_of_run(str(plan.run), plan.manifest, plan.languages or None)
