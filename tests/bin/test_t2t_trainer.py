"""The command t2t-trainer: what a run holds, stopping and resuming, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tiny_run import SMALL, small, tensors, tiny_run, train, trainer_flags

from t2tlite.bin import flags, t2t_decoder, t2t_trainer
from t2tlite.config import HParams
from t2tlite.runs import train as training_run
from t2tlite.runs.run_folder import RunFolder
from t2tlite.training import loop
from t2tlite.training.learning_rates import PaperSchedule
from t2tlite.training.progress import Progress
from t2tlite.training.train_step import StepResult


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return tiny_run(tmp_path_factory)


@pytest.fixture
def copy(made, tmp_path):
    """A copy of the trained run."""
    return Path(shutil.copytree(made.run, tmp_path / "copy"))


def events(folder):
    """Every scalar in a run's event files: name -> steps."""
    steps: dict[str, list[int]] = {}
    for path in sorted(folder.glob("events.*")):
        accumulator = EventAccumulator(str(path), size_guidance={"tensors": 0})
        accumulator.Reload()
        for name in accumulator.Tags()["tensors"]:
            steps.setdefault(name, []).extend(event.step for event in accumulator.Tensors(name))
    return steps


def checkpoint_names(folder):
    return sorted((path.stem for path in folder.glob("model.ckpt-*.index")), key=lambda name: int(name.split("-")[1]))


# what a run holds


def test_run_is_self_contained(made):
    assert checkpoint_names(made.run) == ["model.ckpt-40", "model.ckpt-80", "model.ckpt-120"]
    assert HParams.from_json((made.run / "hparams.json").read_text()).hidden_size == 32
    assert (made.run / "vocab.model").read_bytes() == (made.data / "twenty_words" / "vocab.model").read_bytes()
    manifest = json.loads((made.run / "manifest.json").read_text())
    assert (manifest["problem"], manifest["reverse"]) == ("twenty_words", False)


def test_flags_are_recorded(made):
    noted = (made.run / "flags.txt").read_text().splitlines()
    assert noted[0] == "t2t-trainer"
    assert {"--problem=twenty_words", "--generate_data=True", "--local_eval_frequency=40"} <= set(noted)
    assert not [line for line in noted if line.startswith(("--hparams=", "--warm_start_from="))]  # not given


def test_events_have_the_metrics(made):
    steps = events(made.run)
    assert steps["train/loss"] == list(range(1, 121))
    for name in ("dev/loss", "dev/perplexity", "dev/accuracy"):
        assert steps[name] == [40, 80, 120]
    for name in ("train/learning_rate", "train/tokens_per_second", "train/padding_waste"):
        assert steps[name][-1] == 120


def test_what_is_said(made):
    assert "twenty_words: made in" in made.stderr  # --generate_data
    assert "1,500 pairs in 12 batches an epoch, 1 replica(s)." in made.stderr
    assert re.search(r"step 40: dev loss \d+\.\d{4}, perplexity \d+\.\d{3}, accuracy 0\.\d{4} \(best", made.stderr)
    assert re.search(r"120/120 \[\d\d:\d\d<\d\d:\d\d", made.stderr)  # steps, time taken and left
    assert re.search(r"loss \d\.\d{3}, [\d,]+ tokens/s, padding \d+%, learning rate \d\.\d\de-\d\d", made.stderr)
    cost, trained = made.stdout.splitlines()
    assert cost.startswith("Training cost: ")
    assert trained.startswith("Trained twenty_words: dev loss ")
    assert made.stdout.endswith(f"The run is in {made.run}.\n")


def test_best_checkpoint_has_its_metrics(made):
    losses = [float(loss) for loss in re.findall(r"dev loss (\d+\.\d+)", made.stderr)[:3]]
    best = json.loads((made.run / "best" / "best.json").read_text())
    assert best["loss"] == pytest.approx(min(losses), abs=1e-4)
    assert best["step"] == 40 * (1 + losses.index(min(losses)))
    assert best["perplexity"] == pytest.approx(np.exp(best["loss"]))
    kept = tensors(made.run / "best" / f"model.ckpt-{best['step']}")
    assert kept.keys() == tensors(made.run / "model.ckpt-120").keys()


