"""Problems and hparam sets by name, and a user's own package."""

import dataclasses
import re
from pathlib import Path

import pytest
from documents import ROOT

import t2tlite
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.data.problem import Problem


@pytest.fixture
def empty(monkeypatch):
    """A registry with nothing in it, for the length of one test."""
    monkeypatch.setattr(registry, "_problems", {})
    monkeypatch.setattr(registry, "_hparams", {})


@pytest.fixture
def filled(empty):
    """A registry with one problem and one hparam set."""

    @registry.register_problem
    @dataclasses.dataclass(frozen=True)
    class CopyTask(Problem):
        """Copies its input.

        More about it.
        """

        vocab_size: int = 100
        sizes: tuple[int, ...] = ()

    @registry.register_hparams
    def transformer_mine():
        """One head.

        More about it.
        """
        return dataclasses.replace(HParams(), num_heads=1)

    return CopyTask, transformer_mine


def test_names_stand_for_what_was_registered(filled):
    problem_class, function = filled
    problem = registry.get_problem("copy_task")
    assert problem == problem_class(vocab_size=100, reverse=False)
    assert problem is not registry.get_problem("copy_task")
    hparams = registry.get_hparams("transformer_mine")
    assert function() == hparams == HParams().override("num_heads=1")
    assert hparams is not registry.get_hparams("transformer_mine")


def test_reversed_and_options(filled):
    problem = registry.get_problem("copy_task_rev", vocab_size=7, sizes=(1, 2))
    assert (problem.reverse, problem.vocab_size, problem.sizes) == (True, 7, (1, 2))
    assert problem.name() == "copy_task"  # both directions share their data


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("copy_tsak", r"There is no problem 'copy_tsak'\. Did you mean 'copy_task'"),
        ("copy_task_re", r"no problem 'copy_task_re'\. Did you mean .*'copy_task_rev'"),
        ("copy_task_rev_rev", r"There is no problem 'copy_task_rev_rev'\."),
        ("", r"Known: copy_task, copy_task_rev\. If your own package defines it"),
    ],
)
def test_unknown_problem(filled, name, message):
    with pytest.raises(ValueError, match=message):
        registry.get_problem(name)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda: dataclasses.replace(HParams(), hiden_size=64), r"hparams has no field 'hiden_size'\. Did you mean 'hidden_size'"),
        (lambda: None, r"it must return HParams\. Received: None\."),
        (lambda: {"hidden_size": 64}, r"must return HParams\. Received: \{'hidden_size': 64\}\."),
    ],
)  # fmt: skip
def test_hparam_set_whose_function_is_wrong(filled, function, message):
    registry.register_hparams(function)
    with pytest.raises(ValueError, match=message) as error:
        registry.get_hparams("<lambda>")
    assert "hparam set '<lambda>'" in str(error.value)
    assert "\n" not in str(error.value)


def test_unknown_option_and_hparam_set(filled):
    message = r"no hparam set 'transformer_mien'\. Did you mean 'transformer_mine'"
    with pytest.raises(ValueError, match=message):
        registry.get_hparams("transformer_mien")
    message = r"^A problem has no field 'vocabsize'\. Did you mean 'vocab_size'"
    with pytest.raises(ValueError, match=message):
        registry.get_problem("copy_task_rev", vocabsize=True)


@pytest.mark.parametrize("given", ["a", Path("a"), ["a"], [Path("a")], ("a",)])
def test_one_value_of_an_option_of_several(filled, given):
    assert registry.get_problem("copy_task", vocab_file=given).vocab_file == ("a",)


def test_a_name_is_taken_once(filled):
    problem_class, function = filled
    message = r"Each problem needs a name of its own, .* Received: 'copy_task' from"
    with pytest.raises(ValueError, match=message):
        registry.register_problem(problem_class)
    message = r"Each hparam set .*'transformer_mine' from .*test_registry\."
    with pytest.raises(ValueError, match=message):
        registry.register_hparams(function)
    with pytest.raises(ValueError, match=r"without _rev .*'copy_rev' "):
        registry.register_problem(type("CopyRev", (), {}))
    assert list(registry.list_problems()) == ["copy_task", "copy_task_rev"]


