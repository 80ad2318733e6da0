"""The SentencePiece vocabulary: exact round trips, fixed ids, equal ids in a TensorFlow
graph, clear errors.
"""

import pytest
import sentencepiece
from sample_texts import NASTY, SENTENCES

from t2tlite.types import EOS, PAD
from t2tlite.vocabularies.sentencepiece_encoder import (
    FEW_TEXTS,
    SentencePieceEncoder,
    train_sentencepiece,
)


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    train_sentencepiece([*SENTENCES, "<pad> </s> <unk> <0x41>"], 340, path)
    return SentencePieceEncoder(path)


def test_decoded_text_is_one_line_without_surplus_spaces(encoder):
    """Of a model's ids: those of `▁`, `▁cat`, line feeds and other white space."""
    pieces = encoder.pieces(range(encoder.vocab_size))
    space, cat = [pieces.index("▁")], [pieces.index("▁cat")]
    assert encoder.decode([*space, *cat, *space, *cat, *space]) == "cat  cat "
    assert encoder.text([*space, *cat, *space, *cat, *space, EOS, *cat]) == "cat cat"
    ids = [3 + 9, *cat, 3 + 10, 3 + 10, *cat, 3 + 9, *cat, *space]
    assert encoder.text(ids) == "cat cat\t cat"
    assert encoder.text(space * 3) == encoder.text([]) == ""


def test_few_texts_and_many_are_encoded_alike(encoder):
    texts = [*NASTY, *SENTENCES] * FEW_TEXTS
    assert encoder.encode_batch(texts) == list(map(encoder.encode, texts))


def test_marks_and_size(encoder):
    assert (PAD, EOS) == (0, 1)
    assert encoder.vocab_size == 340
    special = ["<pad>", "</s>", "<unk>", "<0x00>", "<0xFF>"]
    assert encoder.pieces([0, 1, 2, 3, 258]) == special
    assert encoder.pieces(encoder.encode("the cat\x07")) == ["▁the", "▁cat", "<0x07>"]


def test_long_sentences_are_learned_from(tmp_path):
    train_sentencepiece(["anon " * 5000], 268, tmp_path / "v.model")
    assert "▁anon" in SentencePieceEncoder(tmp_path / "v.model").pieces(range(268))


def test_symbols_are_pieces_where_a_word_begins(tmp_path):
    symbols = ["(NP", "(N", ")NP", "(A,B", '("Q']  # the longest that fits counts
    train_sentencepiece(SENTENCES, 300, tmp_path / "v.model", symbols)
    encoder = SentencePieceEncoder(tmp_path / "v.model")
    text = '(NP (NPX (N )NP a(NP (A,B ("Q'
    pieces = encoder.pieces(encoder.encode(text))
    marked = [f"▁{symbol}" for symbol in symbols]
    in_text = [piece for piece in pieces if piece in marked]
    assert in_text == ["▁(NP", *marked]
    assert encoder.decode(encoder.encode(text)) == text
    assert set(encoder.pieces(range(encoder.vocab_size))) >= set(marked)


@pytest.mark.parametrize(
    ("size", "bound"), [(0, "least"), (-(2**40), "least"), (2**31 - 1, "most")]
)
def test_impossible_sizes(tmp_path, size, bound):
    message = rf"vocab_size={size}, which must be at {bound} \d+ for this text"
    with pytest.raises(ValueError, match=message):
        train_sentencepiece(SENTENCES, size, tmp_path / "vocab.model")


@pytest.mark.parametrize("content", [b"", b"no model at all\n"])
def test_not_a_model(tmp_path, content):
    (tmp_path / "v.model").write_bytes(content)
    message = r"must be a SentencePiece model\. Received: .*v\.model"
    with pytest.raises(ValueError, match=message):
        SentencePieceEncoder(tmp_path / "v.model")


def test_a_piece_that_is_not_utf8(encoder, tmp_path):
    content = encoder.path.read_bytes()
    piece = encoder.pieces([encoder.vocab_size - 1])[0].encode()
    damaged = content.replace(piece, b"\xff" * len(piece))
    (tmp_path / "damaged.model").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"SentencePiece model\. .*damaged\.model"):
        SentencePieceEncoder(tmp_path / "damaged.model")


def test_model_with_other_marks(tmp_path):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_prefix=str(tmp_path / "v"),
        vocab_size=33,
        minloglevel=2,
    )
    message = r"padding id 0 and the EOS id 1\. Received: -1 and 2"
    with pytest.raises(ValueError, match=message):
        SentencePieceEncoder(tmp_path / "v.model")
