"""Samples in a report: what is shown of which sentences, and trees beside each
other.
"""

from __future__ import annotations

import pytest

from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.programs.report.document import Drawings
from t2tlite.programs.report.samples import sample_blocks
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import TranslationTask
from t2tlite.trees.linearise import TAGS
from t2tlite.trees.tree import parse_tree


def parsed(gold, predicted):
    """The blocks of one sentence, whose data has the gold tree in linearised form."""
    tree = parse_tree(gold)
    task = ParsingTask.from_options({"linearisation": "tags"})
    return sample_blocks(
        task, [predicted], [" ".join(tree.words())], [TAGS.write(tree)]
    )


def test_trees_are_drawn_gold_beside_predicted():
    gold, predicted = (
        "(TOP (S (NP (DT The) (NN cat)) (VP (VBD sat))))",
        "(TOP (S (NP (DT The) (NN cat) (VBD sat))))",
    )
    sentence, drawings, brackets = parsed(gold, predicted)
    assert sentence == "Sentence 1. The cat sat"
    assert isinstance(drawings, Drawings)
    assert [figure.count("<text") for figure in drawings.split("<figure>")] == [
        0,
        2 + 5 + 3,
        2 + 4 + 3,
    ]
    assert drawings.index("<figcaption>gold<") < drawings.index(
        "<figcaption>predicted<"
    )
    assert f"```\ngold: {gold}\npredicted: {predicted}\n```" in brackets
    assert parsed(gold, gold)[0] == "Sentence 1. The cat sat The trees are the same."


def test_a_prediction_that_is_not_a_tree():
    sentence, drawings, _ = parsed("(TOP (S (NP (NN Rain))))", "(TOP (S")
    assert (
        "Rain The prediction is not a tree: the text, line 1: every bracket must be"
        " closed." in sentence
    )
    assert "<figcaption>gold<" in drawings
    assert "<figcaption>predicted<" not in drawings


def test_trees_without_data():
    (sentence, drawings, _), task = (
        sample_blocks(ParsingTask(), ["(TOP (NN Rain))"]),
        ParsingTask(),
    )
    assert sentence == "Sentence 1. Rain"
    assert "<figcaption>predicted<" in drawings
    (sentence,) = sample_blocks(task, ["(TOP"])
    assert sentence.startswith("Sentence 1.  The prediction is not a tree: ")


def sample_table(*texts: list[str]) -> tuple[list[str], list[list[str]]]:
    """The cells of the table of translations: its header and its rows."""
    (markdown,) = sample_blocks(TranslationTask(), *texts)
    header, _, *rows = (
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in markdown.splitlines()
    )
    return header, rows


def test_translations_with_and_without_data():
    outputs = [f"output {i}" for i in range(100)]
    header, rows = sample_table(outputs)
    assert header == ["sentence", "output"]
    assert rows == [
        [str(i + 1), f"output {i}"] for i in (0, 12, 25, 37, 50, 62, 75, 87)
    ]
    header, rows = sample_table(outputs[:1], ["source 0"], ["reference 0"])
    assert header == ["sentence", "source", "output", "reference"]
    assert rows == [["1", "source 0", "output 0", "reference 0"]]


@pytest.mark.parametrize(
    ("count", "wanted", "chosen"),
    [(0, 3, []), (2, 3, [0, 1]), (3, 3, [0, 1, 2]), (10, 3, [0, 3, 6])],
)
def test_examples_are_evenly_spaced(count, wanted, chosen):
    assert list(evenly_spaced(count, wanted)) == chosen
