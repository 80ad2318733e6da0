"""What a user's problem may yield, and what is said if it is not pairs of texts."""

import dataclasses
import re

import numpy as np
import pytest

from t2tlite.data.checked_pairs import checked_pairs
from t2tlite.data.problem import Problem


@dataclasses.dataclass(frozen=True)
class DictToy(Problem):
    """Yields what it is given, after one good pair."""

    yielded: object = None

    def pairs(self, split, tmp_dir):
        yield "number", "Nummer"
        yield self.yielded


@pytest.mark.parametrize(
    "yielded",
    [
        {"inputs": "a"},
        "ab",
        ("a", "b", "c"),
        None,
        ("a", None),
        {"a", "b"},
        ("x" * 999,),
    ],
)
def test_what_is_not_a_pair(yielded):
    received = re.escape(repr(yielded)[:50])
    message = (
        r"^dict_toy, train pair 2: a pair \(source, target\) of two strings, each one"
        rf" line, is required\. Received: {received}.*\.$"
    )
    with pytest.raises(ValueError, match=message) as error:
        list(checked_pairs(DictToy(yielded=yielded), "train", None))
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("a\nb", "c"), r"a pair .*, each one line, is required\. Received: \('a"),
        (("a", "b\n"), r"a pair .*, each one line, is required\. Received: \('a"),
        (("a", "\ud800"), "Text must be Unicode without lone surrogates"),
    ],
)
def test_texts_that_no_file_can_hold(pair, message):
    with pytest.raises(ValueError, match=f"^dict_toy, dev pair 2: {message}"):
        list(checked_pairs(DictToy(yielded=pair), "dev", None))


@pytest.mark.parametrize(
    "pair",
    [["a", "b"], ("", ""), ("a\0b", "\r"), ("a\u2028b", "\x85"), np.array(["a", "b"])],
)
def test_texts_that_are_taken_as_they_are(pair):
    assert [*list(checked_pairs(DictToy(yielded=pair), "dev", None))[1]] == [*pair]


def test_code_that_fails(monkeypatch):
    def pairs(self, split, tmp_dir):
        yield "a", "b"
        yield "c", int("x")

    monkeypatch.setattr(DictToy, "pairs", pairs)
    message = "^dict_toy, train pair 2: invalid literal for int"
    with pytest.raises(ValueError, match=message):
        list(checked_pairs(DictToy(), "train", None))
