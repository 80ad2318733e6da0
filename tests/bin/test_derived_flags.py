"""Flags that are derived from the fields they fill: of the training loop, and the
options of problems.
"""

import dataclasses

import pytest

from t2tlite import registry
from t2tlite.bin import t2t_decoder
from t2tlite.bin.command import Command
from t2tlite.bin.flag_fields import Flags, problem_flags
from t2tlite.bin.flag_parser import parse
from t2tlite.bin.groups import MakeDataFlags
from t2tlite.bin.t2t_trainer import TrainerFlags
from t2tlite.checked_fields import (
    CheckedFields,
    Facts,
    checked_field,
    facts_of,
    optional_field,
)
from t2tlite.config import DecodeHParams
from t2tlite.data.problem import Problem, option
from t2tlite.training.loop_config import LoopConfig


def test_the_training_loops_flags(capsys):
    """Every field of LoopConfig is a flag with the field's default, and fills that
    field.
    """
    flags = parse(TrainerFlags, [])
    assert LoopConfig(train_steps=7, **vars(flags.loop)) == LoopConfig(train_steps=7)
    given = {}
    for number, field in enumerate(dataclasses.fields(LoopConfig), start=1):
        given[field.name] = number
    flags = parse(TrainerFlags, [f"--{name}={value}" for name, value in given.items()])
    assert flags.train_steps == given.pop("train_steps")
    assert vars(flags.loop) == given
    assert Command(TrainerFlags, "Doc.", print)(["--help"]) == 0
    keep = (
        "Number of newest checkpoints to keep, besides the best on dev. (default: 20)"
    )
    assert f"  --keep_checkpoint_max\n      {keep}\n" in capsys.readouterr().out


def test_flags_of_a_class():
    """Text, lists, values that need not be given, and ranges; a value out of range
    names the field.
    """

    @dataclasses.dataclass(frozen=True)
    class Options(CheckedFields):
        port: int = checked_field(5000, "Port.", low=0, high=65535)
        api_key: str = checked_field("", "Key.")
        languages: tuple[str, ...] = checked_field((), "Languages.")
        folder: str | None = optional_field(str, "Folder.")
        timeout_s: float = checked_field(60.0, "Seconds.")

    @dataclasses.dataclass(frozen=True)
    class ServerFlags(Flags):
        options: Options = dataclasses.field(default_factory=Options)

    words = ["--languages=en-de,de-en", "--timeout_s=2", "--folder="]
    flags = parse(ServerFlags, words)
    assert flags.options == Options(5000, "", ("en-de", "de-en"), "", 2.0)
    with pytest.raises(
        ValueError,
        match=r"^port must be at least 0 and at most 65535\. Received: 70000\.$",
    ):
        parse(ServerFlags, ["--port=70000"])


def test_decode_hparams_are_explained():
    """Every field with its default and its meaning."""
    text = facts_of(t2t_decoder.main.known_flags()["decode_hparams"]).meaning
    for field in dataclasses.fields(DecodeHParams):
        assert f"{field.name}={field.default}: {facts_of(field).meaning}" in text
        assert facts_of(field).meaning, field.name


def test_options_of_our_problems():
    """Those that a command has always had, each with a help text that its problem's
    field holds.
    """
    import t2tlite.problems  # noqa: F401

    options = """vocab_size vocab_file max_length max_length_ratio train_source train_target dev_source
        dev_target test_source test_target source_language target_language train_size linearisation fragments
        extra_trees""".split()
    actual = problem_flags()
    facts = {name: facts_of(flag) for name, flag in actual.items()}
    assert all(facts[name].meaning for name in options)
    assert {flag.default for flag in actual.values()} == {None}
    kinds = {"vocab_size": int, "vocab_file": tuple, "max_length_ratio": float}
    assert {name: facts[name].kind for name in kinds} == kinds
    assert "(default: nfc)" in facts["normalization"].meaning
    iwslt, multi30k = facts["text"].meaning.split("\n")
    assert iwslt.startswith("iwslt14_deen: ")
    assert iwslt.endswith("(default: lc.tok)")
    assert multi30k.startswith("multi30k_ende, multi30k_enfr: ")
    assert multi30k.endswith("(default: raw)")


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
        " training pairs, 1,000 to 32,000. A text that allows no vocabulary of the"
        " default size has the nearest that it allows. (default: the problem's)"
    )
    assert facts_of(actual["vocab_size"]) == Facts(int, share)
    assert facts_of(actual["words"]) == Facts(tuple, "first, second: Words.")
    explained = "first, second:  (default: False)"
    assert facts_of(actual["shuffled"]) == Facts(bool, explained)
    assert {flag.default for flag in actual.values()} == {None}
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
    kept: list[MakeDataFlags] = []
    command = Command(MakeDataFlags, "Doc.", kept.append)
    assert command(["--highest=5", f"--t2t_usr_dir={package}"]) == 0
    assert kept[0].options == {"highest": 5}
    assert registry.get_problem("counting_up", **kept[0].options).highest == 5
    assert command(["--help", "--t2t_usr_dir", str(package)]) == 0
    assert (
        "  --highest\n      The last number. (default: 9)\n" in capsys.readouterr().out
    )
