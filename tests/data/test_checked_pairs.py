"""What a user's problem may yield, and what is said if it is not pairs of texts."""

import dataclasses

import pytest
from tiny_task import TinyTask

from t2tlite.data.checked_pairs import checked_pairs
from t2tlite.data.generate import generate
from t2tlite.data.problem import Problem


@dataclasses.dataclass(frozen=True)
class DictToy(Problem):
    """Yields what it is given, after one good pair."""

    yielded: object = None

    def pairs(self, split, tmp_dir):
        yield "number", "Nummer"
        yield self.yielded


@pytest.mark.parametrize(
    ("yielded", "received", "advice"),
    [
        (
            {"inputs": "a", "targets": "b"},
            r"\{'inputs': 'a', 'targets': 'b'\}",
            r"Yield example\['inputs'\], example\['targets'\]",
        ),
        (
            {"targets": "b", "label": 3, "inputs": "a"},
            r"\{'targets'",
            r"Yield example\['inputs'\], example\['targets'\]",
        ),
        ({"en": "a", "de": "b"}, r"\{'en'", r"Yield example\['en'\], example\['de'\]"),
        (
            {"id": "1", "translation": {"en": "a", "de": "b"}},
            r"\{'id'",
            r"Yield example\['translation'\]\['en'\], example\['translation'\]\['de'\]",
        ),
        ({}, r"\{\}", "Yield source, target"),
        ("ab", "'ab'", "Yield source, target"),
        ("one text", "'one text'", "Yield source, target"),
        (("a", "b", "c"), r"\('a', 'b', 'c'\)", "Yield source, target"),
        (("a",), r"\('a',\)", "Yield source, target"),
        ((), r"\(\)", "Yield source, target"),
        (None, "None", "Yield source, target"),
        (("a", None), r"\('a', None\)", "Yield source, target"),
        ((1, 2), r"\(1, 2\)", "Yield source, target"),
        (7, "7", "Yield source, target"),
        ((("a", "b"), ("c", "d")), r"\(\('a', 'b'\), ", "Yield source, target"),
        ({"a", "b"}, r"\{'[ab]'", "Yield source, target"),
        (b"ab", "b'ab'", r"Yield source, target, and decode bytes: data\.decode\(\)"),
        (
            (b"a", b"b"),
            r"\(b'a', b'b'\)",
            r"Yield source, target, and decode bytes: data\.decode\(\)",
        ),
        (("x" * 10**6,), r"\('x{50,100}\.\.\.", "Yield source, target"),
    ],
)
def test_what_is_not_a_pair(yielded, received, advice):
    message = (
        r"^dict_toy, train pair 2: a pair \(source, target\) of two strings is required\."
        rf" Received: {received}.*\. {advice}"
    )
    with pytest.raises(ValueError, match=message):
        list(checked_pairs(DictToy(yielded=yielded), "train", None))


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (
            ("a\nb", "c"),
            r"pair 2: a text must not contain a line break\. Received: \('a",
        ),
        (("a", "b\n"), r"pair 2: a text must not contain a line break"),
        (("a", "\ud800"), r"pair 2: Text must be Unicode without lone surrogates"),
    ],
)
def test_texts_that_no_file_can_hold(pair, message):
    with pytest.raises(ValueError, match=f"^dict_toy, dev {message}"):
        list(checked_pairs(DictToy(yielded=pair), "dev", None))


@pytest.mark.parametrize(
    "pair",
    [
        ("a", "b"),
        ["a", "b"],
        ("", ""),
        ("a\0b", "\r"),
        ("a\u2028b", "\x85"),
        ("1", "é"),
    ],
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


def _no_number(split, tmp_dir):
    return ((str(int(text)), "b") for text in ["1", "two"])


@pytest.mark.parametrize(
    ("pairs", "kind", "message"),
    [
        (_none, ValueError, r"train: the method `pairs` must yield .*Received: None\."),
        (
            _raises_at_once,
            ValueError,
            r"train: KeyError: 'train', raised in .*line \d+",
        ),
        (_raises_later, ValueError, r"train pair 3: KeyError: 'train', raised in "),
        (
            _no_file,
            FileNotFoundError,
            r"train pair 2: FileNotFoundError: .*no such file",
        ),
        (_no_number, ValueError, r"train pair 2: ValueError: invalid literal for int"),
    ],
)
def test_code_that_fails(monkeypatch, pairs, kind, message):
    monkeypatch.setattr(DictToy, "pairs", lambda self, *args: pairs(*args))
    with pytest.raises(kind, match=f"^dict_toy, {message}") as error:
        list(checked_pairs(DictToy(), "train", None))
    assert "\n" not in str(error.value)


def test_place_is_the_line_that_raised(monkeypatch):
    monkeypatch.setattr(DictToy, "pairs", lambda self, *args: _raises_later(*args))
    line = _raises_later.__code__.co_firstlineno + 3
    with pytest.raises(
        ValueError, match=rf"test_checked_pairs\.py, line {line}\. Corr"
    ):
        list(checked_pairs(DictToy(), "train", None))


def test_mistakes_are_found_before_anything_is_written(tmp_path):
    train = (*TinyTask().train, {"inputs": "a", "targets": "b"})
    with pytest.raises(ValueError, match=r"tiny_task, train pair 231: a pair \(source"):
        generate(TinyTask(train=train), tmp_path, num_processes=1)
    assert not list(tmp_path.iterdir())
