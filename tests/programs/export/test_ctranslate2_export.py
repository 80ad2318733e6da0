"""t2t-export --format=ctranslate2: what it verifies, what its README says, what it
refuses.
"""

from __future__ import annotations

import re
import sys

import pytest
from tiny_run import change_manifest, last_of_each

from t2tlite.bin import t2t_export
from t2tlite.data.dataset import open_dataset
from t2tlite.programs.export import ctranslate2_spec

pytestmark = pytest.mark.usefixtures("loaded_once")


def export(run, target, *more) -> int:
    return t2t_export.main(
        last_of_each(
            f"--output_dir={run}",
            f"--export_dir={target}",
            "--format=ctranslate2",
            *more,
        )
    )


@pytest.fixture(scope="module")
def exported(tiny_run, load, tmp_path_factory):
    """An export in float32."""
    model, folder = load(tiny_run.run, None), tmp_path_factory.mktemp("float32") / "out"
    return model.export(folder, "ctranslate2", quantization="float32")


@pytest.mark.parametrize(
    ("quantization", "remark"),
    [
        ("float32", ""),
        ("int8", ""),
        ("float16", r" \(in float32, this machine has no float16\)"),
    ],
)
def test_export_reports_equal_outputs(
    tiny_run, exported, tmp_path, capsys, quantization, remark
):
    assert export(tiny_run.run, tmp_path / "out", f"--quantization={quantization}") == 0
    names = {
        "model.bin",
        "config.json",
        "shared_vocabulary.json",
        "vocab.model",
        "export.json",
        "README.md",
    }
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    count = "12" if quantization == "float32" else r"\d+"
    message = (
        rf"Equal to the run: {count} greedy and \d+ beam-search translations{remark} of"
        r" 12 sentences of dev"
    )
    assert re.search(message, capsys.readouterr().out)
    size, whole = (
        (folder / "model.bin").stat().st_size for folder in (tmp_path / "out", exported)
    )
    assert size == whole if quantization == "float32" else size < whole


def test_run_with_t2t_rules_is_verified_by_log_probabilities(
    tiny_run_copy, tmp_path, capsys, eagerly
):
    """Its scores are otherwise a mean for each token, with the sign changed."""
    change_manifest(tiny_run_copy, decode_defaults={"t2t_rules": True})
    assert export(tiny_run_copy, tmp_path / "out", "--decode_hparams=beam_size=1") == 0
    assert "Equal to the run: 12 greedy" in capsys.readouterr().out


def test_the_program_in_the_readme_translates(
    tiny_run, load, exported, capsys, monkeypatch
):
    [program] = re.findall(
        r"```python\n(.*?)```", (exported / "README.md").read_text(), re.DOTALL
    )
    sentences = (
        open_dataset(tiny_run.data, "twenty_words").store("dev").source_text()[:2]
    )
    monkeypatch.chdir(exported)
    exec(program.replace('["A sentence.", "Another one."]', repr(sentences)), {})
    assert capsys.readouterr().out.splitlines() == load(tiny_run.run, None).translate(
        sentences
    )


def test_an_export_that_computes_something_else_is_refused(
    tiny_run, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(
        ctranslate2_spec,
        "position_table",
        lambda hparams: ctranslate2_spec.np.zeros((4096, 32), "f4"),
    )
    assert export(tiny_run.run, tmp_path / "out") == 1
    assert (
        "An export must decode as the run does. Received for" in capsys.readouterr().err
    )
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ("--quantization=int4", "quantization must be one of float32, "),
        ("--decode_hparams=min_length=2", "t2t_rules. Received: min_length=2."),
        (
            "--quantization=int8 --format=saved_model",
            "format=ctranslate2 or argos. Received: quanti",
        ),
    ],
)
def test_refused(tiny_run, tmp_path, capsys, flags, message):
    assert export(tiny_run.run, tmp_path / "out", *flags.split()) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_missing_package_is_one_message(tiny_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert export(tiny_run.run, tmp_path / "out") == 1
    assert "pip install 't2tlite[ctranslate2]'" in capsys.readouterr().err
