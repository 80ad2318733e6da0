"""t2t-decoder with CTranslate2: what it writes and records, and what it refuses."""

import json
import sys

import pytest

from t2tlite.bin import t2t_decoder

pytestmark = pytest.mark.usefixtures("loaded_once")
CTRANSLATE2 = "--engine=ctranslate2"


def decode(run, *flags) -> int:
    return t2t_decoder.main([f"--output_dir={run}", *flags])


def test_file_is_decoded_and_conversion_is_reported(tiny_run_copy, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text(
        "red cat sees dog\n\ngreen mouse likes bird now\n", encoding="utf-8"
    )
    outputs = {}
    for engine in ("tensorflow", "ctranslate2"):
        flags = [
            f"--decode_from_file={source}",
            f"--decode_to_file={tmp_path / engine}",
            f"--engine={engine}",
        ]
        assert decode(tiny_run_copy, *flags) == 0
        outputs[engine] = (tmp_path / engine).read_text(encoding="utf-8")
    assert outputs["ctranslate2"] == outputs["tensorflow"]
    assert (
        capsys.readouterr().err.count(
            f"Converting {tiny_run_copy}/model.ckpt-120 for CTranslate2 (float32), once"
        )
        == 1
    )


def test_records_of_engines_have_names_of_their_own(tiny_run_copy, capsys):
    assert decode(tiny_run_copy, "--split=dev") == 0
    status = decode(
        tiny_run_copy, "--split=dev", CTRANSLATE2, "--decode_hparams=beam_size=1"
    )
    assert status == 0
    assert decode(tiny_run_copy, "--split=dev", CTRANSLATE2, "--quantization=int8") == 0
    names = [
        "dev.120",
        "dev.120.beam_size=1,engine=ctranslate2,quantization=float32",
        "dev.120.engine=ctranslate2,quantization=int8",
    ]
    assert (
        sorted(path.stem for path in (tiny_run_copy / "decodes").glob("*.json"))
        == names
    )
    records = [
        json.loads((tiny_run_copy / "decodes" / f"{name}.json").read_text())
        for name in names
    ]
    engines = [(record["engine"], record["quantization"]) for record in records]
    assert engines == [
        ("tensorflow", ""),
        ("ctranslate2", "float32"),
        ("ctranslate2", "int8"),
    ]


def test_missing_package_is_one_message(tiny_run_copy, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    assert decode(tiny_run_copy, "--split=dev", CTRANSLATE2) == 1
    message = capsys.readouterr().err
    assert "CTranslate2 must be installed. Received: " in message
    assert "pip install 't2tlite[ctranslate2]'" in message
    assert "Traceback" not in message


def test_unsupported_option_is_refused_before_conversion(tiny_run_copy, capsys):
    status = decode(
        tiny_run_copy, "--split=dev", CTRANSLATE2, "--decode_hparams=min_length=5"
    )
    assert status == 1
    stderr = capsys.readouterr().err
    assert (
        stderr
        == "t2tlite: The engine ctranslate2 supports alpha, batch_size, beam_size,"
        " extra_length, return_beams, t2t_rules. Received: min_length=5. Leave out"
        " what it does not support, or decode with the engine tensorflow.\n"
    )
    assert not (tiny_run_copy / "ctranslate2").exists()