def test_help_lists_everything_once(filled):
    registry.register_problem(type("Another", (), {"__doc__": "Another one."}))
    assert registry.registry_help().splitlines() == [
        "Problems:",
        "  another        Another one.",
        "  another_rev    another with source and target swapped.",
        "  copy_task      Copies its input.",
        "  copy_task_rev  copy_task with source and target swapped.",
        "",
        "Hparam sets:",
        "  transformer_mine  One head.",
    ]


def test_what_t2tlite_registers():
    import t2tlite.hparams
    import t2tlite.problems  # noqa: F401

    text = registry.registry_help()
    problems = ("wmt_ende", "wmt_enfr", "parallel_text", "grammar_ende")
    sets = ("transformer_base", "transformer_big", "transformer_tiny")
    for name in (*problems, *(f"{problem}_rev" for problem in problems), *sets):
        assert len(re.findall(rf"(?m)^  {name} ", text)) == 1, name
    for name, line in {**registry.list_problems(), **registry.list_hparams()}.items():
        assert re.fullmatch(r"\S.*[.)]", line), f"{name}: {line!r}"
    for name in problems:
        assert registry.get_problem(name).name() == name
        assert registry.get_problem(f"{name}_rev").reverse


def test_a_cell_of_a_notebook_may_run_again(monkeypatch):
    monkeypatch.setattr(registry, "_hparams", {})

    def mine():
        """First."""

    def again():
        """Second."""

    again.__name__ = "mine"
    mine.__module__ = again.__module__ = "__main__"
    registry.register_hparams(mine)
    registry.register_hparams(again)
    assert registry.list_hparams() == {"mine": "Second."}
    mine.__module__ = "package"
    with pytest.raises(ValueError, match="Each hparam set needs a name of its own"):
        registry.register_hparams(mine)


# tensor2tensor's names


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("translate_ende_wmt32k", r"translate_ende_wmt32k: wmt_ende\. If your own package defines it"),
        ("translate_enfr_wmt8k_rev", r": wmt_enfr_rev with --vocab_size=8000\."),
        ("translate_encs_wmt32k", r": parallel_text with the problem's text\."),
        ("text2text_tmpdir", r": parallel_text with --train_source=inputs\.train\.txt,"),
    ],
)  # fmt: skip
def test_problems_of_tensor2tensor_are_answered(filled, name, message):
    with pytest.raises(ValueError, match=message):
        registry.get_problem(name)


@pytest.mark.parametrize(
    "name", ["transformer_base_v1", "transformer_big_dr2", "transformer_parsing_big"]
)
def test_hparam_sets_of_tensor2tensor_are_answered(name):
    message = rf"{name}: transformer_\w+ or .* docs/from-tensor2tensor\.md"
    with pytest.raises(ValueError, match=message):
        t2tlite.get_hparams(name)
    text = (ROOT / "docs" / "from-tensor2tensor.md").read_text(encoding="utf-8")
    [changes] = re.findall(rf"^{name} +\S+, (\S+),?$", text, re.M)
    t2tlite.get_hparams("transformer_base").override(changes.rstrip(","))


def test_problem_written_for_tensor2tensor_is_answered(empty):
    with pytest.raises(ValueError, match=r"generate_samples: pairs\(split, tmp_dir\)"):

        @registry.register_problem
        class TranslateMine(Problem):
            def generate_samples(self, data_dir, tmp_dir, dataset_split):
                yield {"inputs": "a", "targets": "b"}

    with pytest.raises(ValueError, match=r"approx_vocab_size: the field vocab_size\."):

        @registry.register_problem
        class TranslateOther(Problem):
            approx_vocab_size = 2**13


def test_option_that_is_not_a_field_is_refused():
    class Undecorated(Problem):
        vocab_type: str = "characters"

    @dataclasses.dataclass(frozen=True)
    class Untyped(Problem):
        vocab_size = 4000

    for problem in (Undecorated, Untyped):
        with pytest.raises(ValueError, match=rf"{problem.__name__}\.vocab_\w+\. Give"):
            problem()


def test_decorator_with_a_name_is_answered(empty):
    for decorator in ("register_problem", "register_hparams", "register_task"):
        with pytest.raises(ValueError, match=r"decorator none\. .* from 'mine'"):
            getattr(registry, decorator)("mine")
