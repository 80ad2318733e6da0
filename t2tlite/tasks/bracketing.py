"""The sequences that `tree_constraint` allows for a sentence: its words in their order,
with balanced brackets around them. `decoding/constraints.py` enforces it.
"""

# V vocabulary, W tokens of a sentence's words and its EOS

import functools
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from t2tlite.trees.linearise import Leaf
from t2tlite.trees.restore import PUNCTUATION_TAGS
from t2tlite.types import EOS
from t2tlite.vocabularies.text_encoder import TextEncoder

# Classes of tokens; NONE is that of PAD and EOS.
CLASSES = NONE, WORD, PUNCTUATION, TAG, OPENING, CLOSING = range(6)

# Flags: what may be chosen in place of the next token of the words.
BRACKETS_MAY_FOLLOW = 1
PUNCTUATION_TAG = 2
ANY_TAG = 4
ABSENT = -1  # the choices beyond the EOS of a sentence


class Bracketing(NamedTuple):
    """The sequences that are allowed for a sentence."""

    # of the vocabulary, int32 [2, V]: each token's class, and the closing bracket of
    # each opening one
    classes: np.ndarray
    tokens: list[int]  # [W]: those of the words, and EOS
    choices: list[int]  # [W]: flags, 0 inside a word


@functools.lru_cache(maxsize=8)
def token_classes(vocabulary: TextEncoder) -> np.ndarray:
    """`Bracketing.classes` of a vocabulary. A bracket is a single token with its label:
    `(NP`, `)NP`.

    Raises ValueError if there are no such tokens, as in tensor2tensor's vocabularies.
    """
    pieces = vocabulary.pieces(range(vocabulary.vocab_size))
    texts = [piece.removeprefix("\u2581") for piece in pieces]
    ids = {}  # of tokens that begin a word
    for i, encoded in enumerate(vocabulary.encode_batch(texts)):
        if encoded == [i] and i > EOS:
            ids[texts[i]] = i
    classes: np.ndarray = np.zeros((2, vocabulary.vocab_size), np.int32)
    classes[0, EOS + 1 :] = WORD
    for text, i in ids.items():
        closing = ids.get(f"){text[1:]}")
        if text.startswith("(") and closing is not None:
            classes[:, i] = OPENING, closing
            classes[0, closing] = CLOSING
        elif text in PUNCTUATION_TAGS:
            classes[0, i] = PUNCTUATION
        elif re.fullmatch("[A-Z$-]+", text):
            classes[0, i] = TAG
    if OPENING not in classes[0]:
        raise ValueError(
            "tree_constraint requires brackets with labels as tokens. Received:"
            f" {vocabulary.path}."
        )
    return classes


def bracketing(leaves: Sequence[Leaf], vocabulary: TextEncoder) -> Bracketing:
    """The sequences allowed for a sentence, from the leaf expected for each word."""
    tokens = []
    choices = []
    encoded = vocabulary.encode_batch([leaf.token for leaf in leaves])
    for leaf, ids in zip(leaves, encoded, strict=True):
        flags = BRACKETS_MAY_FOLLOW
        if not ids:
            flags += ANY_TAG
        # a tag is one token: it can only replace a word of one token, or of none
        if leaf.may_be_punctuation and len(ids) < 2:
            flags += PUNCTUATION_TAG
        tokens += ids or [EOS]
        choices += [flags] + [0] * (len(ids) - 1)
    classes = token_classes(vocabulary)  # type: ignore[arg-type]  # it is hashable
    return Bracketing(classes, [*tokens, EOS], [*choices, BRACKETS_MAY_FOLLOW])
