"""Bracketed trees: parsed, formatted, read from files of any layout, refused with file
and line, and cleaned.
"""

import gzip

import pytest
from fixture_files import tree_files

from t2tlite.trees.linearise import LINEARISATIONS
from t2tlite.trees.restore import split_tokens
from t2tlite.trees.tree import (
    Tree,
    clean_label,
    clean_tree,
    format_tree,
    parse_tree,
    read_trees,
)

CAT = "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat)) (. .)))"
DEPTH = 5000  # recursion ends at 1,000

# The first sentence of the treebank's README, laid out as its combined files are.
COMBINED = """
( (S 
    (NP-SBJ 
      (NP (NNP Pierre) (NNP Vinken) )
      (, ,) 
      (ADJP 
\t(NP (CD 61) (NNS years) )
        (JJ old) )
      (, ,) )
    (VP (MD will) 
      (VP (VB join) 
        (NP (DT the) (NN board) )
        (PP-CLR (IN as) 
          (NP (DT a) (JJ nonexecutive) (NN director) ))
        (NP-TMP (NNP Nov.) (CD 29) )))
    (. .) ))
"""


def test_a_tree_is_labels_over_words():
    tree = parse_tree("(NP (DT The) (NN cat))")
    assert tree == Tree("NP", (Tree("DT", ("The",)), Tree("NN", ("cat",))))
    assert tree != Tree("NP", (Tree("DT", ("The",)), Tree("NN", ("dog",))))
    assert tree != Tree("NX", tree.children)
    assert tree != Tree("NP", tree.children[:1])
    assert tree != "(NP (DT The) (NN cat))"
    assert hash(tree) == hash(parse_tree(" ( NP(DT\tThe)\n( NN\fcat ) ) "))
    assert repr(tree) == "Tree('(NP (DT The) (NN cat))')"


# as str.isspace knows them; ASCII's white space separates words
UNICODE_SPACES = [chr(i) for i in range(0x80, 0x10000) if chr(i).isspace()]


@pytest.mark.parametrize("space", UNICODE_SPACES, ids=ascii)
def test_spaces_that_are_not_ascii_are_part_of_a_word(space):
    """EVALB's C program reads bytes, of which isspace() knows ASCII's alone."""
    text = f"(TOP (S (CD 10{space}000) (NN {space}) (NNS {space}cats{space})))"
    tree = parse_tree(text)
    assert tree.words() == [f"10{space}000", space, f"{space}cats{space}"]
    assert format_tree(tree) == text
    assert split_tokens(" ".join(tree.words())) == tree.words()
    for form in LINEARISATIONS.values():
        restored = form.read(form.write(tree), tree.words(), fit_tags=False)
        assert (restored.tree.words(), +restored.repairs) == (tree.words(), {})


def test_the_layout_of_the_penn_treebank(tmp_path):
    path = tmp_path / "wsj_0001.mrg"
    path.write_text(COMBINED + COMBINED)
    first, second = read_trees(path)
    assert format_tree(first) == (
        "( (S (NP-SBJ (NP (NNP Pierre) (NNP Vinken)) (, ,) (ADJP (NP (CD 61) (NNS"
        " years)) (JJ old)) (, ,)) (VP (MD will) (VP (VB join) (NP (DT the) (NN"
        " board)) (PP-CLR (IN as) (NP (DT a) (JJ nonexecutive) (NN director)))"
        " (NP-TMP (NNP Nov.) (CD 29)))) (. .)))"
    )
    assert second == first


HEADER = b"*x*x*x*x*x*x*x*\n*x*  Copyright (C) of a treebank  *x*\n *x*x*x*x*x*\n\n"


@pytest.mark.parametrize(
    "content",
    [
        b"(NN a)\n(NN b)\n",
        b"(NN a)\n(NN b)",
        b"(NN a)(NN b)",
        b"\n\n (NN\n a\n)   (\nNN b) \n\n",
        b"(NN a)\r\n(NN b)\r\n",
        b"\xef\xbb\xbf(NN a)\n(NN b)\n",
        b"(NN\ta)\x0b(NN\x0cb)\n",
        HEADER + b"(NN a)\n" + HEADER + b"(NN b)\n",
    ],
)
@pytest.mark.parametrize("name", ["a.trees", "a.mrg.gz"])
def test_layouts_that_are_read_alike(tmp_path, content, name):
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    assert [format_tree(tree) for tree in read_trees(path)] == ["(NN a)", "(NN b)"]


