"""The whole way, from nothing to a score, through the real commands."""

from __future__ import annotations

import re

from t2tlite.bin import t2t_decoder


def test_learns_to_translate(tiny_run, loaded_once, tmp_path, capsys):
    written = tmp_path / "test.de"

    status = t2t_decoder.main(
        [f"--output_dir={tiny_run.run}", "--split=test", f"--decode_to_file={written}"]
    )

    assert status == 0
    score = re.search(
        r"^BLEU (\d+\.\d\d) \(chrF2 .*\) on test \(40 sentences\)$",
        capsys.readouterr().out,
        re.MULTILINE,
    )
    assert float(score[1]) >= 90
    assert len(written.read_text().splitlines()) == 40