# stopping and resuming


def test_stopped_by_a_signal_then_run_again_equals_uninterrupted(made, tmp_path, monkeypatch, capsys):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    assert small(made, whole, "--train_steps=8") == 0
    step = Progress.step
    with monkeypatch.context() as patch:
        patch.setattr(Progress, "step", lambda *args: (step(*args), args[1] == 4 and signal.raise_signal(15)))
        capsys.readouterr()
        assert small(made, stopped, "--train_steps=8") == 128 + signal.SIGTERM
    told = capsys.readouterr().err
    assert "SIGTERM: saving a checkpoint; once more ends at once." in told
    assert "t2tlite: Stopped by SIGTERM at step 5; a checkpoint is saved. The same command resumes from there." in told
    assert checkpoint_names(stopped) == ["model.ckpt-5"]

    assert small(made, stopped, "--train_steps=8") == 0

    assert "resuming from step 5." in capsys.readouterr().err
    expected, found = tensors(whole / "model.ckpt-8"), tensors(stopped / "model.ckpt-8")
    assert expected.keys() == found.keys()
    assert len([name for name in found if "kernel" in name]) > 10  # not vacuous: weights, and Adam's two moments
    for name in expected:
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    assert events(stopped)["train/loss"] == list(range(1, 9))
    costs = [dataclasses.asdict(RunFolder(run).costs()[-1]) for run in (whole, stopped)]
    for name in ("step", "steps", "tokens", "flops"):
        assert costs[0][name] == pytest.approx(costs[1][name]), name
    _other_hparams_for_the_same_run(made, stopped, capsys)


def _other_hparams_for_the_same_run(made, run, capsys):
    changed = f"--hparams={SMALL},batch_size=512,accumulate_steps=2"
    assert train(made, run, changed, "--train_steps=9") == 0
    told = capsys.readouterr().err
    assert "Changed hparams, from here on: batch_size 1024 -> 512, accumulate_steps 1 -> 2." in told
    assert json.loads((run / "hparams.json").read_text())["batch_size"] == 512

    noted = (run / "flags.txt").read_text()
    assert train(made, run, "--train_steps=9") == 1  # without --hparams: another model
    told = capsys.readouterr().err
    assert "holds a run of another model:" in told
    assert "hidden_size 8 -> 32, filter_size 8 -> 64" in told
    assert (run / "flags.txt").read_text() == noted  # a command that is refused leaves the run alone

    assert train(made, run, f"{changed},dtype_policy=mixed_float16", "--train_steps=9") == 1
    assert "A run's dtype_policy cannot change." in capsys.readouterr().err

    assert train(made, run, changed, "--train_steps=9", "--problem=twenty_words_rev") == 1
    told = capsys.readouterr().err
    assert "holds a run of another problem or vocabulary: twenty_words. Received: twenty_words_rev." in told


