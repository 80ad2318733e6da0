"""Attention of a sentence pair: its pieces and weights, its name, and its file."""

import dataclasses

import pytest

from t2tlite.programs.visualise import Attention, page


def test_a_file_name_for_each_sentence_pair(attention):
    assert attention.file_name().startswith("the-cat-making-it-")
    other = Attention([], [], [], [], [], attention.source, "another translation")
    assert other.file_name() != attention.file_name()
    assert Attention([], [], [], [], [], "?!", "").file_name().startswith("sentence-")


def test_in_short(attention):
    assert repr(attention) == "<Attention: 'The cat making it' to 'Die Katze macht'>"
    assert len(repr(dataclasses.replace(attention, source="word " * 1000))) < 200


def test_saved_as_a_page(attention, tmp_path):
    path = tmp_path / "new" / "all.HTML"
    attention.save(path)
    assert path.read_text(encoding="utf-8") == page(attention)
    with pytest.raises(ValueError, match=r"must end in \.html\. Received: it\.png\."):
        attention.save("it.png")
