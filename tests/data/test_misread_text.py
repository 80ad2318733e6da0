"""What shows that a file was read otherwise than was meant."""

import pytest
from tiny_task import TinyTask, sentences

from t2tlite.data.checked_pairs import ReadSplit
from t2tlite.data.generate import generate

PAIRS = [*sentences(20, 1), ("12", "twelve"), ('"Yes."', '"Ja."')]


def said(capsys, *chunks) -> list[str]:
    misread = ReadSplit()
    for chunk in chunks:
        misread.add(chunk)
    misread.report("dev2")
    return capsys.readouterr().err.splitlines()


@pytest.mark.parametrize(
    "header",
    [("en", "de"), ("Source", "Target"), ("ENGLISH", "german"), ("text_1", "text_2")],
)
def test_a_header(capsys, header):
    assert said(capsys, [header, *PAIRS]) == [
        f"dev2: the first pair seems to be a header, {' | '.join(header)}. If so, remove"
        " it: tail -n +2 OLD > NEW."
    ]


@pytest.mark.parametrize(
    "chunks",
    [
        (PAIRS, [("en", "de")]),
        ([("English", "a language"), *PAIRS],),
        ([("", ""), *PAIRS],),
    ],
)
def test_nothing_is_said_of_text(capsys, chunks):
    assert said(capsys, *chunks) == []


def test_columns_of_numbers(capsys):
    chunks = [[(str(i), "A dog."), (f"0.{i}", "-3")] for i in range(20)]
    assert said(capsys, *chunks) == [
        "dev2: 40 of 40 sources are numbers. Check that these are the right columns."
    ]


def test_quotes_around_every_text(capsys):
    quoted = [(source, f'"{target}"') for source, target in sentences(50, 1)]
    (line,) = said(capsys, PAIRS, quoted)
    assert line.startswith(
        "dev2: 51 of 72 targets are in quotes, which the model learns"
    )


def test_each_split_is_looked_at(tmp_path, capsys):
    task = TinyTask(dev=(("en", "de"), *TinyTask().dev), test=(("7", "sie\rben"),))
    generate(task, tmp_path, num_processes=1)
    lines = capsys.readouterr().err
    assert "tiny_task, dev: the first pair seems to be a header, en | de." in lines
    assert "tiny_task, test: 1 of 1 source are numbers." in lines
    assert "tiny_task, test: 1 pair with a carriage return (CR) inside" in lines
    assert "tiny_task, train:" not in lines
