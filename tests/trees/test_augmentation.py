"""Trees made from other trees: constituents substituted by those of the same label
under the same parent's label.
"""

from __future__ import annotations

from t2tlite.trees.augmentation import with_fragments, with_substitutions
from t2tlite.trees.tree import parse_tree

CAME = "(TOP (S (NP (PRP They)) (VP (VBD came) (NP (DT the) (NN day)))))"
FELL = "(TOP (S (NP (NN Rain)) (VP (VBD fell))))"


def substituted(count, *texts):
    return list(with_substitutions(iter(map(parse_tree, texts)), count))


def test_the_trees_come_first_and_without_copies_alone():
    trees = [parse_tree(CAME), parse_tree(FELL)]
    assert substituted(0, CAME, FELL) == trees
    made = substituted(3, CAME, FELL)
    assert len(made) == 4 * 2
    assert made[:2] == trees
    assert substituted(3, CAME, FELL) == made


def test_each_combination_of_constituents_is_made():
    made = substituted(200, CAME, FELL)[2:]
    expected = {
        "(TOP (S (NP (PRP They)) (VP (VBD came) (NP (DT the) (NN day)))))",
        "(TOP (S (NP (NN Rain)) (VP (VBD came) (NP (DT the) (NN day)))))",
        "(TOP (S (NP (PRP They)) (VP (VBD fell))))",
        "(TOP (S (NP (NN Rain)) (VP (VBD fell))))",
    }
    for trees in (made[::2], made[1::2]):
        assert set(trees) == set(map(parse_tree, expected))


def test_most_trees_with_another_constituent_are_changed():
    # An attempt leaves a tree as it is with probability (1 - 1/4 * 1/2)^2 = 0.77, five
    # attempts with 0.26.
    made = substituted(2000, CAME, FELL)[2:]
    unchanged = made[::2].count(parse_tree(CAME))
    assert 400 < unchanged < 640


def test_the_parents_label_counts():
    question = "(TOP (SQ (VBD Did) (NP (PRP you)) (VP (VB see) (NP (NN it)))))"
    for tree in substituted(100, CAME, question):
        first = tree.children[0]
        noun_phrases = {"S": {"They"}, "SQ": {"you"}}[first.label]
        assert {
            " ".join(child.words()) for child in first.children if child.label == "NP"
        } == noun_phrases


def test_no_substitute_has_more_than_twice_the_words_and_two():
    five = "(TOP (S (NP (DT A) (JJ b) (JJ c) (JJ d) (NN e)) (VP (VBD fell))))"
    four = "(TOP (S (NP (DT A) (JJ b) (JJ c) (NN d)) (VP (VBD fell))))"
    sentences = {
        " ".join(tree.words()) for tree in substituted(200, FELL, five, four)[3::3]
    }
    assert sentences == {"Rain fell", "A b c d fell"}


def test_trees_without_constituents_to_substitute_are_repeated():
    short = "(TOP (INTJ (UH Mhm) (. .)))", "(TOP (NN Rain))"
    assert substituted(2, *short) == 3 * [parse_tree(text) for text in short]


def test_deep_trees():
    deep = "(TOP " + 1500 * "(S " + "(NN Rain)" + 1500 * ")" + ")"
    *_, tree = with_fragments(substituted(1, deep, CAME, deep), 2)
    assert tree.words() == ["Rain"]