def test_ctrl_c_has_status_130(made, tmp_path, monkeypatch, capsys):
    def ctrl_c(batches):
        signal.raise_signal(signal.SIGINT)
        return StepResult(loss=1.0, tokens=10.0, positions=12.0)

    monkeypatch.setattr(loop, "make_train_step", lambda *_: ctrl_c)
    assert small(made, tmp_path / "run", "--train_steps=8") == 130
    assert "Stopped by SIGINT at step 1" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_killed_then_run_again_in_a_process_of_its_own(made, tmp_path, capsys):
    """SIGKILL leaves no time to save: the last checkpoint counts. And the terminal shows nothing of TensorFlow's."""
    run = tmp_path / "run"
    command = [sys.executable, "-m", "t2tlite.bin.t2t_trainer", *trainer_flags(made, run, f"--hparams={SMALL}")]
    flags_of_run = ["--train_steps=100000", "--save_checkpoints_secs=0", "--keep_checkpoint_max=3"]
    with subprocess.Popen([*command, *flags_of_run], stderr=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + 120
        while not (run / "checkpoint").exists() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        process.kill()
        told = process.communicate()[1]
    assert process.returncode == -signal.SIGKILL, told
    for noise in ("oneDNN", "cudart", "cuInit", "InitializeLog", "WARNING:", "Traceback"):
        assert noise not in told
    reached = int(checkpoint_names(run)[-1].split("-")[1])

    assert small(made, run, f"--train_steps={reached + 1}") == 0
    assert f"resuming from step {reached:,}." in capsys.readouterr().err


def test_nothing_to_do_and_the_problem_not_named(made, copy, capsys):
    given = [flag for flag in trainer_flags(made, copy, "--train_steps=100") if "--problem" not in flag]
    assert t2t_trainer.main(given) == 0  # the data directory holds one problem
    told = capsys.readouterr()
    assert "Nothing to train: the run is at step 120 of 100. More needs --train_steps." in told.err
    assert "Trained twenty_words: dev loss" in told.out
    assert RunFolder(copy).costs() == RunFolder(made.run).costs()


def test_damaged_newest_checkpoint(made, copy, capsys):
    data = copy / "model.ckpt-120.data-00000-of-00001"
    data.write_bytes(data.read_bytes()[:100])
    assert train(made, copy, "--train_steps=200") == 1
    told = capsys.readouterr().err
    assert f"Checkpoint {copy}/model.ckpt-120 cannot be restored: " in told
    assert "if it is damaged, delete it to resume from the one before." in told
    assert "Traceback" not in told


def test_a_run_that_saved_nothing_may_become_another_model(made, tmp_path, monkeypatch):
    def no_training(*args):
        raise ValueError("something is wrong")

    monkeypatch.setattr(training_run, "train", no_training)
    run = tmp_path / "run"
    assert small(made, run) == 1
    assert train(made, run) == 1
    assert HParams.from_json((run / "hparams.json").read_text()).hidden_size == 32


# ends other than the last step


def test_loss_that_is_no_number_stops_the_run(made, tmp_path, capsys):
    flags_of_run = ["--train_steps=50", "--local_eval_frequency=5", "--save_checkpoints_secs=0"]
    assert train(made, tmp_path / "run", f"--hparams={SMALL},learning_rate_constant=1e30", *flags_of_run) == 1
    told = capsys.readouterr().err
    found = re.search(r"The loss became (nan|inf) at step (\d+)\. Checkpoints from before are intact\.", told)
    assert found
    assert int(found[2]) > max([0, *(int(name.split("-")[1]) for name in checkpoint_names(tmp_path / "run"))])


def test_warm_start_early_stopping_and_what_is_kept(made, tmp_path, capsys):
    """From a trained run, with a learning rate that destroys it: the first evaluation stays the best."""
    run = tmp_path / "run"
    hparams = "--hparams=learning_rate_constant=10,learning_rate_warmup_steps=1000"
    how = ["--local_eval_frequency=2", "--early_stopping_evals=3", "--keep_checkpoint_max=2", "--train_steps=100"]
    assert train(made, run, hparams, *how, f"--warm_start_from={made.run}") == 0
    told = capsys.readouterr().err
    assert f"Starting from the weights of {made.run}/model.ckpt-120." in told
    losses = [float(loss) for loss in re.findall(r"dev loss (\d+\.\d+)", told)]
    assert losses[0] < 1  # an untrained model has ln 500 = 6.2
    best = json.loads((run / "best" / "best.json").read_text())
    stop = best["step"] + 6  # three evaluations, every two steps
    assert f"Stopping early at step {stop}: 3 evaluations without a better one." in told
    assert checkpoint_names(run) == [f"model.ckpt-{stop - 2}", f"model.ckpt-{stop}"]
    assert checkpoint_names(run / "best") == [f"model.ckpt-{best['step']}"]
    assert best["loss"] == pytest.approx(min(losses), abs=1e-4)

    assert train(made, run, hparams, *how) == 0
    assert f"Nothing to train: the run stopped early at step {stop}." in capsys.readouterr().err
    assert checkpoint_names(run)[-1] == f"model.ckpt-{stop}"


def test_bleu_of_dev(made, tmp_path, capsys):
    run, source = tmp_path / "run", made.run / "model.ckpt-120"
    hparams = "--hparams=learning_rate_constant=1e-9"
    assert train(made, run, hparams, f"--warm_start_from={source}", "--train_steps=1", "--eval_bleu") == 0
    bleu = float(re.search(r"step 1: .*, BLEU (\d+\.\d\d) \(best so far\)", capsys.readouterr().err)[1])
    assert bleu > 80
    assert json.loads((run / "best" / "best.json").read_text())["bleu"] == pytest.approx(bleu, abs=0.01)
    assert events(run)["dev/bleu"] == [1]


def test_warm_start_with_the_hparams_of_that_run(made, tmp_path, capsys):
    """120 steps, of which 60 of warm-up: the new rate, at its peak, is that of update 120."""
    flags = [f"--data_dir={made.data}", f"--warm_start_from={made.run}", f"--output_dir={tmp_path}", "--train_steps=1"]
    assert t2t_trainer.main([*flags, "--hparams=label_smoothing=0.2"]) == 0
    told = capsys.readouterr().err
    assert f"the hparams of {made.run}, with learning_rate_constant=0.2828, so that" in told  # 0.4 / root of 2
    ours, theirs = RunFolder(tmp_path).hparams(), RunFolder(made.run).hparams()
    assert ours.diff(theirs) == {"learning_rate_constant": (0.2828, 0.4), "label_smoothing": (0.2, 0.1)}
    rates = [PaperSchedule(32, 60, hparams.learning_rate_constant) for hparams in (ours, theirs)]
    assert float(rates[0](59)) == pytest.approx(float(rates[1](119)), rel=1e-3)


def test_warm_start_from_another_shape(made, tmp_path, capsys):
    assert small(made, tmp_path / "run", f"--warm_start_from={made.run}") == 1
    told = capsys.readouterr().err
    assert f"Checkpoint {made.run}/model.ckpt-120 cannot be restored: the model's embedding/" in told
    assert "has the shape [500, 8], but its shape there is [500, 32]." in told


def test_warm_start_from_another_vocabulary_is_said(made, copy, tmp_path, monkeypatch, capsys):
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["vocabulary"]["sha256"] = "0" * 64
    (copy / "manifest.json").write_text(json.dumps(manifest))
    monkeypatch.setattr(training_run, "train", lambda *_: training_run.Evaluation(1.0, 0.5, 10))
    assert train(made, tmp_path / "run", f"--warm_start_from={copy / 'best'}") == 0
    assert f"The run in {copy} has another vocabulary than twenty_words" in capsys.readouterr().err


def test_warm_start_from_nothing(made, tmp_path, capsys):
    assert train(made, tmp_path / "run", f"--warm_start_from={tmp_path}/absent") == 1
    assert f"There is no checkpoint at {tmp_path}/absent." in capsys.readouterr().err
    assert not (tmp_path / "run").exists()


def test_reversed_problem_uses_the_same_data(made, tmp_path, capsys):
    before = sorted(path.name for path in made.data.rglob("*"))
    run = tmp_path / "run"
    assert small(made, run, "--problem=twenty_words_rev", "--train_steps=1") == 0
    assert sorted(path.name for path in made.data.rglob("*")) == before
    assert "Trained twenty_words_rev" in capsys.readouterr().out

    assert t2t_decoder.main([f"--output_dir={run}", "--split=test", "--decode_hparams=beam_size=1"]) == 0
    shown = capsys.readouterr().out
    assert re.search(r"^source +(katze|hund|maus|vogel|fisch|pferd) ", shown, re.MULTILINE)
    assert re.search(r"^reference .*(cat|dog|mouse|bird|fish|horse)", shown, re.MULTILINE)


# help


def test_help_names_every_flag_and_needs_no_tensorflow():
    code = "import sys; from t2tlite.bin.t2t_trainer import main; main(['--help']); print('tensorflow' in sys.modules)"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for name, flag in flags.definitions(t2t_trainer.main.names).items():
        assert re.search(rf"^  --(\[no\])?{name}$", shown, re.MULTILINE), name
        assert flag.help[:40] in shown
    assert shown.endswith("False\n")
