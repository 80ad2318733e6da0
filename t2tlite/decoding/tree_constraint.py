"""The constraint that a decoded sequence is a tree over exactly the words of its sentence, as in a transition parser.

At each position only tokens are allowed after which such a sequence can be completed: an opening bracket while words
remain, the closing bracket of the innermost open constituent once it holds a word, the next token of the words in their
order, and EOS when all is closed. The stack is computed from the ids so far: a search needs no state for it.
"""

# B batch, N sentences still in it, M hypotheses of a sentence, L maximum length, V vocabulary
# W tokens of a sentence's words and its EOS, C classes of tokens

from __future__ import annotations

from keras import ops

from t2tlite.decoding.constraints import FORBIDDEN, Constraint
from t2tlite.decoding.tree_guide import (
    ANY_TAG,
    BRACKETS,
    CLASSES,
    FIRST_CLOSING,
    OPENING,
    PUNCTUATION,
    PUNCTUATION_TAG,
    TAG,
)
from t2tlite.types import Tensor

MAX_NESTED = 10  # opening brackets without a word between them


def tree_constraint(classes: Tensor, tokens: Tensor, choices: Tensor, max_lengths: Tensor) -> Constraint:
    """Allows the tokens by which a hypothesis can become a tree over the words of its sentence.

    Args:
        classes: int32 [2, V], see Guide.
        tokens: int32 [B, W], the guides' tokens.
        choices: int32 [B, W], the guides' choices, then ABSENT.
        max_lengths: int32 [B], of the sequences, EOS included.
    """
    wanted = ops.sum(ops.cast(choices >= 0, "int32"), axis=1) - 1  # [B], tokens of the words

    def constrain(logits: Tensor, ids: Tensor, step: Tensor, sentences: Tensor) -> Tensor:
        # 1. What the hypotheses are so far.
        places = ops.arange(ops.shape(ids)[2])  # [L]
        kinds = ops.where(places < step, ops.take(classes[0], ids), -1)  # [N, M, L]
        opens, closes = ops.equal(kinds, OPENING), kinds >= FIRST_CLOSING
        is_word = ops.logical_and(kinds >= 0, ops.logical_not(ops.logical_or(opens, closes)))
        depths = ops.cumsum(ops.cast(opens, "int32") - ops.cast(closes, "int32"), axis=2)
        depth = depths[:, :, -1]  # [N, M], constituents that are open
        innermost = _last(ops.logical_and(opens, ops.equal(depths, depth[:, :, None])), places)
        nested = step - 1 - _last(ops.logical_and(kinds >= 0, ops.logical_not(opens)), places)
        used = ops.sum(ops.cast(is_word, "int32"), axis=2)
        left = ops.take(wanted, sentences)[:, None] - used
        room = ops.take(max_lengths, sentences)[:, None] - step  # tokens that can still follow

        # 2. What may follow.
        next_token, choice = (
            ops.take_along_axis(ops.take(x, sentences, axis=0), used, axis=1) for x in (tokens, choices)
        )
        brackets = choice % 2 >= BRACKETS
        can_open = ops.logical_and(brackets, ops.logical_and(left > 0, nested < MAX_NESTED))
        can_open = ops.logical_and(can_open, room >= depth + left + 3)  # itself, its end and the EOS included
        can_close = ops.logical_and(brackets, _last(is_word, places) > innermost)
        bracket = ops.take_along_axis(ids, ops.maximum(innermost, 0)[:, :, None], axis=2)[:, :, 0]
        closing = ops.where(ops.logical_and(can_close, depth > 0), ops.take(classes[1], bracket), -1)
        allowed = {
            OPENING: can_open,
            PUNCTUATION: choice % 4 >= PUNCTUATION_TAG,
            TAG: choice >= ANY_TAG,
        }

        # 3. The logits of the other tokens are lowered.
        numbers = ops.arange(CLASSES)
        of_class = ops.equal(numbers, closing[:, :, None])  # [N, M, C]
        for number, is_allowed in allowed.items():
            of_class = ops.logical_or(of_class, ops.logical_and(ops.equal(numbers, number), is_allowed[:, :, None]))
        lowered = logits + ops.take(ops.where(of_class, 0.0, FORBIDDEN), classes[0], axis=2)
        can_continue = ops.logical_and(choice < ANY_TAG, ops.logical_or(left > 0, ops.equal(depth, 0)))
        next_token = ops.where(can_continue, next_token, -1)
        is_next = ops.equal(ops.arange(logits.shape[-1], dtype="int32"), next_token[:, :, None])
        return ops.where(is_next, logits, lowered)

    return constrain


def _last(marked: Tensor, places: Tensor) -> Tensor:
    """The last place that is marked, bool [N, M, L], or -1: int32 [N, M]."""
    return ops.max(ops.where(marked, places, -1), axis=2)
