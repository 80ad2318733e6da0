"""t2t-decoder with CTranslate2: what it writes and records, and what it refuses."""

import sys

import pytest
from run_command import refusal, said

from t2tlite.bin import t2t_decoder
from t2tlite.run_folder import RunFolder

pytestmark = pytest.mark.usefixtures("loaded_once")
CTRANSLATE2 = "--engine=ctranslate2"


def decode(run, *flags) -> int:
    return t2t_decoder.main([f"--output_dir={run}", *flags])


def test_file_is_decoded_and_conversion_is_reported(tiny_run_copy, tmp_path, capsys):
    source = tmp_path / "in.txt"
    source.write_text(
        "red cat sees dog\n\ngreen mouse likes bird now\n", encoding="utf-8"
    )
    outputs = []
    for engine in ("tensorflow", "ctranslate2"):
        flags = f"--decode_from_file={source}", f"--engine={engine}"
        out, err = said(capsys, t2t_decoder, f"--output_dir={tiny_run_copy}", *flags)
        outputs.append(out)
    assert outputs[0] == outputs[1]
    converting = f"Converting {tiny_run_copy}/model.ckpt-120 for CTranslate2 (float32)"
    assert err.count(converting) == 1


def test_records_of_engines_have_names_of_their_own(tiny_run_copy, capsys):
    options = [], [CTRANSLATE2, "--decode_hparams=beam_size=1"]
    for flags in (*options, [CTRANSLATE2, "--quantization=int8"]):
        assert decode(tiny_run_copy, "--split=dev", *flags) == 0
    records, _ = RunFolder(tiny_run_copy).decode_records()
    engines = {each.name: (each.engine, each.quantization) for each in records}
    assert engines == {
        "dev.120": ("tensorflow", ""),
        "dev.120.beam_size=1,engine=ctranslate2,quantization=float32": (
            "ctranslate2",
            "float32",
        ),
        "dev.120.engine=ctranslate2,quantization=int8": ("ctranslate2", "int8"),
    }


def test_missing_package_is_one_message(tiny_run_copy, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    split = [f"--output_dir={tiny_run_copy}", "--split=dev", CTRANSLATE2]
    message = refusal(capsys, t2t_decoder, *split)
    assert "CTranslate2 is required (" in message
    assert "pip install 't2tlite[ctranslate2]'" in message


def test_unsupported_option_is_refused_before_conversion(tiny_run_copy, capsys):
    split = [f"--output_dir={tiny_run_copy}", "--split=dev", CTRANSLATE2]
    assert refusal(capsys, t2t_decoder, *split, "--decode_hparams=min_length=5") == (
        "t2tlite: The engine ctranslate2 supports alpha, batch_size, beam_size,"
        " extra_length, return_beams, t2t_rules. Received: min_length=5. Leave it"
        " out, or use tensorflow.\n"
    )
    assert not (tiny_run_copy / "ctranslate2").exists()
