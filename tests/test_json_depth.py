"""The limit on the nesting of JSON."""

import contextlib
import json
import time

import pytest

from t2tlite.json_depth import MAX_DEPTH, check_depth


def nested(depth: int, opening: str = "[", closing: str = "]") -> str:
    return opening * depth + closing * depth


@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_DEPTH),
        nested(MAX_DEPTH).encode(),
        json.dumps(["[" * 5000, "\\", '"' + "{" * 5000]),  # in strings
        json.dumps([[]] * 5000),  # beside each other
        json.dumps({"a": [1, {"b": '\\"]'}]}) + nested(99),
        "]" * 5000,  # the parser says what is wrong
    ],
)
def test_shallow(text):
    check_depth(text)


@pytest.mark.parametrize(
    "text",
    [
        nested(MAX_DEPTH + 1),
        nested(MAX_DEPTH + 1).encode(),
        "[" * 5000,
        nested(5000, '{"a":', "}"),
        nested(60, '[{"a":', "}]"),
        '{"a": "\\\\", "b": ' + nested(5000),
        "\ufeff" + nested(5000),
    ],
)
def test_deep(text):
    message = rf"^JSON must be nested at most {MAX_DEPTH} deep\. Received: more, from "
    with pytest.raises(ValueError, match=message):
        check_depth(text)


@pytest.mark.parametrize("part", ['"', '\\"', '"\\', "\\", '[""]', '["'])
def test_takes_time_in_proportion_to_the_text(part):
    started = time.monotonic()
    with contextlib.suppress(ValueError):
        check_depth("[]" * 200 + '"' + part * 200_000)
    assert time.monotonic() - started < 5
