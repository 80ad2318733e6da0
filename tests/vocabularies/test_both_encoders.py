"""What holds for SentencePiece and for tensor2tensor's subwords: exact round trips,
padding and EOS, clear errors.
"""

import pickle

import numpy as np
import pytest
from sample_texts import NASTY, SENTENCES, random_texts

from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import normalise
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece

LETTERS = "\\_u;0123456789<pad>EOScatmthe."
SUBTOKENS = dict.fromkeys(["<pad>_", "<EOS>_", "cat", "mat_", "._", "the_", *LETTERS])


KINDS = ["nfc/vocab.model", "none/vocab.model", "subwords/vocab.subwords"]


@pytest.fixture(scope="module", params=KINDS)
def encoder(request, tmp_path_factory):
    """One that knows few words, so that most text is spelt: in bytes, or in the numbers
    of characters.
    """
    kind, name = request.param.split("/")
    path = tmp_path_factory.mktemp("vocabulary") / name
    if path.suffix == ".model":
        text = [*SENTENCES, "<pad> </s> <unk> <0x41>"]
        train_sentencepiece(text, 340, path, normalization=kind)
    else:
        path.write_text(
            "".join(f"'{subtoken}'\n" for subtoken in SUBTOKENS), encoding="utf-8"
        )
    return open_encoder(path)


def expected_text(encoder, text):
    """The text that a round trip gives; test_normalisation.py has the rule nfc."""
    if encoder.path.suffix == ".subwords":
        return text.strip()
    return normalise(text, encoder.normalization)


def test_text_survives(encoder):
    # 3, with <unk>, or 2
    special = sum(piece.startswith("<") for piece in encoder.pieces([0, 1, 2]))
    for text in [*NASTY, *random_texts()]:
        ids = encoder.encode(text)
        assert encoder.decode(ids) == expected_text(encoder, text)
        assert encoder.normalise(text) == expected_text(encoder, text)
        assert encoder.is_blank(text) == (not expected_text(encoder, text).strip())
        assert all(special <= i < encoder.vocab_size for i in ids)


def test_decode_stops_at_eos_and_skips_padding(encoder):
    cat, mat = encoder.encode("cat"), encoder.encode("mat")
    assert encoder.decode([0, *cat, 0, *mat, 1, *cat, 0, 0]) == "cat mat"
    assert encoder.decode(np.array([*cat, 1, 0], np.int32)) == "cat"
    assert encoder.decode([]) == encoder.decode([1]) == encoder.decode([0, 0]) == ""


def test_ids_out_of_range(encoder):
    for bad in (-1, encoder.vocab_size):
        message = rf"from 0 to {encoder.vocab_size - 1}\. Received: {bad}\."
        with pytest.raises(ValueError, match=message):
            encoder.decode([5, bad])
        with pytest.raises(ValueError, match=rf"Received: {bad}\."):
            encoder.pieces([bad])


def test_lone_surrogate(encoder):
    message = r"lone surrogates, .* Received: '\\udc80' at character 4 of 'abc\\udc80'"
    with pytest.raises(ValueError, match=message):
        encoder.encode("abc\udc80")


def test_pickled(encoder):
    copy = pickle.loads(pickle.dumps(encoder))
    assert copy.path == encoder.path
    assert copy.encode("the cat") == encoder.encode("the cat")


@pytest.mark.parametrize(
    ("sentences", "size", "message"),
    [
        ([], 300, r"needs text to learn from\. Received: none\."),
        (["", ""], 300, r"needs text to learn from\. Received: none\."),
        (["fine", "not \ud800"], 300, "lone surrogates"),
        (SENTENCES, 10, "at least"),
    ],
)
def test_failed_learning_keeps_an_earlier_file(tmp_path, sentences, size, message):
    (tmp_path / "vocabulary").write_bytes(b"earlier")
    with pytest.raises(ValueError, match=message):
        train_sentencepiece(sentences, size, tmp_path / "vocabulary")
    assert (tmp_path / "vocabulary").read_bytes() == b"earlier"
