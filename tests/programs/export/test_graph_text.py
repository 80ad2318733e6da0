"""Text in TensorFlow graphs is read and written as Python's."""

import pytest
import tensorflow as tf

from t2tlite.programs.export.graph import BLANKS, ENDS, SentencePieceText
from t2tlite.types import EOS

pytestmark = pytest.mark.usefixtures("loaded_once")


def without(pattern, texts):
    texts = tf.strings.regex_replace(tf.constant(texts), pattern, "")
    return [text.decode() for text in texts.numpy()]


def test_white_space_is_pythons():
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    expected = ["" if c.isspace() else c for c in characters]
    assert without(f"^{BLANKS}$", characters) == expected
    texts = ["\u2003 a b\x1f ", "", "  ", "a", "\na\r\u3000"]
    assert without(ENDS, texts) == [text.strip() for text in texts]


def test_text_in_a_graph_is_the_encoders(model):
    """White space at either end, doubled spaces and line feeds, which a model may
    emit.
    """
    encoder = model.target_encoder
    pieces = encoder.pieces(range(encoder.vocab_size))
    space, word = pieces.index("▁"), encoder.encode("red")[0]
    rows = [
        [word, space, EOS, 0, 0],
        [word, space, word, space, EOS],
        [3 + 10, word, 3 + 10, word, 3 + 9],
    ]
    texts = SentencePieceText(encoder).decode(tf.constant([rows])).numpy()[0]
    assert [text.decode() for text in texts] == [encoder.text(row) for row in rows]
    assert texts[0] == texts[0].strip() != encoder.decode(rows[0]).encode()
