"""What tree_constraint needs to know of a vocabulary, and of each sentence."""

# V vocabulary, W tokens of a sentence's words and its EOS

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.tasks.parsing import PUNCTUATION_TAGS
from t2tlite.tasks.task import Leaf
from t2tlite.tokens import EOS
from t2tlite.vocabularies.text_encoder import TextEncoder

# Classes of tokens; NONE is that of PAD and EOS.
CLASSES = NONE, WORD, PUNCTUATION, TAG, OPENING, CLOSING = range(6)

# What may be chosen in place of the next token of the words: flags.
BRACKETS, PUNCTUATION_TAG, ANY_TAG = 1, 2, 4
ABSENT = -1  # the choices beyond the EOS of a sentence


class Guide(NamedTuple):
    """What the tokens of a sentence's tree may be."""

    # int32 [2, V]: each token's class, and the closing bracket of each opening one
    classes: np.ndarray
    tokens: list[int]  # [W]: those of the words, and EOS
    choices: list[int]  # [W]: what may be chosen instead, 0 inside a word


def token_classes(encoder: TextEncoder) -> np.ndarray:
    """`Guide.classes` of a vocabulary. A bracket is a single token with its label:
    `(NP`, `)NP`.

    Raises ValueError if there are no such tokens, as in tensor2tensor's vocabularies.
    """
    texts = [
        piece.removeprefix("\u2581")
        for piece in encoder.pieces(range(encoder.vocab_size))
    ]
    encoded = encoder.encode_batch(texts)
    # tokens that begin a word
    ids = {text: i for i, text in enumerate(texts) if encoded[i] == [i]}
    labels = [text[1:] for text in ids if text[0] == "(" and f"){text[1:]}" in ids]
    if not labels:
        raise ValueError(
            "tree_constraint requires brackets with labels as tokens of the"
            f" vocabulary. Received: {encoder.path}, which has none. Decode with"
            " tree_constraint=false."
        )
    classes: np.ndarray = np.zeros((2, encoder.vocab_size), np.int32)
    classes[0, EOS + 1 :] = WORD
    for text, i in ids.items():
        is_tag = all(character.isupper() or character in "$-" for character in text)
        if i > EOS and (is_tag or text in PUNCTUATION_TAGS):
            classes[0, i] = PUNCTUATION if text in PUNCTUATION_TAGS else TAG
    for label in labels:
        opening, closing = ids[f"({label}"], ids[f"){label}"]
        classes[:, opening] = OPENING, closing
        classes[0, closing] = CLOSING
    return classes


def make_guide(
    leaves: Sequence[Leaf], classes: np.ndarray, encoder: TextEncoder
) -> Guide:
    """The guide of a sentence from what each of its words may be."""
    tokens, choices = [], []
    for leaf, ids in zip(
        leaves, encoder.encode_batch([leaf.token for leaf in leaves]), strict=True
    ):
        # a tag is one token: it can stand for a word of one token, or of none, where
        # any tag is allowed
        flags = (
            BRACKETS
            + ANY_TAG * (not ids)
            + PUNCTUATION_TAG * (leaf.may_be_punctuation and len(ids) < 2)
        )
        tokens += ids or [EOS]
        choices += [flags] + [0] * (len(ids) - 1)
    return Guide(classes, [*tokens, EOS], [*choices, BRACKETS])
