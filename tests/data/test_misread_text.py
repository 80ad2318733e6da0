"""What shows that a file was read otherwise than was meant."""

import pytest
from tiny_task import TinyTask, sentences

from t2tlite.data.checked_pairs import ReadSplit
from t2tlite.data.generate import generate

PAIRS = [*sentences(20, 1), ("12", "twelve"), ('"Yes."', '"Ja."')]


HEADER = "the first pair seems to be a header"
QUOTED = [(source, f'"{target}"') for source, target in sentences(50, 1)]
NUMBERS = [[(str(i), "A dog."), (f"0.{i}", "-3")] for i in range(20)]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([[("en", "de"), *PAIRS]], [f"{HEADER}, en | de. If so, remove it: tail -n +2 OLD > NEW."]),
        ([[("Source", "Target"), *PAIRS]], [f"{HEADER}, Source | Target."]),
        ([[("ENGLISH", "german"), *PAIRS]], [f"{HEADER}, ENGLISH | german."]),
        ([[("text_1", "text_2"), *PAIRS]], [f"{HEADER}, text_1 | text_2."]),
        (NUMBERS, ["40 of 40 sources are numbers. Check that these are the right columns."]),
        ([PAIRS, QUOTED], ["51 of 72 targets are in quotes, which the model learns"]),
        ([PAIRS, [("en", "de")]], []),
        ([[("English", "a language"), *PAIRS]], []),
        ([[("", ""), *PAIRS]], []),
    ],
)  # fmt: skip
def test_what_is_said(capsys, chunks, lines):
    misread = ReadSplit()
    for chunk in chunks:
        misread.add(chunk)
    misread.report("dev2")
    said = capsys.readouterr().err.splitlines()
    for line, expected in zip(said, lines, strict=True):
        assert line.startswith(f"dev2: {expected}")


def test_each_split_is_looked_at(tmp_path, capsys):
    task = TinyTask(dev=(("en", "de"), *TinyTask().dev), test=(("7", "sie\rben"),))
    generate(task, tmp_path, num_processes=1)
    lines = capsys.readouterr().err
    assert "tiny_task, dev: the first pair seems to be a header, en | de." in lines
    assert "tiny_task, test: 1 of 1 source are numbers." in lines
    assert "tiny_task, test: 1 pair with a carriage return (CR) inside" in lines
    assert "tiny_task, train:" not in lines
