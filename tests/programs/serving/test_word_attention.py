"""Cross-attention between words, with expected weights from the definition by hand."""

from __future__ import annotations

import numpy as np

from t2tlite.programs.serving.word_attention import word_attention
from t2tlite.programs.visualise.attention import Attention


def test_weights_are_of_words_and_scaled():
    """Summed over source pieces, averaged over target pieces, heads and layers; then
    rows sum to 1.
    """
    source, target = ["▁a", "b", "▁c", "</s>"], ["▁x", "y", "</s>"]
    heads = np.array(
        [
            [[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.4], [0.25] * 4],
            [[0.3, 0.2, 0.1, 0.4], [0.0, 0.5, 0.3, 0.2], [0.25] * 4],
        ],
        np.float32,
    )  # [H, T, S]
    nothing = [np.zeros((2, 4, 4), np.float32)], [np.zeros((2, 3, 3), np.float32)]
    attention = Attention(
        source,
        target,
        *nothing,
        [heads, heads],
        source_words=[0, 0, 1],
        target_words=[0, 0],
    )
    response = word_attention(attention, " ab  c", "xy")
    words = [(word.text, word.start, word.end) for word in response.source_words]
    assert words == [("ab", 1, 3), ("c", 5, 6)]
    assert [(word.text, word.start, word.end) for word in response.target_words] == [
        ("xy", 0, 2)
    ]
    # means over heads: rows .2 .2 .2 .4 and .2 .3 .2 .3; ab: .4 and .5, mean .45; c: .2
    np.testing.assert_allclose(response.weights, [[0.45 / 0.65, 0.2 / 0.65]], rtol=1e-6)


def test_real_model_has_a_row_for_each_word(translator):
    text = "red cat sees dog"
    attention = translator.attention(text)
    response = word_attention(attention, text, attention.target)
    assert [word.text for word in response.source_words] == text.split()
    assert [word.text for word in response.target_words] == attention.target.split()
    np.testing.assert_allclose(np.sum(response.weights, axis=1), 1, rtol=1e-5)


def test_empty_translation_has_one_position_without_a_warning(translator):
    attention = translator.attention("red cat", "")
    assert [layer.shape[1:] for layer in attention.decoder] == [(1, 1)] * len(
        attention.decoder
    )
    assert word_attention(attention, "red cat", "").target_words == []


def test_words_of_subwords_are_found():
    """Pieces of tensor2tensor's vocabulary have no spaces between words, but marks at
    the ends of words.
    """
    heads = np.full((1, 4, 4), 0.25, np.float32)
    pieces = ["walk", "ed_", "home_", "<EOS>"]
    text = "walked home"
    attention = Attention(
        pieces,
        pieces,
        [heads],
        [heads],
        [heads],
        text,
        text,
        "",
        1,
        [0, 0, 1],
        [0, 0, 1],
    )
    assert attention.word_positions("encoder", "walked home") == [0, 1, 2]
    assert attention.word_positions("cross", "home") == [2]
    response = word_attention(attention, "walked home", "walked home")
    assert [word.text for word in response.source_words] == ["walked", "home"]


def test_words_of_a_parsers_output_are_those_of_alignments(parsing_translator):
    """With a vocabulary of tensor2tensor, and words that are brackets of the tree."""
    attention = parsing_translator.attention("A president saw .")
    response = word_attention(attention, attention.source, attention.target)
    assert [word.text for word in response.source_words] == [
        "A",
        "president",
        "saw",
        ".",
    ]
    words = attention.target.split()
    shown = [word.text for word in response.target_words]
    assert shown == [
        word for number, word in enumerate(words) if number in attention.target_words
    ]
    assert len(shown) >= len(words) - 1  # a piece of `. /S` belongs to one of them
