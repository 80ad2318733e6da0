"""t2t-export --format=ctranslate2: what it verifies, what its README says, what it
refuses.
"""

import re
import sys

import pytest
from exports import export, run_export_test
from tiny_run import change_manifest

import t2tlite
from t2tlite.data.dataset import open_dataset

pytestmark = pytest.mark.usefixtures("loaded_once")
FORMAT = "--format=ctranslate2"
FILES = {"model.bin", "config.json", "shared_vocabulary.json", "vocab.model"}


@pytest.fixture(scope="module")
def exported(tiny_run, load, tmp_path_factory):
    """An export in float32."""
    model, folder = load(tiny_run.run, None), tmp_path_factory.mktemp("float32") / "out"
    return model.export(folder, "ctranslate2")


@pytest.mark.parametrize(
    ("quantization", "count"),
    [("float32", "12"), ("int8", r"\d+"), ("float16", r"\d+")],
)
def test_export_reports_equal_outputs(
    tiny_run, exported, tmp_path, capsys, quantization, count
):
    target = tmp_path / "new" / "out"
    flags = "ctranslate2", tiny_run.run, target, capsys, FILES
    equal = run_export_test(*flags, f"--quantization={quantization}")
    assert re.match(rf"{count} of 12 greedy translations\.", equal)
    size = (target / "model.bin").stat().st_size
    whole = (exported / "model.bin").stat().st_size
    assert size == whole if quantization == "float32" else size < whole


def test_the_program_in_the_readme_translates(
    tiny_run, load, exported, capsys, monkeypatch
):
    readme = (exported / "README.md").read_text()
    [program] = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    dev = open_dataset(tiny_run.data, "twenty_words").store("dev")
    sentences = dev.source_text()[:2]
    monkeypatch.chdir(exported)
    exec(program.replace('["A sentence.", "Another one."]', repr(sentences)), {})
    expected = load(tiny_run.run, None).translate(sentences)
    assert capsys.readouterr().out.splitlines() == expected


def test_the_readme_has_text_as_in_training(tiny_run_copy, tmp_path):
    change_manifest(tiny_run_copy, task="pronunciation")
    folder = t2tlite.load(tiny_run_copy).export(tmp_path / "out", "ctranslate2")
    readme = (folder / "README.md").read_text()
    assert '["A _ s e n t e n c e .", "A n o t h e r _ o n e ."]' in readme


def test_refused(tiny_run, tmp_path, capsys, monkeypatch):
    target = tmp_path / "out"
    assert export(tiny_run.run, target, FORMAT, "--quantization=int4") == 1
    assert "quantization must be one of float32, " in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert export(tiny_run.run, target, FORMAT) == 1
    assert "pip install 't2tlite[ctranslate2]'" in capsys.readouterr().err
    assert not target.exists()
