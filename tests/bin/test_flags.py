"""Flag values: notations, several values of a flag, flag files, what is recorded."""

import dataclasses
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

import t2tlite.hparams
import t2tlite.problems  # noqa: F401
from t2tlite.bin import groups
from t2tlite.bin.command import Command
from t2tlite.bin.flags import parse, require
from t2tlite.checked_fields import checked_field, optional_field, required_field
from t2tlite.training.loop_config import LoopOptions


@dataclasses.dataclass(frozen=True)
class Toy(groups.ProblemFlags, groups.PackageFlags):
    """The flags of most tests."""

    generate_data: bool = checked_field(False, "Make data.")
    hparams: str = checked_field("", "Changes.")
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Required(groups.ProblemFlags):
    """Flags that must be given."""

    output_dir: tuple[str, ...] = required_field(tuple, "Folder.")
    gold: str = required_field(str, "File.")
    vocabularies: tuple[str, ...] = required_field(tuple, "Files.")


@dataclasses.dataclass(frozen=True)
class Recorded(LoopOptions, groups.TrainingFlags):
    """Flags with defaults."""

    seeds: tuple[str, ...] = checked_field(("1",), "Seeds.")
    n: int | None = optional_field(int, "Number.")
    lowercase: bool = checked_field(False, "Ignore case.")


def refused(capsys, *argv: str) -> str:
    """The message of a command that refuses its flags."""
    command = Command(Toy, "Doc.", lambda flags: pytest.fail("must not run"))
    assert command(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("t2tlite: ")
    assert err.count("\n") == 1
    return err.removeprefix("t2tlite: ")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        ([], Toy()),
        (["--generate_data"], Toy(generate_data=True)),
        (["--generate_data=false"], Toy()),
        (["--generate_data", "--generate_data=true"], Toy(generate_data=True)),
        (["--nogenerate_data"], Toy()),
        (["--problem", "p", "-hparams", "a=1"], Toy(problem="p", hparams="a=1")),
        (["--problem=a", "--problem=a"], Toy(problem="a")),
        (["--vocab_size=08", "--vocab_size=8"], Toy(options={"vocab_size": 8})),
        (["-vocab_size", "5"], Toy(options={"vocab_size": 5})),
        (["--max_length_ratio=1.5"], Toy(options={"max_length_ratio": 1.5})),
        # lists and maps add up
        (["--train_source=a,b", "--train_source", "c"], Toy(options={"train_source": ("a", "b", "c")})),
        (["--user_symbols=<2de>", "--user_symbols=<2fr>"], Toy(options={"user_symbols": ("<2de>", "<2fr>")})),
        (["--hparams=x=1, y=2", "--hparams=z=3"], Toy(hparams="x=1, y=2,z=3")),
    ],
)  # fmt: skip
def test_values(argv, expected):
    assert parse(Toy, argv) == expected


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--probelm=x"], "Unknown command line flag 'probelm'. Did you mean: problem? --help lists the flags."),
        (["--vocab_sise=5"], "Unknown command line flag 'vocab_sise'. Did you mean: vocab_size?"),
        # tensor2tensor's
        (["--schedule=train"], "Unknown command line flag 'schedule'. For tensor2tensor's schedule: leave it out"),
        (["--noexport_saved_model"], "Unknown command line flag 'noexport_saved_model'"),
        (["--ps_replicas=2"], "For tensor2tensor's ps_replicas: the variable TF_CONFIG. --help lists the flags."),
        (["--hp_num_heads=2"], "For tensor2tensor's hp_num_heads: --hparams=num_heads=2."),
        # another command's
        (["--data_dir=x"], "Unknown command line flag 'data_dir'"),
        (["--vocab_size=many"], "--vocab_size must be a whole number. Received: 'many'."),
        (["--vocab_size=1.5"], "vocab_size must be a whole number. Received: '1.5'"),
        (["--vocab_size="], "vocab_size must be a whole number. Received: ''"),
        (["--max_length_ratio=a=b: c"], "max_length_ratio must be a number. Received: 'a=b: c'"),
        (["--generate_data=maybe"], "generate_data must be true or false. Received: 'maybe'"),
        (["--problem"], "Missing value for flag --problem"),
        (["--problem=x", "a", "b"], "Received: 'a b'."),
        # two values where one counts
        (["--problem=a", "--problem=b"], "--problem must be given once. Received: a and b."),
        (["--vocab_size=5", "--hparams=", "--vocab_size", "6"], "Received: 5 and 6."),
        (["--generate_data", "--nogenerate_data"], "Received: true and false."),
    ],
)  # fmt: skip
def test_a_bad_command_line(capsys, argv, message):
    assert message in refused(capsys, *argv)


# flag files


def test_the_command_line_overrides_its_flag_file(tmp_path):
    file = tmp_path / "flags.txt"
    lines = (
        "--problem=p",
        "--vocab_size=5",
        "--generate_data",
        "--hparams=a=1,b=2",
        "--train_source=a",
        "--dev_source=d",
    )
    file.write_text("\r\n".join(lines), encoding="utf-8-sig")
    changes = ["--hparams=b=3,c=4", "--vocab_size=6", "--train_source=x,y"]
    options = {"vocab_size": 6, "train_source": ("x", "y"), "dev_source": ("d",)}
    expected = Toy(
        problem="p", generate_data=True, hparams="a=1,b=3,c=4", options=options
    )
    assert parse(Toy, [f"--flagfile={file}", *changes]) == expected
    assert parse(Toy, [*changes, f"--flagfile={file}"]) == expected
    # an empty value, say of a variable of a script, changes no hparam
    assert parse(Toy, [f"--flagfile={file}", "--hparams="]).hparams == "a=1,b=2"