def test_inside_a_tree_a_line_of_stars_is_text(tmp_path):
    path = tmp_path / "a.mrg"
    path.write_text("(NN\n*x*\n)\n")
    assert [tree.words() for tree in read_trees(path)] == [["*x*"]]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        # file and line, what is required, what was received, what to do
        ("(NN a)\n(S (NN b)\n(NN c)\n", r"line 3: every .* line 2\. "),
        ("(NN a)\n\n(S\n(NP (NN b)", "line 4: every bracket must .* line 3"),
        ("(NN a)\n(NN b))\n", r"line 2: words and closing .* '\(NN b\)\)'"),
        ("(NN a)\ncat (NN b)", r"line 2: .* must lie .*Received: 'cat \(NN b\)'"),
        ("(NN a) \ufeff(NN b)", r"line 1: .* must lie .*\\ufeff"),
        ("(NN a)\n(NP () (NN a))\n", r"line 2: each bracket holds a label"),
        ("( (S (NN a)\n ( )))", r"line 2: each bracket .* line 1\."),
        ("(S\n (NP) (NN a))", r"line 2: each bracket .*Received: ' \(NP\) \(NN a\)\)'"),
        ("(S (cat))", r"line 1: each .* words that are brackets as -LRB-"),
        ("(NP (DT the)\ncat)", r"line 2: each word .*Received: 'cat\)'"),
        ("\n(S (NN a b))", r"line 2: each word has a tag .*Received: '\(S \(NN a b"),
        ("( (NN a) b)", "line 1: each word has a tag and a bracket"),
        ("( (S (NN a))\n\n( (S (NN b)))", r"line 3: .* only .* begins on line 1\."),
        ("(NN a)\n(NN caf\udce9)\n", r"line 2: text must be UTF-8\. .* byte 0xe9"),
        ("\n  \n*x*\n", r": at least one tree is required\. Received: none\."),
    ],
)
def test_mistakes_in_a_file_are_named_with_their_line(tmp_path, content, message):
    path = tmp_path / "a.mrg"
    path.write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(ValueError, match=rf"a\.mrg(, )?{message}"):
        list(read_trees(path))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("(NN a) (NN b)", r"Received: 2 in '\(NN a\) \(NN b\)'\."),
        ("(S\n(NN a b))", "the text, line 2: each word has a tag"),
        ("(NN a)" * 40, r"Received: 40 in '.{79}\.$"),
    ],
)
def test_parsing_needs_exactly_one_tree(text, message):
    with pytest.raises(ValueError, match=message):
        parse_tree(text)


def test_labels_without_function_tags():
    for label in ("NP", "NP-SBJ-1", "NP=2", "NP-LOC-PRD-TPC=1", "NP|PRT"):
        assert clean_label(label) == "NP"
    for label in ("PRP$", "-LRB-", "-NONE-", "-", "=", "''", ":", "#"):
        assert clean_label(label) == label


def test_brackets_without_words_are_a_sentence_without_parse(tmp_path):
    path = tmp_path / "a.mrg"
    path.write_text("(())\n(TOP)\n(NN a)\n( (S1 ()))\n")
    assert [tree.words() for tree in read_trees(path)] == [[], [], ["a"], []]


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [
        (CAT, CAT),
        ("(S (NP-SBJ-1 (-NONE- *)) (VP (VB Go)))", "(TOP (S (VP (VB Go))))"),
        # a trace three brackets down takes them along
        ("( (S (NN a) (SBAR (-NONE- 0) (S (NP (-NONE- *T*-1))))))", "(TOP (S (NN a)))"),
        # it is known that: the bracket of the pronoun's own label stays
        ("(S (NP-SBJ (NP (PRP It)) (S (-NONE- *EXP*-1))) (VP (VBZ is)))", "(TOP (S (NP (NP (PRP It))) (VP (VBZ is))))"),
        ("(S (NP (NP (NN a))))", "(TOP (S (NP (NP (NN a)))))"),
        ("(X (-LRB- -LRB-) (NN|JJ x) (-DFL- a))", "(TOP (X (-LRB- -LRB-) (NN x) (-DFL- a)))"),
        ("(NN *T*-1)", "(TOP (NN *T*-1))"),  # it is the tag that makes a trace
        # roots
        ("( (S (NN a)))", "(TOP (S (NN a)))"),
        ("(ROOT (S (NN a)))", "(TOP (S (NN a)))"),
        ("(S1 (S (NN a)))", "(TOP (S (NN a)))"),
        ("( (ROOT (TOP-2 (S (NN a)))))", "(TOP (S (NN a)))"),
        ("(TOP (TOP (S (NN a))) (-NONE- *))", "(TOP (S (NN a)))"),
        ("(S (NN a))", "(TOP (S (NN a)))"),
        ("( (S (NN a)) (. .))", "(TOP (S (NN a)) (. .))"),
        ("( (NN a))", "(TOP (NN a))"),
        ("(NN a)", "(TOP (NN a))"),
        ("(TOP a)", "(TOP (TOP a))"),
    ],
)  # fmt: skip
def test_cleaning(text, cleaned):
    tree = clean_tree(parse_tree(text))
    assert format_tree(tree) == cleaned
    assert clean_tree(tree) == tree


def test_cleaning_traces_alone_leaves_nothing():
    for text in ("(-NONE- *)", "( (S (NP (-NONE- *)) (VP (-NONE- *?*))))"):
        assert clean_tree(parse_tree(text)) is None


@pytest.mark.parametrize(
    "trees_of", tree_files("gum.train", "gum.dev", "gum.test", "gum_wikinews")
)
def test_clean_files_do_not_change_when_cleaned(tree_file):
    lines = tree_file.read_text(encoding="utf-8").splitlines()
    trees = list(read_trees(tree_file))
    assert len(trees) >= 150
    assert [format_tree(tree) for tree in trees] == lines
    assert [clean_tree(tree) for tree in trees] == trees


def test_cleaning_the_annotated_file_gives_the_clean_one(shared):
    folder = shared / "data" / "trees"
    cleaned = list(map(clean_tree, read_trees(folder / "gum_wikinews.raw.trees")))
    assert len(cleaned) == 1832
    assert cleaned == list(read_trees(folder / "gum_wikinews.trees"))


def test_trees_of_any_depth():
    text = "(TOP " + "(NP-X " * DEPTH + "(NN a) (-NONE- *)" + ")" * DEPTH + ")"
    tree = parse_tree(text)
    assert tree == parse_tree(text)
    assert hash(tree) == hash(parse_tree(text))
    assert format_tree(tree) == text
    assert (tree.words(), tree.tags()) == (["a", "*"], ["NN", "-NONE-"])
    cleaned = format_tree(clean_tree(tree))
    assert cleaned == "(TOP " + "(NP " * DEPTH + "(NN a)" + ")" * DEPTH + ")"
