"""Cross-attention between words, with expected weights from the definition by hand."""

from __future__ import annotations

import numpy as np
import pytest

from t2tlite.programs.serving.word_attention import word_attention, words_of
from t2tlite.programs.visualise.attention import Attention


def spans(text, pieces):
    return [(text[word.start : word.end], word.pieces) for word in words_of(text, pieces)]


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("walking cat.", ["▁walk", "ing", "▁cat", ".", "</s>"], [("walking", [0, 1]), ("cat", [2]), (".", [3])]),
        ("a  b", ["▁a", "▁", "▁b", "</s>"], [("a", [0]), ("b", [2])]),
        ("é!", ["▁", "<0xC3>", "<0xA9>", "!", "</s>"], [("é", [1, 2]), ("!", [3])]),
        ("so...", ["▁so", "...", "</s>"], [("so", [0]), ("...", [1])]),
        ("d'un", ["▁d'un", "</s>"], [("d'un", [0])]),
        ("(a)", ["▁(a", ")", "</s>"], [("(a", [0]), (")", [1])]),
    ],
)  # fmt: skip
def test_pieces_belong_to_words(text, pieces, expected):
    assert spans(text, pieces) == expected


def test_weights_are_summed_over_source_pieces_averaged_over_target_pieces_and_scaled():
    source, target = ["▁a", "b", "▁c", "</s>"], ["▁x", "y", "</s>"]
    heads = np.array(
        [
            [[0.1, 0.2, 0.3, 0.4], [0.4, 0.1, 0.1, 0.4], [0.25] * 4],
            [[0.3, 0.2, 0.1, 0.4], [0.0, 0.5, 0.3, 0.2], [0.25] * 4],
        ],
        np.float32,
    )  # [H, T, S]
    nothing = [np.zeros((2, 4, 4), np.float32)], [np.zeros((2, 3, 3), np.float32)]
    attention = Attention(source, target, *nothing, [heads, heads])
    found = word_attention(attention, "ab c", "xy")
    assert found["source_words"] == [{"text": "ab", "start": 0, "end": 2}, {"text": "c", "start": 3, "end": 4}]
    assert found["target_words"] == [{"text": "xy", "start": 0, "end": 2}]
    # means over heads: rows .2 .2 .2 .4 and .2 .3 .2 .3; ab: .4 and .5, mean .45; c: .2
    np.testing.assert_allclose(found["weights"], [[0.45 / 0.65, 0.2 / 0.65]], rtol=1e-6)


def test_a_real_model_has_a_row_for_each_word(translator):
    text = "red cat sees dog"
    attention = translator.attention(text)
    found = word_attention(attention, text, attention.target)
    assert [word["text"] for word in found["source_words"]] == text.split()
    assert [word["text"] for word in found["target_words"]] == attention.target.split()
    np.testing.assert_allclose(np.sum(found["weights"], axis=1), 1, rtol=1e-5)
