"""Vocabularies of characters and of words."""

import pytest

from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)

TEXT = ["K AE T", "D AO G D", "<2de> K"]


def learn(tmp_path, vocab_type, vocab_size=0, symbols=()):
    path = tmp_path / "vocab.model"
    train_sentencepiece(TEXT, vocab_size, path, symbols, vocab_type=vocab_type)
    return SentencePieceEncoder(path)


@pytest.mark.parametrize(("vocab_type", "size"), [("words", 7), ("characters", 13)])
def test_all_of_the_text(tmp_path, vocab_type, size):
    """Special tokens, then those of the text, without bytes; the rest is unknown."""
    encoder = learn(tmp_path, vocab_type)
    assert encoder.vocab_size == 3 + size
    for text in TEXT:
        assert encoder.decode(encoder.encode(text)) == text
        assert encoder.unknown not in encoder.encode(text)
    assert encoder.encode("K Q").count(encoder.unknown) == 1
    if vocab_type == "words":
        assert encoder.pieces(encoder.encode("D AO G")) == ["▁D", "▁AO", "▁G"]


def test_the_most_frequent(tmp_path):
    """K and D occur twice."""
    encoder = learn(tmp_path, "words", vocab_size=5)
    assert set(encoder.pieces(range(3, encoder.vocab_size))) == {"▁K", "▁D"}
    for size in (4, -1):
        with pytest.raises(ValueError, match="vocab_size must be 0, or at least 5: "):
            learn(tmp_path, "words", size, ["<2de>"])


def test_symbols(tmp_path):
    encoder = learn(tmp_path, "characters", symbols=["<2de>"])
    assert encoder.pieces(encoder.encode("<2de> K"))[0] == "▁<2de>"


def test_long_lines_do_not_split_words(tmp_path):
    """SentencePiece takes lines of up to 4,192 bytes: longer ones are cut elsewhere."""
    path = tmp_path / "vocab.model"
    words = [f"word{number:05d}" for number in range(2000)]
    train_sentencepiece([" ".join(words)], 0, path, vocab_type="words")
    assert SentencePieceEncoder(path).vocab_size == 3 + 2000
