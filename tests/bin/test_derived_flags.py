"""Flags that are derived from the fields they fill: of the training loop, and the
options of problems.
"""

import dataclasses

import pytest

from t2tlite import registry
from t2tlite.bin.command import Command
from t2tlite.bin.flags import parse, problem_flags
from t2tlite.bin.groups import MakeDataFlags
from t2tlite.bin.t2t_trainer import TrainerFlags
from t2tlite.checked_fields import (
    Facts,
    facts_of,
)
from t2tlite.data.problem import Problem, option
from t2tlite.training.loop_config import LoopConfig, LoopOptions


def test_the_training_loops_flags(capsys):
    """Every field of LoopConfig is a flag with the field's default, and fills that
    field.
    """
    assert parse(TrainerFlags, []).values_of(LoopOptions) == vars(LoopOptions())
    given = {}
    for number, field in enumerate(dataclasses.fields(LoopConfig), start=1):
        given[field.name] = number
    flags = parse(TrainerFlags, [f"--{name}={value}" for name, value in given.items()])
    assert flags.values_of(LoopConfig) == given
    assert Command(TrainerFlags, "Doc.", print)(["--help"]) == 0
    keep = (
        "Number of newest checkpoints to keep, besides the best on dev. (default: 20)"
    )
    assert f"  --keep_checkpoint_max\n      {keep}\n" in capsys.readouterr().out


def test_options_of_our_problems():
    """Those that a command has always had, each with a help text that its problem's
    field holds.
    """
    import t2tlite.problems  # noqa: F401

    facts = {name: facts_of(flag) for name, flag in problem_flags().items()}
    for name in "vocab_file max_length train_source linearisation fragments".split():
        assert facts[name].meaning
    assert {flag.default for flag in problem_flags().values()} == {None}
    kinds = {"vocab_size": int, "vocab_file": tuple, "max_length_ratio": float}
    assert {name: facts[name].kind for name in kinds} == kinds
    assert "(default: nfc)" in facts["normalization"].meaning
    text = facts["text"].meaning
    assert text.startswith("multi30k_ende, multi30k_enfr: ")
    assert text.endswith("(default: raw)")


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
    size = facts_of(actual["vocab_size"])
    assert size.kind is int
    assert size.meaning.startswith("Pieces in the vocabulary that source and target")
    assert size.meaning.endswith(" that it allows.")
    assert facts_of(actual["words"]) == Facts(tuple, "first, second: Words.")
    assert facts_of(actual["shuffled"]) == Facts(bool, "first, second: ")
    assert {flag.default for flag in actual.values()} == {None}
    assert "nothing" not in actual
    assert "reverse" not in actual
    assert Second(nothing="any").nothing == "any"
    with pytest.raises(ValueError, match=r"^vocab_size must be of type int\. Received"):
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
    argv = ["--problem", "counting_up", "--highest=5", f"--t2t_usr_dir={package}"]
    assert command(argv) == 0
    assert kept[0].options == {"highest": 5}
    assert registry.get_problem("counting_up", **kept[0].options).highest == 5
    assert command(["--help", "--t2t_usr_dir", str(package)]) == 0
    assert (
        "  --highest\n      The last number. (default: 9)\n" in capsys.readouterr().out
    )
