"""The frame in which every command runs: its flags, its messages, its exit status."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

import t2tlite
import t2tlite.problems
from t2tlite.bin import flags, t2t_bleu, t2t_datagen, t2t_decoder, t2t_trainer

NAMES = ("problem problem_options generate_data", "hparams")


def nothing(args: flags.Args) -> None:
    """A command that does nothing."""


def failing(error: BaseException):
    """A command that raises."""

    def run(args: flags.Args) -> None:
        raise error

    return run


def parsed(*argv: str, names: flags.Names = NAMES) -> flags.Args:
    return flags.parse(names, argv)


def test_values_have_their_types():
    args = parsed(
        "--problem=p", "--vocab_size=8000", "--max_length_ratio=1.5", "--train_source=a,b", "--generate_data",
        "--hparams=a=1,b=2",
    )  # fmt: skip
    assert vars(args) == {
        "problem": "p",
        "generate_data": True,
        "hparams": "a=1,b=2",
        "options": {
            "vocab_size": 8000,
            "max_length_ratio": 1.5,
            "train_source": ("a", "b"),
        },
    }


def test_values_that_are_not_given():
    assert vars(parsed()) == {
        "problem": None,
        "generate_data": False,
        "hparams": "",
        "options": {},
    }


def test_notations_of_values():
    assert parsed("--generate_data").generate_data is True
    assert parsed("--generate_data=false").generate_data is False
    assert parsed("--nogenerate_data").generate_data is False
    assert parsed("--problem", "p", "-vocab_size", "5").options == {"vocab_size": 5}


# what several values of a flag mean


def test_lists_and_maps_add_up():
    args = parsed(
        "--train_source=a,b", "--hparams=x=1, y=2", "--train_source", "c",
        "--hparams=z=3,x=1", "--user_symbols=<2de>", "--user_symbols=<2fr>",
    )  # fmt: skip
    assert args.options == {
        "train_source": ("a", "b", "c"),
        "user_symbols": ("<2de>", "<2fr>"),
    }
    assert args.hparams == "x=1,y=2,z=3"
    served = parsed("--output_dir=A", "--output_dir=B,C", names=("runs",))
    assert served.output_dir == ["A", "B,C"]


def test_the_same_value_twice_is_one_value():
    args = parsed(
        "--problem=a", "--generate_data", "--problem=a", "--generate_data=true"
    )
    assert (args.problem, args.generate_data) == ("a", True)
    assert parsed("--vocab_size=08", "--vocab_size=8").options == {"vocab_size": 8}


@pytest.mark.parametrize(
    ("argv", "received"),
    [
        (["--problem=a", "--problem=b"], "--problem must be given once. Received: a and"
         " b on the command line. Leave one of them out."),
        (["--vocab_size=5", "--hparams=", "--vocab_size", "6"], "Received: 5 and 6 "),
        (["--generate_data", "--nogenerate_data"], "Received: true and false "),
        (["--hparams=a=1", "--hparams=b=2,a=2"], "--hparams must set each field once."
         " Received: a=1 and a=2 on the command line. Leave one of them out."),
        (["--hparams=a=1,a=2"], "Received: a=1 and a=2 on the command line."),
    ],
)  # fmt: skip
def test_two_values_where_one_counts(capsys, argv, received):
    command = flags.Command("Doc.", NAMES, failing(KeyError("must not run")))
    assert command(argv) == 1
    assert received in capsys.readouterr().err


def test_two_values_in_a_flag_file(tmp_path, capsys):
    file = tmp_path / "flags.txt"
    file.write_text("--problem=a\n--problem=b\n", encoding="utf-8")
    assert flags.Command("Doc.", NAMES, nothing)([f"--flagfile={file}"]) == 1
    assert f"Received: a and b in {file}. " in capsys.readouterr().err


def test_the_command_line_overrides_its_flag_file(tmp_path, capsys):
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
    expected = {
        "problem": "p",
        "generate_data": True,
        "hparams": "a=1,b=3,c=4",
        "options": {
            "vocab_size": 6,
            "train_source": ("x", "y"),
            "dev_source": ("d",),
        },
    }
    assert vars(parsed(f"--flagfile={file}", *changes)) == expected
    assert vars(parsed(*changes, f"--flagfile={file}")) == expected
    # a list that is replaced could have been meant as an addition
    note = f"--train_source=x,y replaces a in {file}.\n"
    assert capsys.readouterr().err == 2 * note
    # an empty value, say of a variable of a script, changes no hparam
    assert parsed(f"--flagfile={file}", "--hparams=").hparams == "a=1,b=2"


def test_flag_files_name_flag_files(tmp_path, capsys):
    base, outer, later = (tmp_path / name for name in ("base", "outer", "later"))
    base.write_text("--problem=base\n--hparams=a=1,b=1,c=1\n", encoding="utf-8")
    outer.write_text(
        f"--hparams=b=2,c=2\n--vocab_size=2\n--flagfile={base}\n", encoding="utf-8"
    )
    later.write_text("--vocab_size=3\n", encoding="utf-8")
    args = parsed("--flagfile", str(outer), f"--flagfile={later}", "--hparams=c=3")
    assert vars(args) == {
        "problem": "base",
        "generate_data": False,
        "hparams": "a=1,b=2,c=3",
        "options": {"vocab_size": 3},
    }
    base.write_text(f"--flagfile={outer}\n", encoding="utf-8")
    assert flags.Command("Doc.", NAMES, nothing)([f"--flagfile={outer}"]) == 1
    assert f"Received: {outer}, which names itself." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("argv", "messages"),
    [
        (
            ["--probelm=x"],
            [
                "Unknown command line flag 'probelm'",
                "Did you mean: problem? --help lists the flags.",
            ],
        ),
        (
            ["--vocab_sise=5"],
            ["Unknown command line flag 'vocab_sise'", "Did you mean: vocab_size?"],
        ),
        (
            ["--vocab_size=many"],
            [
                "--vocab_size must be a whole number. Received: 'many'. --help lists"
                " the flags."
            ],
        ),
        (
            ["--vocab_size=1.5"],
            ["--vocab_size must be a whole number. Received: '1.5'."],
        ),
        (["--vocab_size="], ["--vocab_size must be a whole number. Received: ''."]),
        (
            ["--max_length_ratio=a=b: c"],
            ["--max_length_ratio must be a number. Received: 'a=b: c'."],
        ),
        (
            ["--generate_data=maybe"],
            ["--generate_data must be true or false. Received: 'maybe'."],
        ),
        # not one of this command's
        (["--data_dir=x"], ["Unknown command line flag 'data_dir'"]),
        (
            ["somewhere"],
            ["Every argument is a flag, --name=value. Received: 'somewhere'."],
        ),
        (
            ["--problem=x", "a", "b"],
            ["Every argument is a flag, --name=value. Received: 'a b'."],
        ),
        (["--problem"], ["Missing value for flag --problem"]),
    ],
)
def test_a_bad_command_line(capsys, argv, messages):
    def run(args: flags.Args) -> None:
        raise RuntimeError("a command with a bad command line must not run")

    assert flags.Command("Doc.", NAMES, run)(argv) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("t2tlite: ")
    assert err.count("\n") == 1
    for message in messages:
        assert message in err


@pytest.mark.parametrize(
    ("command", "argument", "hint"),
    [
        (t2t_decoder, "--beam_size=3", "Did you mean --decode_hparams=beam_size=3?"),
        (t2t_decoder, "--beam_sise=3", "Did you mean --decode_hparams=beam_size=3?"),
        (t2t_trainer, "--num_heads", "Did you mean --hparams=num_heads=VALUE?"),
        # a flag is more like it than a field
        (t2t_trainer, "--hparam=num_heads=4", "Did you mean: hparams, "),
        (t2t_trainer, "--sausage=3", "Unknown command line flag 'sausage'. --help"),
    ],
)
def test_fields_of_hparams_are_suggested(capsys, command, argument, hint):
    assert command.main([argument]) == 1
    assert hint in capsys.readouterr().err


def test_wrong_values_are_refused_before_the_command_runs(capsys):
    ran = []
    assert (
        flags.Command(
            "Doc.", NAMES, ran.append, check=failing(ValueError("Bad format."))
        )([])
        == 1
    )
    assert (ran, "Bad format." in capsys.readouterr().err) == ([], True)


def test_an_error_of_ours_keeps_its_traceback():
    with pytest.raises(KeyError, match="ours"):
        flags.Command("Doc.", NAMES, failing(KeyError("ours")))([])


ABSENT = FileNotFoundError(2, "No such file or directory", "/proc/x")


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        *(
            (kind("Too long."), 1, "Too long.")
            for kind in (ValueError, FileNotFoundError, flags.CommandError)
        ),
        (
            ABSENT,
            1,
            (
                "/proc/x cannot be used: No such file or directory. Use another path,"
                " or change its permissions."
            ),
        ),
        (KeyboardInterrupt(), 130, "Interrupted."),
    ],
)
def test_an_expected_error_is_one_line(capsys, error, status, message):
    assert flags.Command("Doc.", NAMES, failing(error))([]) == status
    assert capsys.readouterr() == ("", f"t2tlite: {message}\n")


def test_messages_name_the_program(capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["/usr/bin/t2t-datagen", "--problem=p"])
    assert flags.Command("Doc.", NAMES, failing(ValueError("Bad.")))(None) == 1
    assert capsys.readouterr().err == "t2t-datagen: Bad.\n"
    monkeypatch.setattr(sys, "argv", ["t2t-datagen", "--problem=p", "rest"])
    assert flags.Command("Doc.", NAMES, nothing)() == 1
    assert "Received: 'rest'" in capsys.readouterr().err


@pytest.mark.parametrize("flag", ["--help", "-h", "-help", "--helpfull", "-?"])
def test_help(capsys, flag):
    assert (
        flags.Command("What it does.\n", NAMES, failing(ValueError("must not run")))(
            ["--problem=p", flag]
        )
        == 0
    )
    out, err = capsys.readouterr()
    assert err == ""
    assert out.startswith("What it does.\n\nFlags:\n")
    for name in flags.definitions(NAMES):
        assert out.count(f"  --{name}\n") + out.count(f"  --[no]{name}\n") == 1


PROGRAMS = sorted(path.stem for path in Path(flags.__file__).parent.glob("t2t_*.py"))
EXPLAINED = {
    "t2t_avg_checkpoints": ["--checkpoint_path=averaged"],
    "t2t_bleu": ["t2t-bleu --translation=out.de --reference=newstest2014.de"],
    "t2t_datagen": ["--problem=grammar_ende", "--train_source", "--problem=wmt_ende"],
    "t2t_evalb": ["t2t-evalb --gold=wsj23.gold --predicted=out.trees"],
    "t2t_table3": ["hs256 halves the width"],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_help_and_version_of_every_command(program, capsys):
    main = importlib.import_module(f"t2tlite.bin.{program}").main
    assert main(["--version", "--help"]) == 0
    assert capsys.readouterr() == (f"t2tlite {t2tlite.__version__}\n", "")
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    assert [words for words in EXPLAINED.get(program, []) if words not in shown] == []
    for name, flag in flags.definitions(main.names).items():
        assert re.search(rf"^  --(\[no\])?{name}$", shown, re.MULTILINE), name
        assert flag.help[:40] in shown


def test_help_and_sets_need_no_tensorflow():
    code = f"import importlib, sys\nfor name in {PROGRAMS}:\n"
    code += (
        "    main = importlib.import_module(f't2tlite.bin.{name}').main\n    assert"
        " main(['--help']) == 0, name\n"
    )
    code += (
        "    assert name != 't2t_trainer' or main(['--show_hparams=transformer_base'])"
        " == 0\n"
    )
    code += "    assert 'tensorflow' not in sys.modules, name"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_help_of_every_flag():
    names = (*flags.DEFINITIONS, flags.PROBLEM_OPTIONS)
    text = flags.help_text("Doc.", names)
    lines = text.splitlines()
    assert all(len(line) <= 100 for line in lines)
    for name, flag in flags.definitions(names).items():
        shown = f"  --[no]{name}" if flag.kind is bool else f"  --{name}"
        assert lines.count(shown) == 1
        if flag.kind is bool:
            assert flag.default is False, name
    assert "(default: 600)" in text
    assert "(default: )" not in text
    assert "(default: None)" not in text


def test_flags_are_tensor2tensors():
    theirs = """problem hparams_set hparams data_dir tmp_dir output_dir generate_data train_steps eval_steps
        local_eval_frequency save_checkpoints_secs keep_checkpoint_max worker_gpu random_seed warm_start_from
        t2t_usr_dir registry_help decode_hparams decode_from_file decode_to_file decode_interactive checkpoint_path
        score_file""".split()
    assert set(theirs) <= set(flags.DEFINITIONS)


TEXT_FLAGS = {"source", "target", "word"}


def test_tilde_is_expanded_in_every_flag_but_text(monkeypatch):
    """The shell leaves the ~ of --name=~/x as it is."""
    monkeypatch.setenv("HOME", "/home/someone")
    names = (*flags.DEFINITIONS, flags.PROBLEM_OPTIONS)
    known = {
        name: flag
        for name, flag in flags.definitions(names).items()
        if flag.kind in (str, list)
    }
    assert {
        "decode_to_file",
        "html",
        "warm_start_from",
        "train_source",
        "vocab_file",
        "t2t_vocab",
    } < set(known)
    args = flags.parse(
        names,
        [f"--{name}=~/a{',~/b' * (flag.kind is list)}" for name, flag in known.items()],
    )
    for name, flag in known.items():
        value = args.options[name] if name in args.options else getattr(args, name)
        if name in TEXT_FLAGS:
            assert value == "~/a", name
        else:
            paths = (
                ["/home/someone/a", "/home/someone/b"]
                if flag.kind is list
                else "/home/someone/a"
            )
            assert (list(value) if flag.kind is list else value) == paths, name


# what flags stand for


def test_run_folder():
    def named(*argv: str) -> str:
        return str(
            flags.run_folder(
                parsed(*argv, names=("problem", "hparams_set", "output_dir"))
            )
        )

    both = ["--problem=wmt_ende_rev", "--hparams_set=transformer_big"]
    assert named(*both) == "runs/wmt_ende_rev-transformer_big"
    assert named(*both, "--output_dir=elsewhere") == "elsewhere"
    assert named("--output_dir=~/run") == str(Path.home() / "run")
    message = (
        r"^--output_dir must be given, or --problem and --hparams_set for the run in"
        r" runs/PROBLEM-HPARAMS_SET\.$"
    )
    for argv in (
        [],
        both[:1],
        both[1:],
        [*both, "--output_dir="],
        ["--problem=", both[1]],
    ):
        with pytest.raises(flags.CommandError, match=message):
            named(*argv)


def test_words_and_what_is_recorded():
    args = parsed(
        "--problem=p", "--vocab_size=0", "--train_source=a,b", "--nogenerate_data"
    )
    assert flags.words(args) == ["--problem=p", "--vocab_size=0", "--train_source=a,b"]
    args = parsed('--train_source="a,1",b')  # a comma in a name
    assert flags.words(args) == ['--train_source="a,1",b']
    assert parsed(*flags.words(args)).options == {"train_source": ("a,1", "b")}
    args = parsed(
        "--seeds=1",
        "--n=6",
        names=("seeds", "n", "random_seed", "hparams", "lowercase"),
    )
    assert flags.words(args) == ["--n=6"]  # the others have their defaults
    assert flags.words(args, defaults=True) == ["--seeds=1", "--n=6", "--random_seed=1"]


def test_flags_from_a_file(tmp_path, capsys):
    """Comments and blank lines do not count."""
    text = "# t2t-x\n--problem=ä b\n\n// c\n--generate_data=True\n  --hparams=a=1\n"
    (tmp_path / "flags.txt").write_text(text, encoding="utf-8")
    assert vars(parsed(f"--flagfile={tmp_path}/flags.txt")) == {
        "problem": "ä b",
        "generate_data": True,
        "hparams": "a=1",
        "options": {},
    }
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    for file in (tmp_path / "absent", tmp_path / "binary", tmp_path, ""):
        assert flags.Command("Doc.", NAMES, nothing)([f"--flagfile={file}"]) == 1
        stderr = capsys.readouterr().err
        assert stderr.startswith(
            "t2tlite: --flagfile must be a text file with a flag on each line."
            " Received: "
        )
        assert stderr.count("\n") == 1
    assert "  --flagfile\n" in flags.help_text("Doc.", NAMES)


def test_require():
    args = parsed(
        "--problem=p", "--n=0", names=("problem", "n", "hparams", "t2t_vocab")
    )
    flags.require(args, "problem", "n")
    with pytest.raises(
        flags.CommandError,
        match=r"^--hparams must be given\. --help explains the flags\.$",
    ):
        flags.require(args, "problem", "hparams")
    with pytest.raises(
        flags.CommandError, match=r"^--hparams and --t2t_vocab must be given\."
    ):
        flags.require(args, "hparams", "problem", "t2t_vocab")


def test_verbosity(capsys, monkeypatch):
    import tensorflow as tf

    level = tf.get_logger().level
    # so that it is as before afterwards
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "3")
    names = ("problem", "verbosity")
    try:
        assert flags.Command("Doc.", names, nothing)(["--verbosity=loud"]) == 1
        message = (
            "--verbosity must be one of debug, info, warning, error. Received: 'loud'."
        )
        assert message in capsys.readouterr().err
        assert (
            flags.Command("Doc.", names, failing(ValueError("Bad.")))(
                ["--verbosity=error"]
            )
            == 1
        )
        assert tf.get_logger().level == 40  # logging.ERROR
        # the traceback, for whoever debugs
        with pytest.raises(ValueError, match="Bad"):
            flags.Command("Doc.", names, failing(ValueError("Bad.")))(
                ["--verbosity=debug"]
            )
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


def test_as_a_process_of_its_own(tmp_path):
    command = [sys.executable, "-m", "t2tlite.bin.t2t_datagen", "--help"]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(t2t_datagen.__doc__.strip())
    for name in flags.definitions(t2t_datagen.main.names):
        assert f"{name}\n" in done.stdout


def test_broken_pipe_exits_quietly():
    """`t2t-datagen --help | head -1`, whose help is longer than head reads."""
    code = (
        "import sys; from t2tlite.bin import t2t_datagen; sys.exit(t2t_datagen.main())"
    )
    command = [sys.executable, "-c", code, "--help"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 128 + 13  # SIGPIPE
