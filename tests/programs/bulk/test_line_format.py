"""Outputs that are written to be read again."""

from __future__ import annotations

from collections import Counter

from t2tlite.config import DecodeHParams
from t2tlite.programs.bulk.line_format import OutputRecords
from t2tlite.tasks.parsing import Parse, ParsingTask
from t2tlite.tasks.task import Hypothesis
from t2tlite.trees.tree import parse_tree

ODD = "ein\u2028\x85 'Wort'\t\"\\ \U0001f600"


def test_recorded_outputs_are_what_they_were():
    hypotheses = [Hypothesis(ODD, -1 / 3, -2e-17, (3, 999_999)), Hypothesis("", 0.0, float("-inf"))]
    parse = Parse(parse_tree("(TOP (S (NN bird)))"), -0.1, -0.25, Counter(missing=1), "(S XX", (7,))
    lines = OutputRecords().lines(None, ["x", "y"], [hypotheses, [parse]], DecodeHParams())
    assert [len(line.splitlines()) for line in lines] == [1, 1]
    found = OutputRecords().read(lines)
    names = "text", "score", "log_prob", "sequence", "ids"
    for outputs, expected in zip(found, [hypotheses, [parse]], strict=True):
        assert [[getattr(one, name) for name in names] for one in outputs] == [
            [getattr(one, name) for name in names] for one in expected
        ]
    assert found[1][0].text == "(TOP (S (NN bird)))"
    assert found[1][0].sequence == "(S XX"


def test_a_parse_that_was_recorded_is_scored_as_it_was_decoded():
    task, source, gold = ParsingTask(), "A bird sang", "(S (NP XX XX )NP (VP XX )VP )S"
    (parse,) = task.choose(source, [Hypothesis("(S (NP XX XX )NP (VP XX", -1.0, -2.0)], 1)
    ((found,),) = OutputRecords().read(OutputRecords().lines(None, [source], [[parse]], DecodeHParams()))
    assert found.sequence != found.text == parse.text
    assert task.score([source], [gold], [found.sequence]) == task.score([source], [gold], [parse.sequence])
