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
    OTHER,
    PUNCTUATION,
    PUNCTUATION_TAG,
    TAG,
)
from t2tlite.tokens import EOS
from t2tlite.types import Tensor

MAX_NESTED = 6  # opening brackets without a word between; more occur in 22 of 107,000 places of GUM's trees
# A word counts at least as much as all words together, less this. Otherwise a search for which the sentence's next word
# is improbable, since the model expects another, opens one constituent after the other to put it off.
UNEXPECTED = 1.0


def tree_constraint(classes: Tensor, tokens: Tensor, choices: Tensor, max_lengths: Tensor) -> Constraint:
    """Allows the tokens by which a hypothesis can become a tree over the words of its sentence.

    Args:
        classes: int32 [2, V], see Guide.
        tokens: int32 [B, W], the guides' tokens.
        choices: int32 [B, W], the guides' choices, then ABSENT.
        max_lengths: int32 [B], of the sequences, EOS included.
    """
    words = ops.where(ops.arange(ops.shape(classes)[1]) > EOS, classes[0], -1)  # [V], without PAD and EOS
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
        all_words = ops.take(wanted, sentences)[:, None]
        used = ops.minimum(ops.sum(ops.cast(is_word, "int32"), axis=2), all_words)  # less the EOS of a sample
        left = all_words - used
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
        may_be_punctuation, may_be_tag = choice % 4 >= PUNCTUATION_TAG, choice >= ANY_TAG
        allowed = {OPENING: can_open, PUNCTUATION: may_be_punctuation, TAG: may_be_tag}
        numbers = ops.arange(CLASSES)
        of_class = ops.equal(numbers, closing[:, :, None])  # [N, M, C]
        for number, is_allowed in allowed.items():
            of_class = ops.logical_or(of_class, ops.logical_and(ops.equal(numbers, number), is_allowed[:, :, None]))

        # 3. The logits of other tokens are lowered, and the words, which are known, are made probable.
        other, tags, punctuation = (_log_sum(logits, ops.equal(words, number)) for number in (OTHER, TAG, PUNCTUATION))
        together = ops.logaddexp(other, tags)
        together = ops.where(may_be_punctuation, together, ops.logaddexp(together, punctuation))
        of_class = ops.where(of_class, 0.0, FORBIDDEN)
        of_class = of_class + ops.where(ops.equal(numbers, TAG), (together - tags)[:, :, None], 0.0)
        lowered = logits + ops.take(of_class, classes[0], axis=2)
        at_end = ops.equal(left, 0)
        is_due = ops.logical_or(ops.logical_not(ops.logical_or(at_end, may_be_tag)), ops.logical_and(at_end, depth < 1))
        next_token = ops.where(is_due, next_token, -1)
        is_next = ops.equal(ops.arange(logits.shape[-1], dtype="int32"), next_token[:, :, None])
        return ops.where(
            is_next,
            ops.where(at_end[:, :, None], logits, ops.maximum(logits, together[:, :, None] - UNEXPECTED)),
            lowered,
        )

    return constrain


def _log_sum(logits: Tensor, counted: Tensor) -> Tensor:
    """The logarithm of the summed probabilities of the tokens that count, bool [V]: [N, M, V] -> [N, M]."""
    return ops.logsumexp(ops.where(counted, logits, FORBIDDEN), axis=2)


def _last(marked: Tensor, places: Tensor) -> Tensor:
    """The last place that is marked, bool [N, M, L], or -1: int32 [N, M]."""
    return ops.max(ops.where(marked, places, -1), axis=2)
