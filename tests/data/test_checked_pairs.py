"""What a user's problem may yield, and what is said if it is not pairs of texts."""

import dataclasses
import re

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
        r"^dict_toy, train pair 2: a pair \(source, target\) of two strings is required\."
        rf" Received: {received}.*\. Yield source, target\.$"
    )
    with pytest.raises(ValueError, match=message) as error:
        list(checked_pairs(DictToy(yielded=yielded), "train", None))
    assert len(str(error.value)) < 250


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (("a\nb", "c"), r"a text must not contain a line break\. Received: \('a"),
        (("a", "b\n"), "a text must not contain a line break"),
        (("a", "\ud800"), "Text must be Unicode without lone surrogates"),
    ],
)
def test_texts_that_no_file_can_hold(pair, message):
    with pytest.raises(ValueError, match=f"^dict_toy, dev pair 2: {message}"):
        list(checked_pairs(DictToy(yielded=pair), "dev", None))


@pytest.mark.parametrize(
    "pair", [["a", "b"], ("", ""), ("a\0b", "\r"), ("a\u2028b", "\x85")]
)
def test_texts_that_are_taken_as_they_are(pair):
    assert list(checked_pairs(DictToy(yielded=pair), "dev", None))[1] == pair


def _none(split, tmp_dir):
    return None


def _raises_at_once(split, tmp_dir):
    raise KeyError(split)


def _raises_later(split, tmp_dir):
    yield "a", "b"
    yield "c", "d"
    yield "e", {}[split]


def _no_file(split, tmp_dir):
    yield "a", "b"
    with open("no such file") as file:
        yield file.read(), "x"


LINE = _raises_later.__code__.co_firstlineno + 3


@pytest.mark.parametrize(
    ("pairs", "kind", "message"),
    [
        (_none, ValueError, r"1: TypeError: 'NoneType' .*, in "),
        (_raises_at_once, ValueError, r"1: KeyError: 'train', in .*line \d+"),
        (
            _raises_later,
            ValueError,
            rf"3: KeyError: 'train', in .*test_checked_pairs\.py, line {LINE}\.",
        ),
        (_no_file, FileNotFoundError, r"2: FileNotFoundError: .*no such file"),
        (
            lambda *_: ((str(int(text)), "b") for text in ["1", "two"]),
            ValueError,
            r"2: ValueError: invalid literal for int",
        ),
    ],
)
def test_code_that_fails(monkeypatch, pairs, kind, message):
    monkeypatch.setattr(DictToy, "pairs", lambda self, *args: pairs(*args))
    with pytest.raises(kind, match=f"^dict_toy, train pair {message}") as error:
        list(checked_pairs(DictToy(), "train", None))
    assert "\n" not in str(error.value)
