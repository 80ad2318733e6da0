"""Attention of a sentence pair: its pieces and weights, its name, and its file."""

from __future__ import annotations

import dataclasses

import pytest

from t2tlite.programs.visualise import Attention, page


@pytest.mark.parametrize(
    ("kinds", "chosen", "message"),
    [
        ([], {}, r"one of encoder, decoder, cross\. Received: none\."),
        (["encodr"], {}, r"one of encoder, decoder, cross\. Received: 'encodr'\."),
        (["encoder", "cross"], {"layers": [3]}, "layers of cross must .* from 1 to 2"),
        *[
            (["encoder"], {name: numbers}, rf"{name}.* must be a list of numbers from")
            for name in ("layers", "heads")
            for numbers in ([0], [5], 1, ["1"], "1", None)
        ],
    ],
)
def test_what_the_model_does_not_have(attention, tmp_path, kinds, chosen, message):
    with pytest.raises(ValueError, match=message):
        page(attention, kinds, **chosen)
    with pytest.raises(ValueError, match=message):
        attention.save(tmp_path / "no.html", kinds, **chosen)
    assert list(tmp_path.iterdir()) == []


def test_a_file_name_for_each_sentence_pair(attention):
    assert attention.file_name().startswith("the-cat-making-it-")
    other = Attention([], [], [], [], [], attention.source, "another translation")
    assert other.file_name() != attention.file_name()
    assert Attention([], [], [], [], [], "?!", "").file_name().startswith("sentence-")


def test_in_short(attention):
    shown = (
        "'The cat making it' (6 tokens) to 'Die Katze macht' (5 tokens), 3 encoder and"
        " 2 decoder layers, 4 heads"
    )
    assert repr(attention) == f"<Attention: {shown}>"
    assert len(repr(dataclasses.replace(attention, source="word " * 1000))) < 200


def test_saved_as_a_page(attention, tmp_path):
    attention.save(tmp_path / "new" / "all.html")
    attention.save(str(tmp_path / "cross.HTML"), kinds=["cross"], heads=[2])
    for name, content in (
        ("new/all.html", page(attention)),
        ("cross.HTML", page(attention, ["cross"], heads=[2])),
    ):
        assert (tmp_path / name).read_text(encoding="utf-8") == content
    with pytest.raises(
        ValueError, match=r"must end in \.html\. Received: it\.png\. The page saves"
    ):
        attention.save("it.png")
