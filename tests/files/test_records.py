"""Records in JSON files: what a damaged one says."""

import dataclasses
import json
import re

import pytest

from t2tlite.files.records import Amount, Count, Name, read_record, write_record


@dataclasses.dataclass(frozen=True)
class Record:
    file: Name
    pairs: Count
    seconds: Amount


WHOLE = '{"format_version": 1, "file": "a.arrow", "pairs": 3, "seconds": 1.5}'


def read(folder, text):
    path = folder / "record.json"
    path.write_bytes(text.encode())
    return read_record(path, Record, "Copy it again.")


def test_record_is_read_as_it_was_written(tmp_path):
    assert (
        read(tmp_path, WHOLE)
        == read(tmp_path, WHOLE[:-1] + ', "new": [1]}')
        == Record("a.arrow", 3, 1.5)
    )
    write_record(tmp_path / "record.json", Record("b", 2**63 - 1, 0.0))
    assert read_record(tmp_path / "record.json", Record, "") == Record(
        "b", 2**63 - 1, 0.0
    )
    assert json.loads((tmp_path / "record.json").read_text())["format_version"] == 1
    write_record(tmp_path / "record.json", {"a": 1})
    assert read_record(tmp_path / "record.json", dict[str, int], "") == {"a": 1}


@pytest.mark.parametrize(
    ("version", "received"),
    [
        ('"format_version": 2, ', "2"),
        ('"format_version": -1, ', "-1"),
        ("", "none"),
    ],
)  # fmt: skip
def test_record_of_another_format_version_is_refused(tmp_path, version, received):
    message = rf"record\.json must have format_version 1\. Received: {received}\. Use"
    with pytest.raises(ValueError, match=message):
        read(tmp_path, WHOLE.replace('"format_version": 1, ', version))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("3", "-1", "Expected `int` >= 0 - at `$.pairs`"),
        ("3", str(2**63), "Expected `int` <= 9223372036854775807 - at `$.pairs`"),
        ("1.5", "NaN", "JSON is malformed: invalid character"),
        ("1.5", "1e200", "Expected `float` <= 1e+100 - at `$.seconds`"),
        ('"a.arrow"', '"../a"', "Expected `str` matching regex"),
        ('"a.arrow"', r'"..\\a"', "Expected `str` matching regex"),
        ('"a.arrow"', r'"a\n"', "Expected `str` matching regex"),
        ('"a.arrow"', '"\\ud800"', "JSON is malformed"),
        ("3", '3, "new": ' + "[" * 100_000 + "]" * 100_000, "maximum recursion depth"),
        (WHOLE, "{", "Input data was truncated"),
    ],
)  # fmt: skip
def test_a_damaged_record_names_file_and_field(tmp_path, old, new, message):
    with pytest.raises(
        ValueError,
        match=rf"record\.json is damaged: {re.escape(message)}.*\. Copy it again\.$",
    ):
        read(tmp_path, WHOLE.replace(old, new, 1))
