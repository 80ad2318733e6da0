"""The inputs and outputs of a SavedModel: text, or token ids.

tensorflow_text has ops for SentencePiece, but none for tensor2tensor's subwords.
"""

# B batch, S source length, M hypotheses, L maximum length

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import tensorflow as tf

from t2tlite.types import EOS, PAD, Tensor
from t2tlite.vocabularies.normalisation import (
    JOINER,
    NON_JOINER,
    NONE,
    REMOVED,
    SPACE_MARK,
)
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder
from t2tlite.vocabularies.text_encoder import LINE_SPACES, TextEncoder

# regular expressions and what they are replaced with, one after the other
Replacements = tuple[tuple[str, str], ...]

# The characters that Python's str.isspace accepts and str.strip removes.
WHITE_SPACE = (
    r"[\t-\r\x{1c}-\x{20}\x{85}\x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}"
    r"\x{202f}\x{205f}\x{3000}]"
)
INVISIBLE = f"[{REMOVED}{NON_JOINER}{JOINER}]+"
BLANK_AS_EMPTY: Replacements = ((f"^{WHITE_SPACE}+$", ""),)
STRIP: Replacements = ((f"^{WHITE_SPACE}+|{WHITE_SPACE}+$", ""),)  # str.strip
# ParsingTask.source: words between single spaces, brackets as -LRB- and -RRB-
TREE_WORDS: Replacements = (
    (f"{WHITE_SPACE}+", " "),
    (f"(^| ){INVISIBLE}( {INVISIBLE})*( |$)", " "),  # are not words
    ("^ | $", ""),
    (r"\(", "-LRB-"),
    (r"\)", "-RRB-"),
    (r"\x00", "\ufffd"),
)


def replaced(texts: Tensor, replacements: Replacements) -> Tensor:
    """Strings after these replacements."""
    for pattern, text in replacements:
        texts = tf.strings.regex_replace(texts, pattern, text)
    return texts


class SentencePieceText:
    """Text; its SentencePiece vocabulary is part of the graph."""

    noun = "texts"  # the name of an output
    spec = tf.TensorSpec((None,), tf.string)  # of a batch

    def __init__(self, encoder: SentencePieceEncoder) -> None:
        import tensorflow_text  # Windows and Python 3.14 have none

        self._normalize = tensorflow_text.normalize_utf8
        self.tokenizer = encoder.tf_tokenizer()  # to be saved with the graph
        self._normalization = encoder.normalization

    def batch(self, texts: Sequence[str]) -> Tensor:
        """Texts as the graph takes them."""
        return tf.constant(texts)

    def text(self, output: bytes) -> str:
        """The text of an output of the graph."""
        return output.decode("utf-8")

    def encode(self, batch: Tensor, prepare: Replacements = ()) -> tf.RaggedTensor:
        """Token ids of a batch, int32 [B, (S)], each row with its EOS; `prepare` is
        applied to text before.
        """
        batch = replaced(batch, prepare)
        if self._normalization != NONE:  # the rest of the rule is in the tokenizer
            form = self._normalization.upper()
            batch = tf.strings.regex_replace(batch, SPACE_MARK, " ")
            batch = self._normalize(batch, form)
        return self.tokenizer.tokenize(batch)

    def decode(self, ids: Tensor) -> Tensor:
        """What the graph returns for token ids int32 [B, M, L] that end with an EOS:
        texts [B, M].
        """
        shape = tf.shape(ids)
        rows = tf.reshape(ids, (shape[0] * shape[1], shape[2]))
        tokens = tf.ragged.boolean_mask(rows, before_end(rows))
        texts = self.tokenizer.detokenize(tokens)
        lines = replaced(texts, ((LINE_SPACES.pattern, " "), *STRIP))
        return tf.reshape(lines, shape[:2])


class TokenIds:
    """Token ids, padded with PAD; the EOS is optional. Has the methods of
    `SentencePieceText`.
    """

    noun = "ids"
    spec = tf.TensorSpec((None, None), tf.int32)
    tokenizer = None

    def __init__(self, encoder: TextEncoder) -> None:
        self._encoder = encoder
        self._vocab_size = encoder.vocab_size

    def batch(self, texts: Sequence[str]) -> Tensor:
        rows = []
        for text in texts:
            blank = self._encoder.is_blank(text)
            rows.append([] if blank else self._encoder.encode(text))
        return tf.ragged.constant(rows, tf.int32, ragged_rank=1).to_tensor(PAD)

    def text(self, output: np.ndarray) -> str:
        return self._encoder.text(output)

    def encode(self, batch: Tensor, prepare: Replacements = ()) -> tf.RaggedTensor:
        message = f"Token ids must be at least 0 and less than {self._vocab_size}."
        valid = (batch >= 0) & (batch < self._vocab_size)
        check = tf.debugging.Assert(tf.reduce_all(valid), [message, "Received:", batch])
        with tf.control_dependencies([check]):
            rows = tf.ragged.boolean_mask(batch, before_end(batch))
        ends = tf.fill((tf.shape(batch)[0], 1), EOS)
        return tf.concat([rows, ends], axis=1)

    def decode(self, ids: Tensor) -> Tensor:
        return tf.where(before_end(ids), ids, PAD)


# the text of one side of a model, source or target, in a graph
GraphText = SentencePieceText | TokenIds


def before_end(ids: Tensor) -> Tensor:
    """Mask of the ids [..., L] before the first EOS that are not padding: bool
    [..., L].
    """
    ends = tf.cumsum(tf.cast(ids == EOS, tf.int32), axis=-1)
    return (ends == 0) & (ids != PAD)


def graph_text(encoder: TextEncoder) -> GraphText:
    """Text if the vocabulary can be part of a graph, otherwise token ids."""
    if isinstance(encoder, SentencePieceEncoder):
        return SentencePieceText(encoder)
    return TokenIds(encoder)
