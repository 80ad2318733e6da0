"""The command t2t-avg-checkpoints: the mean of the newest checkpoints, and decoding
with it.
"""

import re
import shutil
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from run_command import refusal, said
from tiny_run import change_manifest, tensors

import t2tlite
from t2tlite.bin import t2t_avg_checkpoints, t2t_decoder
from t2tlite.files import checkpoint_paths
from t2tlite.programs.runs import keras_run
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of the trained run; with checkpoints 40, 80 and 120."""
    folder = tmp_path_factory.mktemp("average") / "run"
    return Path(shutil.copytree(tiny_run.run, folder))


@pytest.mark.parametrize(
    ("flag", "steps"), [("--to_step=80", (40, 80)), ("--n=2", (80, 120))]
)
def test_mean_of_two_checkpoints(run, eagerly, tmp_path, capsys, flag, steps):
    assert t2t_avg_checkpoints.main([f"--output_dir={run}", flag]) == 0
    first, second = (f"{run}/model.ckpt-{step}" for step in steps)
    average = f"{run}/averaged/model.ckpt-{steps[1]}"
    said, *_ = capsys.readouterr().out.splitlines()
    assert said == f"Averaged 2 checkpoints, {first} to {second}, into {average}."
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
    flags = f"--checkpoint_path={run}/averaged", f"--decode_from_file={source}"
    assert t2t_decoder.main([f"--output_dir={run}", *flags]) == 0
    assert capsys.readouterr().out == "katze rot hund sieht\n"


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], "3 checkpoints, 40 to 120"),
        (["--n=20"], "3 checkpoints, 40 to 120"),
        (["--from_step=41"], "2 checkpoints, 80 to 120"),
        (["--from_step=80", "--to_step=119"], "1 checkpoint, 80"),
        (["--to_step=119", "--n=1"], "1 checkpoint, 80"),
    ],
)
def test_which_checkpoints(run, capsys, flags, expected):
    with mock.patch.object(keras_run, "dev_losses", return_value={}):
        shown = said(capsys, t2t_avg_checkpoints, f"--output_dir={run}", *flags).out
    last = expected.split()[-1]
    first_line = shown.splitlines()[0].replace(f"{run}/model.ckpt-", "")
    assert first_line == f"Averaged {expected}, into {run}/averaged/model.ckpt-{last}."
    assert (run / "averaged" / f"model.ckpt-{last}.index").exists()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--n=0"], "n must be at least 1. Received: 0."),
        (["--from_step=121"], "Received: 121 to 120."),
        (["--from_step=90", "--to_step=80"], "Received: 90 to 80."),
    ],
)
def test_refused(run, tmp_path, capsys, flags, message):
    stderr = refusal(capsys, t2t_avg_checkpoints, f"--output_dir={run}", *flags)
    assert message.format(run=run) in stderr
    shutil.copy(run / "hparams.json", tmp_path)
    stderr = refusal(capsys, t2t_avg_checkpoints, f"--output_dir={tmp_path}")
    assert f"{tmp_path} needs a checkpoint to average." in stderr


def test_newest_best_and_average_are_measured(tiny_run, tiny_run_copy, capsys):
    """Newest and best as training recorded them, the average as scored by Python."""
    run = RunFolder(tiny_run_copy)
    best = run.best()
    assert t2t_avg_checkpoints.main([f"--output_dir={run}"]) == 0
    output = capsys.readouterr()
    *_, losses, advice = output.out.splitlines()
    recorded = {record.step: record.metrics["loss"] for record in run.evaluations()}
    newest = float(re.search(r"step 120\) (\d\.\d{4})", losses)[1])
    assert newest == pytest.approx(recorded[120], abs=2e-4)
    best_loss = float(re.search(rf"step {best.step}\) (\d\.\d{{4}})", losses)[1])
    assert best_loss == pytest.approx(best.metrics["loss"], abs=2e-4)
    store = run_dataset(run).store("dev")
    model = t2tlite.load(run.path, "averaged")
    log_probs = model.score(store.source_text(), store.target_text())
    expected = -sum(log_probs) / store.target_lengths.sum()
    of_average = float(re.search(r"the average (\d\.\d{4})\.", losses)[1])
    assert of_average == pytest.approx(expected, abs=2e-4)
    # after 40, 80 and 120 steps the loss still falls fast
    assert of_average > 1.1 * newest
    assert "--checkpoint_path=averaged" in advice


def test_data_that_is_not_there(tiny_run_copy, tmp_path, capsys):
    """The average is written unmeasured, but not if the folder given is wrong."""
    change_manifest(tiny_run_copy, data_dir=str(tmp_path / "gone"))
    command = [f"--output_dir={tiny_run_copy}", "--n=2"]
    assert t2t_avg_checkpoints.main([*command, f"--data_dir={tmp_path}"]) == 1
    assert not (tiny_run_copy / "averaged").exists()
    capsys.readouterr()
    assert t2t_avg_checkpoints.main(command) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("Averaged 2 checkpoints")
    assert said[1].startswith("The average was not measured. There is no finished data")
    assert said[1].endswith("Or give --data_dir, where the data is now.")
    assert len(said) == 2


def test_training_removes_a_checkpoint_while_tensorflow_loads(tiny_run_copy, capsys):
    def train():
        checkpoint_paths.remove_checkpoint(f"{tiny_run_copy}/model.ckpt-40")

    with mock.patch.object(t2t_avg_checkpoints, "load_tensorflow", train):
        shown = said(capsys, t2t_avg_checkpoints, f"--output_dir={tiny_run_copy}").out
    assert shown.startswith("Averaged 2 checkpoints, ")
