"""Outputs that are recorded to be read again."""

from __future__ import annotations

from t2tlite.programs.bulk.jobs import read_records, record_lines
from t2tlite.tasks.parsing import Parse, ParsingTask
from t2tlite.tasks.task import Output

ODD = "ein\u2028\x85 'Wort'\t\"\\ \U0001f600"
NAMES = "text", "score", "log_prob", "sequence", "ids"


def test_recorded_outputs_are_read_as_they_were():
    hypotheses = [
        Output(ODD, -1 / 3, -2e-17, (3, 999_999)),
        Output("", 0.0, float("-inf")),
    ]
    parse = Parse("(TOP (S (NN bird)))", -0.1, -0.25, (7,), "(S XX")
    lines = record_lines([hypotheses, [parse]])
    assert [len(line.splitlines()) for line in lines] == [1, 1]
    recorded = read_records(lines)
    for outputs, expected in zip(recorded, [hypotheses, [parse]], strict=True):
        for output, written in zip(outputs, expected, strict=True):
            for name in NAMES:
                assert getattr(output, name) == getattr(written, name)
    assert recorded[1][0].sequence == "(S XX"


def test_recorded_parse_is_scored_as_it_was_decoded():
    task, source, gold = ParsingTask(), "A bird sang", "(S (NP XX XX )NP (VP XX )VP )S"
    (parse,) = task.choose(source, [Output("(S (NP XX XX )NP (VP XX", -1.0, -2.0)], 1)
    ((recorded,),) = read_records(record_lines([[parse]]))
    assert recorded.sequence != recorded.text == parse.text
    references = [task.reference(source, gold)]
    assert task.score([source], references, [recorded]) == task.score(
        [source], references, [parse]
    )