def test_several_flag_files(tmp_path):
    """A file may name another, and have comments and blank lines; a later file
    overrides an earlier one.
    """
    base, outer, later = (tmp_path / name for name in ("base", "outer", "later"))
    base.write_text("# t2t-x\n--problem=ä b\n\n// c\n  --hparams=a=1\n", "utf-8")
    outer.write_text(f"--vocab_size=2\n--flagfile={base}\n", encoding="utf-8")
    later.write_text("--vocab_size=3\n", encoding="utf-8")
    flags = parse(Toy, ["--flagfile", str(outer), f"--flagfile={later}"])
    assert flags == Toy(problem="ä b", hparams="a=1", options={"vocab_size": 3})


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("absent", "A text file is required. Received: HERE/absent, which does not"),
        ("binary", "HERE/binary must be UTF-8 with LF at the ends of lines. Received:"),
        ("", "A text file is required. Received: HERE, which is a folder."),
    ],
)
def test_a_flag_file_that_cannot_be_read(tmp_path, capsys, name, message):
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    shown = refused(capsys, f"--flagfile={tmp_path / name}")
    assert shown.startswith(message.replace("HERE", str(tmp_path)))


# required flags, and what is recorded


def test_required_flags():
    given = ["--output_dir=A", "--output_dir=B", "--gold=0", "--vocabularies=a,b"]
    flags = parse(Required, given)
    assert flags.output_dir == ("A", "B")
    assert flags.vocabularies == ("a", "b")
    for words, missing in (
        ([*given[:2], "--gold=", given[3]], r"--gold must be given\. --help has exam"),
        ([], "--output_dir and --gold and --vocabularies must be given"),
        ([*given[:3], "--vocabularies="], "--vocabularies must"),
        ([*given[:3], "--vocabularies=a,"], "--vocabularies must"),
    ):
        with pytest.raises(ValueError, match=f"^{missing}"):
            parse(Required, words)
    require(n=0, problem="p")
    with pytest.raises(ValueError, match=r"^--hparams and --names must be given"):
        require(hparams=None, problem="p", names=("",))


def test_words():
    words = ["--problem=p", "--vocab_size=0", "--train_source=a,b"]
    assert parse(Toy, [*words, "--nogenerate_data"]).words() == words
    words = ['--train_source="a,1",b']  # a comma in a name
    flags = parse(Toy, words)
    assert flags.options == {"train_source": ("a,1", "b")}
    assert flags.words() == words


def test_the_model_may_be_named_as_for_tensor2tensor():
    flags = parse(Recorded, ["--model=transformer", "--output_dir=r"])
    assert str(groups.run_folder(flags)) == "r"
    with pytest.raises(ValueError, match=r"There is no model 'lstm_attention'\."):
        groups.run_folder(parse(Recorded, ["--model=lstm_attention"]))


def test_words_with_defaults():
    flags = parse(Recorded, ["--seeds=1", "--n=6", "--random_seed=1"])
    assert flags.words() == ["--n=6"]  # the others have their defaults
    loop = [f"--{field.name}={field.default}" for field in fields(LoopOptions)]
    expected = ["--seeds=1", "--n=6", *loop]
    assert sorted(flags.words(defaults=True)) == sorted(expected)


# what flags stand for


def test_run_folder():
    def named(*argv: str) -> str:
        return str(groups.run_folder(parse(groups.RunFlags, argv)))

    both = ["--problem=wmt_ende_rev", "--hparams_set=transformer_big"]
    assert named(*both) == "runs/wmt_ende_rev-transformer_big"
    assert named(*both, "--output_dir=elsewhere") == "elsewhere"
    assert named("--output_dir=~/run") == str(Path.home() / "run")
    unnamed = [[], both[:1], both[1:], ["--problem=", both[1]]]
    for argv in (*unnamed, [*both, "--output_dir="]):
        with pytest.raises(
            ValueError, match=r"^--output_dir must be given, or --problem"
        ):
            named(*argv)


def test_a_comma_in_the_name_of_a_file(tmp_path, monkeypatch):
    """A comma separates files, unless there is a file of the whole name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a, b.en").touch()
    argv = "--train_source=a, b.en", "--train_target=a, b.de", "--dev_source=c.en"
    options = parse(Toy, argv).options
    assert options["train_source"] == ("a, b.en",)
    assert options["train_target"] == ("a", "b.de")
    assert options["dev_source"] == ("c.en",)
    quoted = parse(Toy, ['--train_source="a, b.en",c.en']).options
    assert quoted["train_source"] == ("a, b.en", "c.en")


def test_tilde_is_expanded(monkeypatch):
    """The shell leaves the ~ of --name=~/x as it is."""
    monkeypatch.setenv("HOME", "/home/me")
    flags = parse(Toy, ["--t2t_usr_dir=~/a", "--train_source=~/a,~/b", "--problem=~/p"])
    assert (flags.t2t_usr_dir, flags.problem) == ("/home/me/a", "/home/me/p")
    assert flags.options["train_source"] == ("/home/me/a", "/home/me/b")


def test_an_argument_that_is_not_utf_8(capsys):
    """Python keeps such bytes as lone surrogates; TensorFlow cannot name the file."""
    assert refused(capsys, "--train_source=lat\udcedn.en") == (
        "Arguments must be UTF-8, as with LC_ALL=C.UTF-8. Received:"
        " ('--train_source=lat\\udcedn.en',).\n"
    )
