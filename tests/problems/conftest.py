"""The embedded grammar, whose sentences take long to draw."""

import functools

import pytest

from t2tlite.problems import grammar
from t2tlite.problems.grammar import sentences

drawn = functools.cache(lambda split, size: list(sentences(split, size)))


@pytest.fixture
def drawn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets all problems of the grammar have the same sentences, drawn once for each
    split and size.
    """
    monkeypatch.setattr(grammar, "sentences", drawn)
