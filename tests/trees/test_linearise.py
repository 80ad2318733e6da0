"""Trees as token sequences and back: worked examples, whole files, random trees, and
sequences that are no tree.
"""

import random

import pytest
from fixture_files import tree_files

from t2tlite.trees.linearise import NORMALISED, T2T, TAGS
from t2tlite.trees.restore import PUNCTUATION_WORDS, SYMBOL_TAGS, fitting_tag
from t2tlite.trees.tree import format_tree, parse_tree, read_trees

CAT = (
    "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat))))"
    " (. .)))"
)
GUM = ["gum.train", "gum.dev", "gum.test", "gum_wikinews"]


def shape(tree):
    """The brackets of a tree and where its words are, whatever their tags."""
    return [
        token if token[0] in "()" else "XX" for token in NORMALISED.write(tree).split()
    ]


def test_linearise_by_example():
    tree = parse_tree(CAT)
    assert (
        NORMALISED.write(tree)
        == "(S (NP XX XX )NP (VP XX (PP XX (NP XX XX )NP )PP )VP . )S"
    )
    assert (
        TAGS.write(tree) == "(S (NP DT NN )NP (VP VBD (PP IN (NP DT NN )NP )PP )VP . )S"
    )


def test_all_punctuation_tags_stay_and_brackets_are_words():
    tree = parse_tree(
        "(TOP (X (`` ``) (-LRB- -LRB-) (: --) (HYPH -) ($ $) (-RRB- -RRB-) ('' '')) (,"
        " ,) (. ?))"
    )
    assert NORMALISED.write(tree) == "(X `` XX : XX XX XX '' )X , ."
    assert TAGS.write(tree) == "(X `` -LRB- : HYPH $ -RRB- '' )X , ."


@pytest.mark.parametrize(
    ("text", "words", "tree", "repairs"),
    [
        # no repair
        ("(S (NP XX XX )NP (VP XX )VP . )S", "The cat sat .", "(S (NP (XX The) (XX cat)) (VP (XX sat)) (. .))", {}),
        ("  (S\tXX\n)S ", "Go", "(S (XX Go))", {}),  # white space is not a repair
        # two constituents under TOP
        ("(NP XX )NP (VP XX )VP", "a b", "(NP (XX a)) (VP (XX b))", {}),
        ("XX XX", "a b", "(XX a) (XX b)", {}),
        # same labels nested
        ("(NP (NP (NP XX )NP )NP XX )NP", "a b", "(NP (NP (NP (XX a))) (XX b))", {}),
        ("(S -LRB- NN -RRB- )S", "( x )", "(S (-LRB- -LRB-) (NN x) (-RRB- -RRB-))", {}),
        ("(S XX )S", ":)", "(S (XX :-RRB-))", {}),
        # brackets
        ("(S XX )NP XX )S )S", "a b", "(S (XX a) (XX b))", {"unmatched_closing": 2}),
        ("(S (NP (NX XX )S XX", "a b", "(S (NP (NX (XX a)))) (XX b)", {"closed_by_another": 2}),
        ("(S (NP XX (VP XX", "a b", "(S (NP (XX a) (VP (XX b))))", {"closed_at_end": 3}),
        ("(S (NP (NX )NX )NP XX )S", "a", "(S (XX a))", {"empty_constituent": 2}),
        ("(S XX)NP(VP XX )S", "a", "(S (XX a))", {"malformed_token": 1}),
        ("(S ( XX ) )S", "a", "(S (XX a))", {"malformed_token": 2}),
        # too many tags
        ("(S XX XX (NP XX )NP )S", "a", "(S (XX a))", {"surplus_tag": 2, "empty_constituent": 1}),
        # too few: at an end that is open to the lowest constituent there
        ("(S (NP XX )NP (VP XX", "He left .", "(S (NP (XX He)) (VP (XX left) (. .)))",
         {"closed_at_end": 2, "missing_tag": 1}),
        ("(S (NP XX )NP (VP", "a b c", "(S (NP (XX a)) (VP (XX b) (XX c)))", {"closed_at_end": 2, "missing_tag": 2}),
        # all closed: the word in the middle has no tag, and joins the word before it
        ("(S (NP XX )NP (VP XX )VP )S", "a b c", "(S (NP (XX a) (XX b)) (VP (XX c)))", {"missing_tag": 1}),
        ("(S (NP XX )NP . )S", "a . b", "(S (NP (XX a)) (. .) (XX b))", {"missing_tag": 1}),
        ("(S XX )S XX", "a b c", "(S (XX a) (XX b)) (XX c)", {"missing_tag": 1}),
        # no tag at all
        ("", "a ,", "(XX a) (, ,)", {"missing_tag": 2}),
        ("(S )S", "a b", "(S (XX a) (XX b))", {"missing_tag": 2}),
        (")S ) (", "a", "(XX a)", {"missing_tag": 1, "unmatched_closing": 1, "malformed_token": 2}),
        # tags
        ("junk </s> ", "a b", "(junk a) (</s> b)", {}),
        ("(S , . )S", "a 1.", "(S (XX a) (XX 1.))", {"changed_tag": 2}),
        ("(S XX XX )S", "a ,", "(S (XX a) (, ,))", {"changed_tag": 1}),
        # punctuation tells where a tag is missing or too many
        ("(S (NP XX )NP , XX , (VP XX", "Our cat , alas , left",
         "(S (NP (XX Our) (XX cat)) (, ,) (XX alas) (, ,) (VP (XX left)))", {"missing_tag": 1, "closed_at_end": 2}),
        ("(S (NP XX XX )NP , XX (ADVP XX )ADVP , (VP XX )VP . )S", "Our cat , alas , left .",
         "(S (NP (XX Our) (XX cat)) (, ,) (XX alas) (, ,) (VP (XX left)) (. .))",
         {"surplus_tag": 1, "empty_constituent": 1}),
        ("(S (NP XX )NP , XX , (VP XX XX )VP . )S", "Our cat , alas , left .",
         "(S (NP (XX Our) (XX cat)) (, ,) (XX alas) (, ,) (VP (XX left)) (. .))", {"missing_tag": 1, "surplus_tag": 1}),
        ("(S (INTJ XX )INTJ (VP XX )VP . )S", "Well , go !", "(S (INTJ (XX Well) (, ,)) (VP (XX go)) (. !))",
         {"missing_tag": 1}),
        ("(S (NP (NX , XX )NX )NP )S", "Oh , cat", "(S (NP (NX (XX Oh) (, ,) (XX cat))))", {"missing_tag": 1}),
        # so does a constituent without tags
        ("(S (NP (A )A )NP (VP XX XX )VP . )S", "He sat up .", "(S (NP (A (XX He))) (VP (XX sat) (XX up)) (. .))",
         {"missing_tag": 1}),
        ("(S XX (VP )VP )S", "a b c", "(S (XX a) (VP (XX b) (XX c)))", {"missing_tag": 2}),
        # nothing tells: the middle, but the end where the sequence is cut off
        ("(A XX )A (B XX )B (C XX )C (D XX )D", "a b c d e", "(A (XX a)) (B (XX b) (XX c)) (C (XX d)) (D (XX e))",
         {"missing_tag": 1}),
        ("(A XX )A (B XX )B (C XX )C (D XX )D (E XX )E", "a b c d", "(A (XX a)) (B (XX b)) (D (XX c)) (E (XX d))",
         {"surplus_tag": 1, "empty_constituent": 1}),
        ("(A XX )A (B XX )B (C XX", "a b c d e", "(A (XX a)) (B (XX b)) (C (XX c) (XX d) (XX e))",
         {"missing_tag": 2, "closed_at_end": 1}),
        # wrong tags that nothing else explains
        ("(S (NP XX , )NP (VP XX )VP )S", "a b c", "(S (NP (XX a) (XX b)) (VP (XX c)))", {"changed_tag": 1}),
        ("(S (NP - XX XX )NP : )S", "- 1 - -", "(S (NP (- -) (XX 1) (XX -)) (: -))", {}),
    ],
)  # fmt: skip
def test_restore_by_example(text, words, tree, repairs):
    restored = TAGS.read(text, words.split())
    assert format_tree(restored.tree) == f"(TOP {tree})"
    assert dict(restored.repairs) == repairs


