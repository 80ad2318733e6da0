"""The frame in which every command runs: its help, its messages, its exit status."""

import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

import t2tlite
from t2tlite.bin import command as frame
from t2tlite.bin import t2t_bleu, t2t_datagen, t2t_decoder, t2t_trainer
from t2tlite.bin.command import Command, load_tensorflow
from t2tlite.bin.flags import all_flags_of
from t2tlite.bin.groups import ProblemFlags, TensorFlowFlags
from t2tlite.checked_fields import facts_of


def failing(error: BaseException) -> Command:
    """A command that raises."""

    def run(flags: ProblemFlags) -> None:
        raise error

    return Command(ProblemFlags, "What it does.\n", run)


def nothing(flags: ProblemFlags) -> None:
    """A command that does nothing."""


@pytest.mark.parametrize(
    ("command", "argument", "hint"),
    [
        (t2t_decoder, "--beam_size=3", "Did you mean --decode_hparams=beam_size=3?"),
        (t2t_trainer, "--num_heads", "Did you mean --hparams=num_heads=VALUE?"),
        # a flag is more like it than a field
        (t2t_trainer, "--hparam=num_heads=4", "Did you mean: hparams, "),
    ],
)
def test_fields_of_hparams_are_suggested(capsys, command, argument, hint):
    assert command.main([argument]) == 1
    assert hint in capsys.readouterr().err


def test_an_error_of_ours_keeps_its_traceback():
    with pytest.raises(KeyError, match="ours"):
        failing(KeyError("ours"))([])


ABSENT = FileNotFoundError(2, "No such file or directory", "/proc/x")
UNUSABLE = (
    "/proc/x cannot be used: No such file or directory. Use another path, or change its"
    " permissions."
)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (ValueError("Too long."), 1, "Too long."),
        (FileNotFoundError("Too long."), 1, "Too long."),
        (ABSENT, 1, UNUSABLE),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_an_expected_error_is_one_line(capsys, error, status, message):
    assert failing(error)([]) == status
    assert capsys.readouterr() == ("", f"t2tlite: {message}\n")


def test_messages_name_the_program(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/t2t-datagen", "--problem=p"])
    assert failing(ValueError("Bad."))(None) == 1
    assert capsys.readouterr().err == "t2t-datagen: Bad.\n"
    monkeypatch.setattr(sys, "argv", ["t2t-datagen", "--problem=p", "rest"])
    assert Command(ProblemFlags, "Doc.", nothing)() == 1
    assert "Received: 'rest'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--help", "-h", "-help", "--helpfull", "-?"])
def test_help(capsys, flag):
    command = failing(ValueError("must not run"))
    assert command(["--problem=p", flag]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("What it does.\n\nFlags:\n  --problem\n")
    assert out.count("\n  --flagfile\n") == 1


PROGRAMS = sorted(path.stem for path in Path(frame.__file__).parent.glob("t2t_*.py"))
COMMANDS = {
    name: importlib.import_module(f"t2tlite.bin.{name}").main for name in PROGRAMS
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version_of_every_command(program, capsys):
    main = COMMANDS[program]
    assert main(["--version", "--help"]) == 0
    assert capsys.readouterr() == (f"t2tlite {t2tlite.__version__}\n", "")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    lines = shown.partition("\nFlags:\n")[2].splitlines()
    assert all(len(line) <= 100 for line in lines)
    for name, flag in all_flags_of(main.flags_class).items():
        facts = facts_of(flag)
        is_bool = facts.kind is bool
        assert lines.count(f"  --[no]{name}" if is_bool else f"  --{name}") == 1
        assert facts.meaning[:40] in shown
        # an option of a problem that is not given has the problem's default
        assert not is_bool or not flag.default, name
    assert "(default: )" not in shown
    assert "(default: None)" not in shown
    assert ("(default: 600)" in shown) == ("save_checkpoints_secs" in shown)


def test_help_needs_no_tensorflow():
    code = f"""
import importlib, sys
for name in {PROGRAMS}:
    main = importlib.import_module(f"t2tlite.bin.{{name}}").main
    assert main(["--help"]) == 0, name
    assert "tensorflow" not in sys.modules, name
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


def test_verbosity(capsys, monkeypatch):
    import tensorflow as tf

    level = tf.get_logger().level
    # so that it is as before afterwards
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")

    def run(flags: TensorFlowFlags) -> None:
        load_tensorflow()
        raise ValueError("Bad.")

    command = Command(TensorFlowFlags, "Doc.", run)
    try:
        assert command(["--verbosity=loud"]) == 1
        message = "verbosity must be one of debug, info, warning, error. Received: 'l"
        assert message in capsys.readouterr().err
        assert command(["--verbosity=error"]) == 1
        assert tf.get_logger().level == 40  # logging.ERROR
        # the traceback, for whoever debugs
        with pytest.raises(ValueError, match="Bad"):
            command(["--verbosity=debug"])
        assert tf.get_logger().level == 10
    finally:
        tf.get_logger().setLevel(level)


def test_two_commands_in_one_process(capsys, tmp_path):
    (tmp_path / "text").write_text("one two three four five\n", encoding="utf-8")
    scored = [f"--translation={tmp_path}/text", f"--reference={tmp_path}/text"]
    assert t2t_bleu.main([*scored, "--tokenize=intl"]) == 0
    assert "tok:intl" in capsys.readouterr().out
    assert t2t_datagen.main(["--registry_help"]) == 0
    assert "Hparam sets:" in capsys.readouterr().out
    assert t2t_bleu.main(scored) == 0
    assert "tok:13a" in capsys.readouterr().out  # the first command's flag is forgotten
    assert t2t_datagen.main([]) == 1
    assert "--problem must be given" in capsys.readouterr().err
    assert t2t_bleu.main(["--registry_help"]) == 1  # each knows its own flags alone
    assert "Unknown command line flag 'registry_help'" in capsys.readouterr().err


def test_broken_pipe_exits_quietly():
    """`t2t-datagen --help | head -1`, whose help is longer than head reads."""
    command = [sys.executable, "-m", "t2tlite.bin.t2t_datagen", "--help"]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **pipes) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + 13  # SIGPIPE


WITHOUT_TEMPORARY_FOLDER = """
import sys, tempfile
def no_folder():
    raise FileNotFoundError(2, "No usable temporary directory found")
tempfile._get_default_tempdir = no_folder
from t2tlite.bin import t2t_bleu
assert sys.modules["matplotlib"] is None  # Keras would import it, and it needs a folder
sys.exit(t2t_bleu.main(sys.argv[1:]))
"""


def test_without_a_temporary_folder(tmp_path):
    """portalocker, which sacrebleu imports, asks for its name when it is imported."""
    for name in ("a", "b"):
        (tmp_path / name).write_text("one two three four\n", encoding="utf-8")
    for flags in (["--help"], ["--translation=a", "--reference=b"]):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_TEMPORARY_FOLDER, *flags],
            cwd=tmp_path,
            env={**os.environ, "TMPDIR": str(tmp_path / "none"), "MPLCONFIGDIR": ""},
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (0, "")
        assert "BLEU" in done.stdout
