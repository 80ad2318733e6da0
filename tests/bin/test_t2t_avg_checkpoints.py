"""The command t2t-avg-checkpoints: the mean of the newest checkpoints, and decoding with it."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_run import tensors

from t2tlite.bin import t2t_avg_checkpoints, t2t_decoder


@pytest.fixture(scope="module")
def run(made, tmp_path_factory):
    """A copy of the trained run; with checkpoints 40, 80 and 120."""
    return Path(shutil.copytree(made.run, tmp_path_factory.mktemp("average") / "run"))


def test_mean_of_the_newest_two(run, tmp_path, capsys):
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", "--n=2"]) == 0
    said = f"Averaged 2 checkpoints, {run}/model.ckpt-80 to {run}/model.ckpt-120, into {run}/averaged/model.ckpt-120."
    assert capsys.readouterr().out.strip() == said

    first, second = tensors(run / "model.ckpt-80"), tensors(run / "model.ckpt-120")
    averaged = tensors(run / "averaged" / "model.ckpt-120")
    assert len(averaged) > 10
    for name, mean in averaged.items():  # weights alone, without the optimizer
        np.testing.assert_allclose(mean, (first[name] + second[name]) / 2, rtol=1e-6, atol=1e-7, err_msg=name)
        assert not np.array_equal(first[name], second[name]), name

    source = tmp_path / "in.txt"
    source.write_text("red cat sees dog\n")
    flags = [f"--output_dir={run}", f"--checkpoint_path={run}/averaged", f"--decode_from_file={source}"]
    assert t2t_decoder.main(flags) == 0
    assert capsys.readouterr().out == "katze rot hund sieht\n"


@pytest.mark.parametrize("n", [4, 0, -1])
def test_not_as_many_checkpoints(run, capsys, n):
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", f"--n={n}"]) == 1
    told = capsys.readouterr().err
    assert f"--n must be from 1 to the number of checkpoints in {run}. Received: --n={n}, 3 checkpoints." in told


def test_no_run(tmp_path, capsys):
    assert t2t_avg_checkpoints.main([]) == 1
    assert "--output_dir must be given, or --problem and --hparams_set for the run in" in capsys.readouterr().err
    assert t2t_avg_checkpoints.main([f"--output_dir={tmp_path}"]) == 1
    assert "--output_dir must be the folder of a run that t2t-trainer made." in capsys.readouterr().err


def test_help_says_how_to_use_the_result(capsys):
    assert t2t_avg_checkpoints.main(["--help"]) == 0
    assert "--checkpoint_path=RUN/averaged" in capsys.readouterr().out
