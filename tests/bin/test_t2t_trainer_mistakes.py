"""What t2t-trainer refuses, and how it says so."""

import pytest
from run_command import refusal, said
from tiny_run import trainer_flags

from t2tlite.bin import t2t_trainer


@pytest.fixture
def refused(tiny_run, tmp_path, capsys):
    """The message of a command that is refused, and leaves no run behind."""
    run = tmp_path / "refused"

    def command(*more):
        flags = trainer_flags(tiny_run, run, *more)
        message = refusal(capsys, t2t_trainer, *flags)
        assert not run.exists()
        return message

    return command


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--hparams_set=twenty_words_tini", "There is no hparam set 'twenty_words_tini'."),
        ("--hparams_set=", "--hparams_set must be given."),
        ("--problem=twenty_word", "There is no problem 'twenty_word'."),
        ("--problem=grammar_ende", "There is no finished data of grammar_ende in "),
        ("--output_dir=", "--output_dir must be given, or --problem and --hparams_set."),
        ("--t2t_usr_dir=absent", "--t2t_usr_dir must be a folder"),
        ("--hparams=hiden_size=8", "hparams has no field 'hiden_size'."),
        ("--train_steps=0", "train_steps must be at least 1."),
        ("--local_eval_frequency=-1", "local_eval_frequency must be at least 0."),
        ("--random_seed=-1", "random_seed must be at least 0 "),
        ("--worker_gpu=99", "--worker_gpu must be at most "),
        ("--vocab_size=500", "--vocab_size must be given with --generate_data."),
    ],
)  # fmt: skip
def test_refused(refused, flag, message):
    assert message in refused(flag)


def test_output_dir_that_cannot_be_made_or_is_a_file(refused, tiny_run, capsys):
    flags = trainer_flags(tiny_run, "/proc/run")
    message = "/proc/run cannot be used: No such file or directory. Use another path, "
    assert message in said(capsys, t2t_trainer, *flags, status=1).err
    file = f"--output_dir={tiny_run.run}/hparams.json"
    assert "--output_dir must be a folder of its own. Received: " in refused(file)


def test_missing_data_names_the_command_that_makes_it(tiny_run, refused, tmp_path):
    none = f"--data_dir={tmp_path}/none"
    command = (
        f"Run t2t-datagen --problem=twenty_words {none}"
        f" --t2t_usr_dir={tiny_run.package} (or add --generate_data to this command)."
    )
    assert command in refused(none)
    message = refused(none, "--problem=")
    assert "Run t2t-datagen --problem=PROBLEM" in message


@pytest.mark.parametrize(
    ("argv", "names"),
    [
        ([], "--problem and --hparams_set"),
        (["--problem=grammar_ende"], "--hparams_set"),
        (["--output_dir=absent"], "--hparams_set"),
    ],
)
def test_required_flags(argv, names, capsys):
    message = refusal(capsys, t2t_trainer, *argv)
    assert message.startswith(f"t2tlite: {names} must be given. ")
