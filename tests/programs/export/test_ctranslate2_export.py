"""t2t-export --format=ctranslate2: what it verifies, what its README says, what it refuses."""

from __future__ import annotations

import json
import re
import sys

import pytest

import t2tlite
from t2tlite.bin import t2t_export
from t2tlite.data.dataset import open_dataset
from t2tlite.programs.export import ctranslate2_spec

pytestmark = pytest.mark.usefixtures("loaded_once")


def export(run, target, *more) -> int:
    return t2t_export.main([f"--output_dir={run}", f"--export_dir={target}", "--format=ctranslate2", *more])


def test_a_float32_export_gives_the_runs_greedy_translations(tiny_run, tmp_path, capsys):
    assert export(tiny_run.run, tmp_path / "out") == 0
    names = {"model.bin", "config.json", "shared_vocabulary.json", "vocab.model", "export.json", "README.md"}
    assert {path.name for path in (tmp_path / "out").iterdir()} == names
    assert re.search(
        r"Equal to the run: 12 greedy and \d+ beam-search translations of 12 sentences of dev", capsys.readouterr().out
    )


def test_quantised_export_is_smaller_and_reports_equal_outputs(tiny_run, tmp_path, capsys):
    assert export(tiny_run.run, tmp_path / "whole") == 0
    for quantization, remark in (("int8", ""), ("float16", r" \(in float32, this machine has no float16\)")):
        capsys.readouterr()
        assert export(tiny_run.run, tmp_path / quantization, f"--quantization={quantization}") == 0
        out = capsys.readouterr().out
        assert re.search(rf"run: \d+ greedy and \d+ beam-search translations{remark} of 12 sentences", out), out
        sizes = [(tmp_path / name / "model.bin").stat().st_size for name in (quantization, "whole")]
        assert sizes[0] < sizes[1]


def test_run_with_t2t_rules_is_verified_by_log_probabilities(tiny_run_copy, tmp_path, capsys):
    """Its scores are otherwise a mean for each token, with the sign changed."""
    manifest = json.loads((tiny_run_copy / "manifest.json").read_text())
    manifest["decode_defaults"] = {"t2t_rules": True}
    (tiny_run_copy / "manifest.json").write_text(json.dumps(manifest))
    assert export(tiny_run_copy, tmp_path / "out") == 0
    assert "Equal to the run: 12 greedy" in capsys.readouterr().out


def test_the_program_in_the_readme_translates(tiny_run, load, tmp_path, capsys, monkeypatch):
    assert export(tiny_run.run, tmp_path / "out", "--decode_hparams=beam_size=1") == 0
    [program] = re.findall(r"```python\n(.*?)```", (tmp_path / "out" / "README.md").read_text(), re.DOTALL)
    sentences = open_dataset(tiny_run.data, "twenty_words").store("dev").source_text()[:2]
    program = program.replace('["A sentence.", "Another one."]', repr(sentences))
    capsys.readouterr()
    monkeypatch.chdir(tmp_path / "out")
    exec(program, {})
    assert capsys.readouterr().out.splitlines() == load(tiny_run.run, None).translate(sentences, beam_size=1)


def test_an_export_that_computes_something_else_is_refused(tiny_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ctranslate2_spec, "position_table", lambda hparams: ctranslate2_spec.np.zeros((4096, 32), "f4"))
    assert export(tiny_run.run, tmp_path / "out") == 1
    assert "An export must decode as the run does. Received for" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--quantization=int4"], "quantization must be one of float32, "),
        (["--decode_hparams=min_length=2"], "t2t_rules. Received: min_length=2."),
    ],
)
def test_refused(tiny_run, tmp_path, capsys, flags, message):
    assert export(tiny_run.run, tmp_path / "out", *flags) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_quantizations_go_with_this_format_alone(tiny_run, tmp_path, capsys):
    flags = [
        f"--output_dir={tiny_run.run}",
        f"--export_dir={tmp_path / 'out'}",
        "--format=keras",
        "--quantization=int8",
    ]
    assert t2t_export.main(flags) == 1
    assert "--quantization goes with --format=ctranslate2. Received: --quantization=int8" in capsys.readouterr().err


def test_a_missing_package_is_one_message(tiny_run, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert export(tiny_run.run, tmp_path / "out") == 1
    assert "pip install 't2tlite[ctranslate2]'" in capsys.readouterr().err


def test_the_python_api_exports_too(tiny_run, load, tmp_path, monkeypatch):
    monkeypatch.setattr(t2tlite, "load", load)
    target = t2tlite.load(tiny_run.run, None).export(tmp_path / "out", "ctranslate2", quantization="int8")
    assert (target / "model.bin").is_file()
