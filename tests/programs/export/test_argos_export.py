"""t2t-export --format=argos: a package that Argos Translate installs, and translates
with as the run does.

Argos Translate requires other versions than the tests do. It is installed into an
environment of its own, whose Python the variable T2TLITE_ARGOS names:

    python -m venv .argos && .argos/bin/pip install argostranslate
    T2TLITE_ARGOS=.argos/bin/python .venv/bin/python -m pytest -m slow tests/programs/export/test_argos_export.py
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import zipfile

import ctranslate2
import pytest
import sentencepiece
from exports import export, run_export_test
from spellings import SPELLINGS
from tiny_run import change_manifest

from t2tlite.data.dataset import open_dataset

pytestmark = pytest.mark.usefixtures("loaded_once")
NAME = "translate-en_de"
FORMAT = "--format=argos"

# Argos Translate splits text into sentences by models that it downloads. With
# ARGOS_CHUNK_TYPE=SPACY it uses spaCy's, which a package may contain: this one has an
# empty pipeline, to which Argos Translate adds spaCy's rules for punctuation.
PROGRAM = """
import sys
from pathlib import Path

import spacy
from argostranslate import package, translate

package.install_from_path(Path(sys.argv[1]))
[installed] = package.get_installed_packages()
spacy.blank("en").to_disk(installed.package_path / "spacy")
print(installed.from_name, installed.to_name, installed.package_version)
for line in sys.stdin.read().split("\\n"):
    print(translate.translate(line, "en", "de"))
"""


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
    counted = r"and \d+ greedy ones with ARGOS_COMPUTE_TYPE=auto, of 12 sen"
    assert re.search(counted, run_export_test(*flags))
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
        ({"languages": None}, FORMAT, "COPY does not record the codes"),
        (
            {"languages": {"source": "en", "target": "../../../x"}},
            FORMAT,
            "damaged: Expected `str` matching regex",
        ),
        ({}, "--languages=german", "A language pair must be SOURCE-TARGET"),
        ({"target_vocabulary": TWO}, FORMAT, "needs one SentencePiece vocabulary for"),
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


@pytest.mark.slow
def test_argos_translate_translates_as_the_run_does(
    exported, tiny_run, load, dev, tmp_path
):
    """Greedily, since its beam search has a length penalty that nobody can set."""
    python = os.environ.get("T2TLITE_ARGOS")
    if not python:
        pytest.skip("needs T2TLITE_ARGOS, a Python with argostranslate installed")
    # it downloads a model of spaCy unless there is one
    (tmp_path / "argos-translate/spacy/senter").mkdir(parents=True)
    (tmp_path / "argos-translate/spacy/senter/model").touch()
    folders = dict.fromkeys(
        ["XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"], str(tmp_path)
    )
    settings = {"ARGOS_CHUNK_TYPE": "SPACY", "ARGOS_BEAM_SIZE": "1"}
    spelled = [spell(dev[0]) for spell in SPELLINGS.values()]
    sentences = [*dev, *spelled, f"{dev[0]} . {dev[1]} ."]
    run = subprocess.run(
        [python, "-c", PROGRAM, exported / f"{NAME}.argosmodel"],
        input="\n".join(sentences),
        env=os.environ | folders | settings,
        capture_output=True,
        text=True,
        check=True,
    )
    first, *theirs = run.stdout.splitlines()
    assert first == "English German 120.0"
    model = load(tiny_run.run, None)
    assert theirs[: len(dev)] == model.translate(dev, beam_size=1)
    assert set(theirs[len(dev) : -1]) == {theirs[0]}
    parts = model.translate([f"{text} ." for text in dev[:2]], beam_size=1)
    assert theirs[-1] == " ".join(parts)
