"""Trees: read, cleaned, linearised, restored from any sequence, drawn and scored."""

import gzip
from pathlib import Path

import pytest
from fuzzing import EXAMPLES, LINES, TEXTS, damaged_bytes, run_command, survives
from hypothesis import given, settings
from hypothesis import strategies as st

from t2tlite.bin import t2t_evalb
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Output
from t2tlite.trees.drawing import tree_svg
from t2tlite.trees.evalb import KEYWORDS, read_parameters, score_sentence
from t2tlite.trees.linearise import LINEARISATIONS, TAGS
from t2tlite.trees.restore import split_tokens
from t2tlite.trees.tree import (
    TAG,
    Tree,
    clean_tree,
    format_tree,
    parse_tree,
    read_trees,
)
from t2tlite.vocabularies.normalisation import words

LABELS = "TOP S NP NP-SBJ-1 NP=2 ADVP|PRT -NONE- -LRB- , `` . XX - = /S S1".split()
PIECES = ["(", ")", " ", "\n", "((", "))", "(TOP ", "*x*", "\0", "\\/", *LABELS]
WORD = st.sampled_from(["a", "0", ",", "*T*-1", "'"])
TREES = st.recursive(
    st.builds(lambda tag, word: Tree(tag, (word,)), st.sampled_from(LABELS), WORD),
    lambda trees: st.builds(
        Tree,
        st.sampled_from(LABELS),
        st.lists(trees, min_size=1, max_size=4).map(tuple),
    ),
    max_leaves=12,
)
BRACKETED = st.one_of(
    st.lists(st.one_of(st.sampled_from(PIECES), st.text(max_size=3)), max_size=30).map(
        "".join
    ),
    TREES.map(format_tree),
    st.tuples(TREES.map(format_tree), st.integers(0, 60), st.sampled_from(PIECES)).map(
        lambda parts: parts[0][: parts[1]] + parts[2] + parts[0][parts[1] :]
    ),
)
WORDS = st.lists(
    st.one_of(
        st.sampled_from(["a", "the", ",", ".", "''", "(", ")", "-LRB-", "--"]), LINES
    ),
    max_size=8,
).map(lambda words: " ".join(words).split())
FORMS = sorted(LINEARISATIONS)


@given(text=BRACKETED)
def test_any_text_as_a_tree(text):
    read = []
    if survives(lambda: read.append(parse_tree(text))):
        assert parse_tree(format_tree(read[0])) == read[0]
        tree_svg(read[0])
        if cleaned := clean_tree(read[0]):
            assert clean_tree(cleaned) == cleaned


PLAIN = "(TOP (S (NP (DT Thé)\n(NN cat)) (. .)))\n( (X y))\n".encode()
PACKED = gzip.compress(b"(TOP (S (NN cat)))\n" * 20, mtime=0)


@pytest.mark.parametrize(
    ("whole", "ending"), [(PLAIN, "trees"), (PLAIN, "trees.gz"), (PACKED, "trees.gz")]
)
@given(data=st.data())
def test_a_damaged_file_of_trees(whole, ending, data, tmp_path):
    path = tmp_path / f"damaged.{ending}"
    path.write_bytes(data.draw(damaged_bytes(whole)))
    survives(lambda: list(read_trees(path)))


@pytest.mark.parametrize("form", FORMS)
@given(tree=TREES)
def test_linearised_and_read_again(form, tree):
    cleaned = clean_tree(tree)
    if cleaned is not None:
        written = LINEARISATIONS[form].write(cleaned)
        restored = LINEARISATIONS[form].read(written, cleaned.words(), fit_tags=False)
        assert [node.label for kind, node in restored.tree.walk() if kind != TAG][
            :1
        ] == ["TOP"]
        if form == "tags":
            assert restored.tree == cleaned


@settings(max_examples=max(EXAMPLES, 300))
@given(sequence=BRACKETED, tree=TREES)
def test_repairs_are_counted_if_a_sequence_is_not_a_tree(sequence, tree):
    sentence = clean_tree(tree) or parse_tree("(TOP (NN a))")
    for text in (sequence, TAGS.write(sentence)):
        restored = TAGS.read(text, sentence.words())
        written = TAGS.write(restored.tree)
        assert (not restored.repairs) == (written == " ".join(split_tokens(text)))
        again = TAGS.read(written, sentence.words())
        assert again.tree == restored.tree
        assert not again.repairs


@pytest.mark.parametrize("form", FORMS)
@given(
    sequence=st.one_of(BRACKETED, TEXTS), sentence=st.one_of(LINES, WORDS.map(" ".join))
)
def test_any_sequence_becomes_a_tree_over_the_words(form, sequence, sentence):
    task = ParsingTask(LINEARISATIONS[form])
    source = task.source(sentence)
    hypothesis = Output(sequence, -1.0, -1.0)
    (output,) = task.choose(source, [hypothesis], 1)
    assert output.tree is None or output.tree.words() == words(source)
    if source:
        assert parse_tree(output.text) == output.tree
        score = task.score([source], [task.reference(source, sequence)], [output])
        sequences = task.as_sequences()
        assert sequences.score([source], [sequence], [hypothesis]) == score


@given(gold=TREES, predicted=TREES)
def test_any_trees_scored(gold, predicted):
    score = score_sentence(gold, predicted)
    assert score.matched <= min(score.gold, score.predicted)
    same = score_sentence(gold, gold)
    assert same.matched == same.gold


def write(path: Path, lines: list[str]) -> None:
    text = "".join(f"{line}\n" for line in lines)
    path.write_text(text, encoding="utf-8", errors="replace")


@given(gold=st.lists(BRACKETED, max_size=3), predicted=st.lists(BRACKETED, max_size=3))
def test_t2t_evalb(gold, predicted, tmp_path):
    write(tmp_path / "gold", gold)
    write(tmp_path / "predicted", predicted)
    flags = [f"--{name}={tmp_path}/{name}" for name in ("gold", "predicted")]
    run_command(t2t_evalb.main, *flags, "--sentences")


VALUES = st.sampled_from(["", " 1", " a b", " ٣", " " + "9" * 5000])
LINE = st.tuples(st.sampled_from([*KEYWORDS, "#", ""]), TEXTS, VALUES).map("".join)


@given(lines=st.lists(LINE))
def test_parameters_of_evalb(lines, tmp_path):
    write(tmp_path / "fuzz.prm", lines)
    survives(lambda: read_parameters(tmp_path / "fuzz.prm"))
