"""Flags that are derived from the fields they fill: of the training loop, and the
options of problems.
"""

import dataclasses

import pytest

from t2tlite import registry
from t2tlite.bin import flags
from t2tlite.bin.definitions import problem_flags
from t2tlite.checked_fields import CheckedFields, checked_field, facts_of
from t2tlite.config import DecodeHParams
from t2tlite.data.problem import Problem, option
from t2tlite.training.loop_config import LoopConfig


def test_the_training_loops_flags(capsys):
    """Every field of LoopConfig is a flag with the field's default, and fills that
    field.
    """
    kept: list[flags.Args] = []
    command = flags.Command("Doc.", [LoopConfig], kept.append)
    assert command([]) == 0
    assert flags.filled(LoopConfig, kept[0], train_steps=7) == LoopConfig(train_steps=7)
    given = {
        field.name: number
        for number, field in enumerate(dataclasses.fields(LoopConfig), start=1)
    }
    assert command([f"--{name}={value}" for name, value in given.items()]) == 0
    assert flags.filled(LoopConfig, kept[1], train_steps=7) == LoopConfig(**given)
    assert command(["--help"]) == 0
    keep = (
        "Number of newest checkpoints to keep, besides the best on dev. (default: 20)"
    )
    assert f"  --keep_checkpoint_max\n      {keep}\n" in capsys.readouterr().out


def test_flags_of_a_class():
    """Text, lists, values that need not be given, and ranges; a value out of range
    names the flag.
    """

    @dataclasses.dataclass(frozen=True)
    class Options(CheckedFields):
        port: int = checked_field(5000, "Port.", low=0, high=65535)
        api_key: str = checked_field("", "Key.")
        languages: tuple[str, ...] = checked_field((), "Languages.")
        folder: str | None = checked_field(None, "Folder.", kind=str)
        timeout_s: float = checked_field(60.0, "Seconds.")

    kept: list[flags.Args] = []
    command = flags.Command("Doc.", ["verbosity", Options], kept.append)
    assert (
        command(
            [
                "--verbosity=error",
                "--languages=en-de,de-en",
                "--timeout_s=2",
                "--folder=",
            ]
        )
        == 0
    )
    assert flags.filled(Options, kept[0]) == Options(
        5000, "", ("en-de", "de-en"), "", 2.0
    )
    assert command(["--verbosity=error", "--port=70000"]) == 0
    assert flags.filled(Options, kept[0], port=80).port == 5000
    with pytest.raises(
        ValueError,
        match=r"^port must be at least 0 and at most 65535\. Received: 70000\.$",
    ):
        flags.filled(Options, kept[1])


def test_decode_hparams_are_explained():
    """Every field with its default and its meaning."""
    text = flags.DEFINITIONS["decode_hparams"].help
    for field in dataclasses.fields(DecodeHParams):
        assert f"{field.name}={field.default}: {facts_of(field).meaning}" in text
        assert facts_of(field).meaning, field.name


def test_options_of_our_problems():
    """Those that a command has always had, each with a help text that its problem's
    field holds.
    """
    import t2tlite.problems  # noqa: F401

    options = """vocab_size vocab_type vocab_file max_length max_length_ratio train_source train_target dev_source
        dev_target test_source test_target source_language target_language train_size linearisation fragments
        extra_trees""".split()
    actual = problem_flags()
    assert set(options) <= actual.keys()
    for name in set(options):
        assert "Explained in" not in actual[name].help, name
        assert actual[name].default is None
    kinds = {
        name: actual[name].kind
        for name in ("vocab_size", "vocab_type", "vocab_file", "max_length_ratio")
    }
    assert kinds == {
        "vocab_size": int,
        "vocab_type": str,
        "vocab_file": list,
        "max_length_ratio": float,
    }
    assert (
        "of about vocab_size pieces. (default: sentencepiece)"
        in actual["vocab_type"].help
    )
    assert actual["extra_trees"].help.startswith(
        "wsj_parsing_semi: Additional training files"
    )


def test_options_of_other_problems(monkeypatch):
    """A field without a help text, of several problems, with another default, of no
    simple type; wrong values.
    """
    monkeypatch.setattr(registry, "_problems", {})

    @registry.register_problem
    @dataclasses.dataclass(frozen=True)
    class First(Problem):
        """First."""

        vocab_size: int = 100
        shuffled: bool = False
        words: tuple[str, ...] = option((), "Words.")

    @registry.register_problem
    @dataclasses.dataclass(frozen=True)
    class Second(First):
        """Second."""

        vocab_size: int = 200
        nothing: str | None = None

    @registry.register_problem
    @dataclasses.dataclass(frozen=True)
    class Third(Problem):
        """Third."""

        vocab_size: int = 300

    actual = problem_flags()
    share = (
        "Pieces in the vocabulary that source and target share; 0: by the number of"
        " training pairs, 50 times its square root in thousands, 1,000 to 32,000. Text"
        " that is too small for the default gives as many as it allows; one whose"
        " characters need more, more. (default: the problem's)"
    )
    assert actual["vocab_size"] == (share, int, None)
    assert actual["words"] == ("first, second: Words.", list, None)
    explained = f"first, second: Explained in {__name__}.First. (default: False)"
    assert actual["shuffled"] == (explained, bool, None)
    assert "nothing" not in actual
    assert "reverse" not in actual
    assert Second(nothing="any").nothing == "any"
    with pytest.raises(
        ValueError, match=r"^vocab_size must be of type int\. Received: '200'\.$"
    ):
        Second(vocab_size="200")


def test_options_of_a_users_problem(monkeypatch, tmp_path, capsys):
    """They are flags, though they are known only after --t2t_usr_dir is imported."""
    monkeypatch.setattr(registry, "_problems", {})
    package = tmp_path / "my_flags_package"
    package.mkdir()
    (package / "__init__.py").write_text(
        "import dataclasses\n"
        "from t2tlite import registry\n"
        "from t2tlite.data.problem import Problem, option\n"
        "@registry.register_problem\n"
        "@dataclasses.dataclass(frozen=True)\n"
        "class CountingUp(Problem):\n"
        "    highest: int = option(9, 'The last number.')\n"
    )
    names = ("problem", flags.PROBLEM_OPTIONS, "t2t_usr_dir")
    kept: list[flags.Args] = []
    assert (
        flags.Command("Doc.", names, kept.append)(
            ["--highest=5", f"--t2t_usr_dir={package}"]
        )
        == 0
    )
    assert kept[0].options == {"highest": 5}
    assert registry.get_problem("counting_up", **kept[0].options).highest == 5
    assert (
        flags.Command("Doc.", names, kept.append)(
            ["--help", "--t2t_usr_dir", str(package)]
        )
        == 0
    )
    assert (
        "  --highest\n      The last number. (default: 9)\n" in capsys.readouterr().out
    )
