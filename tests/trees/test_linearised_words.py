"""Linearised trees that hold their words instead of tags, and what becomes of them
again.
"""

import pytest
from fixture_files import tree_files

from t2tlite.trees.evalb import evalb
from t2tlite.trees.linearise import WORDS
from t2tlite.trees.tree import format_tree, parse_tree, read_trees

CAT = (
    "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat))))"
    " (. .)))"
)
CAT_WORDS = ["The", "cat", "sat", "on", "the", "mat", "."]
CAT_SEQUENCE = "(S (NP The cat )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S"


@pytest.mark.parametrize(
    ("tree", "sequence"),
    [
        (CAT, CAT_SEQUENCE),
        # punctuation as its tag
        ("(TOP (S (`` so) (NN so) (: -) (HYPH -) (. ?)))", "(S `` so : - . )S"),
    ],
)
def test_write_by_example(tree, sequence):
    assert WORDS.write(parse_tree(tree)) == sequence


@pytest.mark.parametrize(
    ("text", "repairs"),
    [
        (CAT_SEQUENCE, {}),
        # a word left out joins the word before it, and the others stay where they are
        (
            "(S (NP The )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S",
            {"missing_tag": 1},
        ),
        # a word that is not there goes, and its constituent with it
        (
            (
                "(S (NP The cat )NP (ADVP really )ADVP (VP sat (PP on (NP the mat )NP"
                " )PP )VP . )S"
            ),
            {"surplus_tag": 1, "empty_constituent": 1},
        ),
        # a word misspelt is the word in its place
        (
            "(S (NP The cart )NP (VP sat (PP on (NP the mat )NP )PP )VP . )S",
            {"changed_word": 1},
        ),
    ],
)
def test_restore_by_example(text, repairs):
    """Words get the normalised tag."""
    restored = WORDS.read(text, CAT_WORDS)
    assert format_tree(restored.tree) == (
        "(TOP (S (NP (XX The) (XX cat)) (VP (XX sat) (PP (XX on) (NP (XX the) (XX"
        " mat)))) (. .)))"
    )
    assert restored.repairs == repairs
    assert restored.misaligned == (1 if repairs else 0)


@pytest.mark.parametrize("trees_of", tree_files("gum.test"))
def test_gold_sequences_keep_their_brackets(tree_file):
    trees = list(read_trees(tree_file))[:300]
    restored = [WORDS.read(WORDS.write(tree), tree.words()) for tree in trees]
    score = evalb(trees, [parse.tree for parse in restored])
    assert (score.f1, score.errors, score.skipped) == (100.0, 0, 0)
    assert not any(parse.repairs for parse in restored)
