"""The command t2t-avg-checkpoints: the mean of the newest checkpoints, and decoding
with it.
"""

import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_run import tensors

from t2tlite.bin import t2t_avg_checkpoints, t2t_decoder


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of the trained run; with checkpoints 40, 80 and 120."""
    return Path(
        shutil.copytree(tiny_run.run, tmp_path_factory.mktemp("average") / "run")
    )


@pytest.mark.parametrize(
    ("flag", "steps"), [("--to_step=80", (40, 80)), ("--n=2", (80, 120))]
)
def test_mean_of_two_checkpoints(run, eagerly, tmp_path, capsys, flag, steps):
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", flag]) == 0
    first, second = (f"{run}/model.ckpt-{step}" for step in steps)
    average = f"{run}/averaged/model.ckpt-{steps[1]}"
    assert (
        capsys.readouterr().out.strip()
        == f"Averaged 2 checkpoints, {first} to {second}, into {average}."
    )
    before, after, averaged = map(tensors, (first, second, average))
    assert len(averaged) > 10
    for name, mean in averaged.items():  # weights alone, without the optimizer
        np.testing.assert_allclose(
            mean, (before[name] + after[name]) / 2, rtol=1e-6, atol=1e-7, err_msg=name
        )
        assert not np.array_equal(before[name], after[name]), name
    if flag != "--n=2":
        return
    source = tmp_path / "in.txt"
    source.write_text("red cat sees dog\n")
    flags = [
        f"--output_dir={run}",
        f"--checkpoint_path={run}/averaged",
        f"--decode_from_file={source}",
    ]
    assert t2t_decoder.main(flags) == 0
    assert capsys.readouterr().out == "katze rot hund sieht\n"


def averaged(run, capsys, *flags):
    """The steps that the command averages, as it says, and what it says before that."""
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", *flags]) == 0
    *before, said = capsys.readouterr().out.splitlines()
    count, first, last = re.fullmatch(
        r"Averaged (\d+) .*?ckpt-(\d+) to .*?ckpt-(\d+), into .*", said
    ).groups()
    assert (run / "averaged" / f"model.ckpt-{last}.index").exists()
    return int(count), int(first), int(last), before


@pytest.mark.parametrize(("flags", "n"), [([], 5), (["--n=20"], 20)])
def test_fewer_checkpoints_than_asked_for(run, capsys, flags, n):
    said = f"Checkpoints in {run}: 3, fewer than {n}; all are averaged."
    assert averaged(run, capsys, *flags) == (3, 40, 120, [said])


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--from_step=41"], (2, 80, 120)),
        (["--from_step=80", "--to_step=119"], (1, 80, 80)),
        (["--to_step=119", "--n=1"], (1, 80, 80)),
    ],
)
def test_checkpoints_of_some_steps(run, capsys, flags, expected):
    assert averaged(run, capsys, *flags) == (*expected, [])


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--n=0"], "--n must be at least 1. Received: 0."),
        (
            ["--from_step=121"],
            (
                "Received: from step 121 to the newest; {run} has those of 3 steps, 40"
                " to 120."
            ),
        ),
        (
            ["--from_step=90", "--to_step=80"],
            "Received: from step 90 to step 80; {run} has those of 3 steps, 40 to",
        ),
    ],
)
def test_refused(run, capsys, flags, message):
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", *flags]) == 1
    assert message.format(run=run) in capsys.readouterr().err


def test_no_checkpoint(run, tmp_path, capsys):
    shutil.copy(run / "hparams.json", tmp_path)
    assert t2t_avg_checkpoints.main([f"--output_dir={tmp_path}"]) == 1
    assert (
        f"A run needs a checkpoint to average. {tmp_path} has none."
        in capsys.readouterr().err
    )
