"""Linearised trees that hold their words instead of tags, and what becomes of them again."""

from __future__ import annotations

import pytest
from conftest import tree_files

from t2tlite.tasks.parsing import ParsingTask
from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import linearise
from t2tlite.trees.restore import restore
from t2tlite.trees.tree import format_tree, parse_tree, read_trees

CAT = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"
CAT_WORDS = ["The", "cat", "sat", "on", "the", "mat", "."]
CAT_SEQUENCE = "(S (NP The cat )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S"


def test_words_by_example():
    assert linearise(parse_tree(CAT), "words") == CAT_SEQUENCE


def test_punctuation_is_written_as_its_tag():
    tree = parse_tree("(TOP (S (`` so) (NN so) (: -) (HYPH -) (. ?)))")
    assert linearise(tree, "words") == "(S `` so : - . )S"


@pytest.mark.parametrize(
    ("text", "tree", "repairs"),
    [
        (CAT_SEQUENCE, "(S (NP The cat) (VP sat (PP on (NP the mat))) .)", {}),
        # a word left out joins the word before it, and the others stay where they are
        (
            "(S (NP The )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S",
            "(S (NP The cat) (VP sat (PP on (NP the mat))) .)",
            {"missing_tag": 1},
        ),
        # a word that is not there goes, and its constituent with it
        (
            "(S (NP The cat )NP (ADVP really )ADVP (VP sat (PP on (NP the mat )NP )PP )VP . )S",
            "(S (NP The cat) (VP sat (PP on (NP the mat))) .)",
            {"surplus_tag": 1, "empty_constituent": 1},
        ),
        # a word misspelt is the word in its place
        (
            "(S (NP The cart )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S",
            "(S (NP The cat) (VP sat (PP on (NP the mat))) .)",
            {"changed_word": 1},
        ),
    ],
)
def test_restore_by_example(text, tree, repairs):
    restored = restore(text, CAT_WORDS, tags="words")
    assert format_tree(restored.tree).replace("(XX ", "(").replace("(. .)", ".") == format_words(tree)
    assert restored.repairs == repairs
    assert restored.misaligned == sum(repairs.values()) - repairs.get("empty_constituent", 0)


def format_words(tree: str) -> str:
    """`(NP The cat)` as `(TOP (NP (The) (cat)))`, as the restored trees are shown above."""
    tokens = tree.replace(")", " )").split()
    shown = [t if t[0] in "()." else f"({t})" for t in tokens]
    return f"(TOP {' '.join(shown)})".replace(" )", ")")


def test_words_get_the_normalised_tag():
    restored = restore(CAT_SEQUENCE, CAT_WORDS, tags="words")
    assert restored.tree.tags() == ["XX"] * 6 + ["."]


@pytest.mark.parametrize("trees_of", tree_files("gum.test"))
def test_gold_sequences_keep_their_brackets(tree_file):
    trees = list(read_trees(tree_file))[:300]
    restored = [restore(linearise(tree, "words"), tree.words(), tags="words") for tree in trees]
    score, _ = evalb(trees, [one.tree for one in restored])
    assert (score.f1, score.errors, score.skipped) == (100.0, 0, 0)
    assert not any(one.repairs for one in restored)


def test_the_parse_that_fits_the_words_comes_first():
    task = ParsingTask("words")
    sequences = ["(S (NP The )NP . )S", "(S (VP sat )VP . )S", CAT_SEQUENCE, CAT_SEQUENCE.replace("(S", "(NP")]
    ranked = task.rank(sequences, CAT_WORDS, wanted=4)
    assert [place for place, _ in ranked] == [2, 3, 0, 1]
    assert [tree.misaligned for _, tree in ranked] == [0, 0, 5, 5]
    assert [place for place, _ in task.rank(sequences, CAT_WORDS)] == [2]
    assert [place for place, _ in task.rank(sequences, CAT_WORDS, wanted=3)] == [2, 3, 0]
