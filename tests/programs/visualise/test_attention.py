"""Attention of a sentence pair: finding words, and checking pieces against weights."""

from __future__ import annotations

import dataclasses

import pytest

from t2tlite.programs.visualise import Attention, page
from t2tlite.programs.visualise.attention_weights import kinds_with, select


@pytest.mark.parametrize(
    ("pieces", "word", "positions"),
    [
        ("▁con cat ▁cat", "cat", [2]),  # the word, not the part of another
        ("▁con cat ▁dog", "cat", [1]),
        ("<0xE7> <0x8C> <0xAB> が </s>", "猫", [0, 1, 2]),  # spelt in bytes
        ("<0x8C> ▁it's , ▁it", "it's", [1]),  # a byte that is not text
    ],
)
def test_a_word_is_found_in_pieces_without_text(pieces, word, positions):
    assert (
        Attention(pieces.split(), [], [], [], []).word_positions("encoder", word)
        == positions
    )


def test_a_word_is_found_as_its_pieces(attention):
    assert attention.word_positions("encoder", "making") == [2, 3]
    assert attention.word_positions("encoder", "cat making") == [1, 2, 3]
    assert attention.word_positions("encoder", "</s>") == [5]
    assert kinds_with(attention, "making") == ["encoder"]
    assert kinds_with(attention, "Katze") == ["decoder", "cross"]


def test_a_word_that_is_not_there(attention):
    with pytest.raises(
        ValueError,
        match=(
            r"in the sentence\. Received: 'dog', and the sentence 'The cat making it'"
        ),
    ):
        attention.word_positions("encoder", "dog")
    with pytest.raises(ValueError, match=r"Received: ' '"):
        attention.word_positions("encoder", " ")


def test_pieces_must_fit_the_weights(attention):
    with pytest.raises(
        ValueError,
        match=r"\[heads, 5, 5\]\. Received: \[4, 6, 6\] for encoder, layer 1",
    ):
        Attention(
            attention.source_pieces[:-1],
            attention.target_pieces,
            attention.encoder,
            [],
            [],
        )


def test_the_last_layer_but_one_and_all_heads_are_selected(attention):
    layers, heads = select(attention, ["encoder", "cross"])
    assert [layer.title for layer in layers] == [
        "Encoder self-attention, layer 2 of 3",
        "Cross-attention, layer 1 of 2",
    ]
    assert [layer.weights for layer in layers] == [
        attention.encoder[1],
        attention.cross[0],
    ]
    assert heads == [1, 2, 3, 4]
    with pytest.raises(
        ValueError, match=r"one of encoder, decoder, cross\. Received: none\."
    ):
        select(attention, [])
    with pytest.raises(
        ValueError,
        match=(
            r"layer of the decoder must be from 1 to 2\. Received: 3, for the kind"
            r" cross\."
        ),
    ):
        select(attention, ["encoder", "cross"], [3])
    with pytest.raises(ValueError, match=r"head must be from 1 to 4\. Received: 0\."):
        select(attention, ["encoder"], heads=[0])


def test_a_file_name_for_each_sentence_pair_and_word(attention):
    assert attention.file_name().startswith("the-cat-making-it-")
    names = {
        attention.file_name(),
        attention.file_name("cat"),
        attention.file_name("it"),
    }
    other = Attention([], [], [], [], [], attention.source, "another translation")
    assert len(names | {other.file_name()}) == 4
    assert Attention([], [], [], [], [], "?!", "").file_name().startswith("sentence-")


def test_in_short(attention):
    shown = (
        "'The cat making it' (6 tokens) to 'Die Katze macht' (5 tokens), 3 encoder and"
        " 2 decoder layers, 4 heads"
    )
    assert repr(attention) == f"<Attention: {shown}>"
    assert len(repr(dataclasses.replace(attention, source="word " * 1000))) < 200


def test_saved_by_the_ending_of_the_path(attention, tmp_path):
    attention.save(tmp_path / "new" / "all.html")
    attention.save(str(tmp_path / "cross.HTML"), kinds=["cross"], heads=[2])
    attention.save(tmp_path / "all.svg", kinds=["encoder"], layers=[1])
    attention.save(tmp_path / "all.png", kinds=["encoder"])
    assert (tmp_path / "new" / "all.html").read_text(encoding="utf-8") == page(
        attention
    )
    assert (tmp_path / "cross.HTML").read_text(encoding="utf-8") == page(
        attention, ["cross"], heads=[2]
    )
    assert "Encoder self-attention, layer 1 of 3" in (tmp_path / "all.svg").read_text(
        encoding="utf-8"
    )
    assert (tmp_path / "all.png").read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(
        ValueError,
        match=(
            r"must end in \.png or \.svg \(a page's in \.html\)\. Received: it\.pdf\."
        ),
    ):
        attention.save("it.pdf")
    with pytest.raises(ValueError, match=r"A head must be from 1 to 4\. Received: 5\."):
        attention.save(tmp_path / "no.html", heads=[5])
    with pytest.warns(
        UserWarning, match=r"No font here has \U000F0000\. An \.svg or \.html can show"
    ):
        dataclasses.replace(attention, source="\U000f0000").save(
            tmp_path / "odd.png", kinds=["cross"]
        )
