"""t2t-export --format=argos: a package that Argos Translate installs."""

import json
import re
import zipfile

import ctranslate2
import pytest
import sentencepiece
from exports import export, run_export_test
from tiny_run import change_manifest

from t2tlite.data.dataset import open_dataset

pytestmark = pytest.mark.usefixtures("loaded_once")
NAME = "translate-en_de"
FORMAT = "--format=argos"


@pytest.fixture(scope="module")
def exported(tiny_run, load, tmp_path_factory):
    folder = tmp_path_factory.mktemp("argos") / "out"
    return load(tiny_run.run, None).export(folder, "argos")


@pytest.fixture(scope="module")
def dev(tiny_run) -> list[str]:
    return open_dataset(tiny_run.data, "twenty_words").store("dev").source_text()


def test_package_has_what_argos_translate_opens(
    exported, tmp_path, tiny_run, load, dev
):
    """By names: its folder, its model, and the vocabulary of both languages."""
    with zipfile.ZipFile(exported / f"{NAME}.argosmodel") as package:
        package.extractall(tmp_path)
    metadata = json.loads((tmp_path / NAME / "metadata.json").read_text())
    assert metadata == {
        "package_version": "120.0",
        "argos_version": "1.9",
        "from_code": "en",
        "from_name": "English",
        "to_code": "de",
        "to_name": "German",
        "type": "translate",
    }
    translator = ctranslate2.Translator(str(tmp_path / NAME / "model"))
    pieces = sentencepiece.SentencePieceProcessor(
        model_file=str(tmp_path / NAME / "sentencepiece.model")
    )
    results = translator.translate_batch(pieces.encode(dev, out_type=str), beam_size=1)
    theirs = [pieces.decode(result.hypotheses[0]) for result in results]
    assert theirs == load(tiny_run.run, None).translate(dev, beam_size=1)


def test_an_export_counts_the_type_that_argos_computes_in(tiny_run, tmp_path, capsys):
    target = tmp_path / "new" / "out"
    files = {f"{NAME}.argosmodel"}
    flags = "argos", tiny_run.run, target, capsys, files, "--quantization=int8"
    counted = r"\d+ of 12 greedy translations with ARGOS_COMPUTE_TYPE=auto\."
    assert re.match(counted, run_export_test(*flags))
    readme = (target / "README.md").read_text(encoding="utf-8")
    assert "`ARGOS_COMPUTE_TYPE=float32`" in readme


def test_languages_of_the_command_count(tiny_run, load, tmp_path, capsys):
    model = load(tiny_run.run, None)
    folder = model.export(tmp_path / "out", "argos", languages="fr-pt_BR")
    said = capsys.readouterr().err
    assert "records en-de, and --languages says fr-pt-BR, which counts." in said
    assert (folder / "translate-fr_pt-BR.argosmodel").is_file()


TWO = {"file": "other.model", "sha256": "0" * 64}


@pytest.mark.parametrize(
    ("changes", "flag", "message"),
    [
        ({"languages": None}, FORMAT, "COPY has no codes"),
        (
            {"languages": {"source": "en", "target": "../../../x"}},
            FORMAT,
            "damaged: Expected `str` matching regex",
        ),
        ({}, "--languages=german", "A language pair must be two codes"),
        ({"target_vocabulary": TWO}, FORMAT, "needs one SentencePiece vocabulary"),
    ],
)
def test_refused(tiny_run_copy, tmp_path, capsys, changes, flag, message):
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    if "target_vocabulary" in changes:
        changes = {"target_vocabulary": manifest["vocabulary"] | TWO}
    change_manifest(tiny_run_copy, **changes)
    assert export(tiny_run_copy, tmp_path / "out", FORMAT, flag) == 1
    shown = capsys.readouterr().err.replace(str(tiny_run_copy), "COPY")
    assert message in shown
    assert not (tmp_path / "out").exists()
