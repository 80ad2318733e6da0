"""Commands without --data_dir and --output_dir: data in `data`, the run in
runs/PROBLEM-HPARAMS_SET.
"""

import shlex

import pytest
from run_command import refusal

from t2tlite.bin import (
    t2t_attention,
    t2t_avg_checkpoints,
    t2t_datagen,
    t2t_decoder,
    t2t_export,
    t2t_report,
    t2t_trainer,
)
from t2tlite.bin.flags import parse

NAMES = ["--problem=twenty_words", "--hparams_set=twenty_words_tiny"]
RUN = "runs/twenty_words-twenty_words_tiny"


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_papers_command_in_an_empty_folder(empty, capsys):
    """Nothing else is given: the folders are reported, and the command that makes the
    data.
    """
    names = "--problem=wmt_ende", "--hparams_set=transformer_big"
    assert refusal(capsys, t2t_trainer, *names) == (
        "t2tlite: There is no finished data of wmt_ende in data. Received: none. Run"
        " t2t-datagen --problem=wmt_ende --data_dir=data (or add --generate_data to this"
        " command).\n"
    )
    assert not list(empty.iterdir())


@pytest.mark.parametrize(
    ("argv", "command"),
    [
        (["--problem=grammar_ende_rev"], "--problem=grammar_ende_rev --data_dir=data"),
        (["--problem=wsj_parsing"], "--problem=wsj_parsing --data_dir=data --tmp_dir=PATH"),
        (["--problem=wsj_parsing_semi", "--tmp_dir=my trees"],
         "--problem=wsj_parsing_semi --data_dir=data '--tmp_dir=my trees' --extra_trees=PATH"),
        (["--problem=parallel_text", "--data_dir=elsewhere"],
         "--problem=parallel_text --data_dir=elsewhere --train_source=PATH --train_target=PATH"
         " --dev_source=PATH --dev_target=PATH"),
    ],
)  # fmt: skip
def test_the_command_that_makes_the_data_is_complete(empty, argv, command, capsys):
    message = refusal(capsys, t2t_trainer, *argv, "--hparams_set=transformer_tiny")
    assert f" Run t2t-datagen {command} (or add --generate_data" in message
    parse(t2t_datagen.DatagenFlags, shlex.split(command))  # it has these flags


COMMANDS = {
    t2t_attention: ["--source=cat"],
    t2t_avg_checkpoints: [],
    t2t_decoder: ["--split=test"],
    t2t_export: ["--export_dir=out", "--format=saved_model"],
    t2t_report: [],
}


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.__name__)
def test_output_dir_that_is_no_run(command, tiny_run, empty, capsys):
    flags = COMMANDS[command]
    message = "--output_dir must be given, or --problem and --hparams_set."
    assert message in refusal(capsys, command, *flags)
    made = "The run must be a folder that t2t-trainer made. Received: "
    # the last has a manifest.json
    for folder in (empty, empty / "absent", tiny_run.data / "twenty_words"):
        message = refusal(capsys, command, f"--output_dir={folder}", *flags)
        assert f"{made}{folder}, which" in message
    assert list(empty.iterdir()) == []
