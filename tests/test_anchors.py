"""Linearised trees in which the most frequent words stand for themselves, and what becomes of them again."""

from __future__ import annotations

import pytest

from t2tlite.data.linearise import is_word, linearise, restore
from t2tlite.data.trees import format_tree, parse_tree, read_trees
from t2tlite.evaluation.parsing import evalb

CAT = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .)))"
CAT_WORDS = ["The", "cat", "sat", "on", "the", "mat", "."]


def test_anchors_by_example():
    tree = parse_tree(CAT)
    assert linearise(tree, "kept", {"the", "on"}) == "(S (NP DT NN )NP (VP VBD (PP on (NP the NN )NP )PP )VP . )S"
    assert linearise(tree, "normalised", {"The"}) == "(S (NP The XX )NP (VP XX (PP XX (NP XX XX )NP )PP )VP . )S"


def test_punctuation_stays_a_tag():
    assert linearise(parse_tree("(TOP (NP (`` so) (NN so)))"), "kept", {"so"}) == "(NP `` so )NP"


@pytest.mark.parametrize("token", ["the", "I", "a", "'s", "McCoy", "n't"])
def test_words(token):
    assert is_word(token)


@pytest.mark.parametrize("token", ["NN", "PRP$", "-LRB-", "$", "''", ",", "XX", "#"])
def test_tags(token):
    assert not is_word(token)


def test_an_anchor_gets_the_normalised_tag():
    restored = restore("(S (NP The NN )NP (VP VBD (PP on (NP the NN )NP )PP )VP . )S", CAT_WORDS)
    assert format_tree(restored.tree) == (
        "(TOP (S (NP (XX The) (NN cat)) (VP (VBD sat) (PP (XX on) (NP (XX the) (NN mat)))) (. .)))"
    )
    assert not restored.repairs


def test_an_anchor_says_where_a_tag_is_missing():
    restored = restore("(S (NP DT NN )NP (VP (PP on (NP the NN )NP )PP )VP . )S", CAT_WORDS)  # VBD is missing
    assert format_tree(restored.tree) == (
        "(TOP (S (NP (DT The) (NN cat) (XX sat)) (VP (PP (XX on) (NP (XX the) (NN mat)))) (. .)))"
    )
    assert restored.repairs == {"missing_tag": 1}


def test_another_word_is_counted():
    restored = restore("(S (NP A NN )NP (VP VBD (PP on (NP the NN )NP )PP )VP . )S", CAT_WORDS)
    assert restored.repairs == {"changed_word": 1}
    assert restored.tree.words() == CAT_WORDS


def test_gold_sequences_keep_their_brackets(shared):
    trees = list(read_trees(shared / "data" / "trees" / "gum.dev.trees"))[:300]
    anchors = {"the", "of", "and", "to", "a", "I", "that", "'s", "n't"}
    restored = [restore(linearise(tree, "kept", anchors), tree.words()) for tree in trees]
    score, _ = evalb(trees, [one.tree for one in restored])
    assert (score.f1, score.errors, score.skipped) == (100.0, 0, 0)
    assert not any(one.repairs for one in restored)
