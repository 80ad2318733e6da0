"""Trees as tensor2tensor writes them, and its sequences read back."""

import json

import pytest
from fixture_files import tree_files

from t2tlite.trees.linearise import T2T
from t2tlite.trees.tree import format_tree, parse_tree, read_trees


def test_tensor2tensors_linearisation_of_seven_trees(fixtures):
    examples = json.loads(
        (fixtures / "tensor2tensor" / "parsing.json").read_text(encoding="utf-8")
    )
    assert len(examples) == 7
    for example in examples:
        tree = parse_tree(example["tree"])
        assert (" ".join(tree.words()), T2T.write(tree)) == (
            example["words"],
            example["tags"],
        )


@pytest.mark.parametrize("trees_of", tree_files("gum_wikinews"))
def test_tensor2tensors_linearisation_of_a_file(fixtures, tree_file, trees_of):
    small = fixtures / "tensor2tensor" / "linearised"
    theirs = small if trees_of == "grammar" else tree_file.with_name("gum_wikinews.t2t")
    words, tags = (
        theirs.with_name(f"{theirs.name}.{kind}")
        .read_text(encoding="utf-8")
        .splitlines()
        for kind in ("words", "tags")
    )
    trees = list(read_trees(tree_file))
    assert [" ".join(tree.words()) for tree in trees] == words
    assert [T2T.write(tree) for tree in trees] == tags
    for tree, sentence, labels in zip(trees, words, tags, strict=True):
        restored = T2T.read(labels, sentence.split())
        assert restored.tree == tree
        assert not restored.repairs


@pytest.mark.parametrize(
    ("text", "words", "tree", "repairs"),
    [
        ("NP DT /NP VP VBD /VP .", "He sat .", "(NP (DT He)) (VP (VBD sat)) (. .)", {}),
        (
            "NP NP NN /NP NP NP NN /NP /NP /NP",
            "a b",
            "(NP (NP (NN a)) (NP (NP (NN b))))",
            {},
        ),
        # nothing says that NP is not a tag
        ("S NP NN /S", "a b", "(S (NP a) (NN b))", {}),
        ("S NN /NP /S", "a", "(S (NN a))", {"unmatched_closing": 1}),
        ("S NN / (NN) /S", "a", "(S (NN a))", {"malformed_token": 2}),
        ("", "a b", "(XX a) (XX b)", {"missing_tag": 2}),
        (
            "S NP DT /NP , VP VBD /VP /S",
            "a b , c",
            "(S (NP (DT a) (XX b)) (, ,) (VP (VBD c)))",
            {"missing_tag": 1},
        ),
    ],
)
def test_tensor2tensors_sequences_restored(text, words, tree, repairs):
    restored = T2T.read(text, words.split())
    assert format_tree(restored.tree) == f"(TOP {tree})"
    assert dict(restored.repairs) == repairs
