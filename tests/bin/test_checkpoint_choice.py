"""Newest, best or averaged: what t2t-trainer and t2t-decoder say of a run's
checkpoints, and what they use.
"""

import shutil

import pytest
from tiny_run import small

from t2tlite.bin import t2t_decoder
from t2tlite.run_folder import RunFolder

EVERY_2 = "--local_eval_frequency=2"


@pytest.fixture
def decode(tiny_run_copy, eagerly, tmp_path):
    """Decodes a sentence greedily with the copy of the run, and returns the exit
    status.
    """
    (tmp_path / "in.txt").write_text("red cat sees dog\n")
    command = [f"--output_dir={tiny_run_copy}", f"--decode_from_file={tmp_path}/in.txt"]
    return lambda *more: t2t_decoder.main(
        [*command, "--decode_hparams=beam_size=1", *more]
    )


def last_lines(capsys):
    """What the trainer prints after the line with the folder."""
    return capsys.readouterr().out.partition("The run is in ")[2].splitlines()[1:]


def test_last_lines_name_the_newest_and_the_best_checkpoint(
    tiny_run, tmp_path, fake_dev_losses, capsys
):
    fake_dev_losses += [2.0, 3.0, 2.5]
    assert small(tiny_run, tmp_path / "run", EVERY_2, "--train_steps=6") == 0
    newest, best, cost = last_lines(capsys)
    assert cost.startswith("Training cost: ")
    assert newest == "Newest checkpoint: step 6. t2t-decoder uses it by default."
    metrics = "dev loss 2.0000, perplexity 7.389, accuracy 0.5000"
    assert best == (
        f"Best checkpoint by dev loss, step 2: {metrics}. --checkpoint_path=best uses"
        " it."
    )


def choose_best(tiny_run_copy, step):
    """Makes the run's checkpoint of that step its best."""
    run = RunFolder(tiny_run_copy)
    shutil.rmtree(run.best_folder)
    run.best_folder.mkdir()
    for file in tiny_run_copy.glob(f"model.ckpt-{step}.*"):
        shutil.copy(file, run.best_folder)
    return run


def test_the_newest_is_used_and_the_best_named(tiny_run_copy, decode, capsys):
    choose_best(tiny_run_copy, 80)
    assert decode() == 0
    said = capsys.readouterr()
    assert said.out == "katze rot hund sieht\n"
    remark = (
        "Using the newest checkpoint, of step 120; the best by dev, of step 80, is"
        " --checkpoint_path=best."
    )
    assert said.err.splitlines()[0] == remark