def test_alignment_costs_what_the_edit_distance_is():
    rng = random.Random(4)
    for _ in range(500):
        tags = rng.choices(["XX", "XX", ",", "."], k=rng.randint(1, 9))
        words = rng.choices(["a", "b", ",", "!"], k=rng.randint(1, 9))
        # from the tags so far to the words up to each place
        distances = list(range(len(words) + 1))
        for tag in tags:
            previous, distances = distances, [distances[0] + 1]
            for i, word in enumerate(words):
                pair = previous[i] + (fitting_tag(word, tag) != tag)
                distances.append(min(pair, previous[i + 1] + 1, distances[i] + 1))
        assert sum(TAGS.read(" ".join(tags), words).repairs.values()) == distances[-1]


def test_tags_are_no_evidence_where_they_are_not_to_be_changed():
    restored = TAGS.read(
        "(S (NP , )NP XX XX . )S", ["a", ",", "b", "!"], fit_tags=False
    )
    assert format_tree(restored.tree) == "(TOP (S (NP (, a)) (XX ,) (XX b) (. !)))"
    assert not restored.repairs


@pytest.mark.parametrize("trees_of", tree_files(*GUM))
def test_round_trip_of_whole_files(tree_file):
    for tree in read_trees(tree_file):
        words = tree.words()
        kept = TAGS.read(TAGS.write(tree), words)
        assert (kept.tree, kept.repairs) == (tree, {})
        restored = TAGS.read(NORMALISED.write(tree), words)
        assert restored.tree.words() == words
        assert shape(restored.tree) == shape(tree)
        # Only where the annotators gave a punctuation mark a rarer tag, which XX does
        # not tell, is one changed.
        rare = 0
        for word, tag in zip(words, tree.tags(), strict=True):
            rare += word in PUNCTUATION_WORDS and tag in SYMBOL_TAGS
        assert restored.repairs == ({"changed_tag": rare} if rare else {})


def test_depth_and_length_do_not_matter():
    depth = 1500
    text = "(NP (VP " * depth + "NN " + ")VP )NP " * depth
    restored = TAGS.read(text, ["a"])
    assert TAGS.write(restored.tree) == text.strip()
    assert not restored.repairs
    unmatched = TAGS.read("(S (NP " * depth + ")VP " * depth + ")S", ["a"])
    assert unmatched.repairs["unmatched_closing"] == depth
    assert T2T.read(T2T.write(restored.tree), ["a"]).tree == restored.tree
    surplus = TAGS.read("(S XX XX , )S " * 200, ["a", "b", ","])
    assert surplus.repairs["surplus_tag"] == 597
