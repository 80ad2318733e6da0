"""The constraint that a decoded sequence is a tree over exactly the words of its
sentence, as in a transition parser.

At each position only tokens are allowed after which such a sequence can be completed:
an opening bracket while words remain, the closing bracket of the innermost open
constituent once it holds a word, the next token of the words in their order, and EOS
when all is closed. The stack is computed from the ids so far: a search needs no state
for it.
"""

# B batch, N sentences still in it, M hypotheses of a sentence, L maximum length, V
# vocabulary W tokens of a sentence's words and its EOS, C classes of tokens

from __future__ import annotations

from typing import NamedTuple

from keras import ops

from t2tlite.decoding.constraints import FORBIDDEN, Constraint
from t2tlite.decoding.tree_guide import (
    ANY_TAG,
    BRACKETS,
    CLASSES,
    CLOSING,
    OPENING,
    PUNCTUATION,
    PUNCTUATION_TAG,
    TAG,
    WORD,
)
from t2tlite.tokens import PAD
from t2tlite.types import Tensor

# opening brackets without a word between; more occur in 22 of 107,000 places of GUM's
# trees
MAX_NESTED = 6
# A word counts at least as much as all words together, less this. Otherwise a search
# for which the sentence's next word is improbable, since the model expects another,
# opens one constituent after the other to put it off. half of GUM's trees to train on,
# F1 on dev: 1.0 has 69.2, 2.0 70.4; 3.0 to 6.0 less on a part
UNEXPECTED = 2.0
# of the sum of a class's probabilities, relative to the largest probability
LEAST = 1e-30


def tree_constraint(
    classes: Tensor, tokens: Tensor, choices: Tensor, max_lengths: Tensor
) -> Constraint:
    """Allows the tokens by which a hypothesis can become a tree over the words of its
    sentence.

    Args:
        classes: int32 [2, V], see Guide.
        tokens: int32 [B, W], the guides' tokens.
        choices: int32 [B, W], the guides' choices, then ABSENT.
        max_lengths: int32 [B], of the sequences, EOS included.
    """
    # [V, C]
    members = ops.cast(ops.equal(classes[0][:, None], ops.array(CLASSES)), "float32")
    # [B], tokens of the words
    wanted = ops.sum(ops.cast(choices >= 0, "int32"), axis=1) - 1

    def constrain(
        logits: Tensor, ids: Tensor, step: Tensor, sentences: Tensor
    ) -> Tensor:
        progress = _progress(ops.take(classes[0], ids), step)
        all_words = ops.take(wanted, sentences)[:, None]
        used = ops.minimum(progress.words, all_words)  # an empty slot can have more
        left = all_words - used
        # tokens that can still follow
        room = ops.take(max_lengths, sentences)[:, None] - step
        next_token, choice = (
            ops.take_along_axis(ops.take(x, sentences, axis=0), used, axis=1)
            for x in (tokens, choices)
        )

        # What may follow.
        brackets = choice % 2 >= BRACKETS
        can_open = ops.logical_and(
            brackets, ops.logical_and(left > 0, progress.nested < MAX_NESTED)
        )
        # tokens, its two brackets and the EOS included
        needed = progress.depth + left + 3
        can_open = ops.logical_and(can_open, room >= needed)
        holds_word = progress.last_word > progress.innermost
        can_close = ops.logical_and(
            brackets, ops.logical_and(progress.depth > 0, holds_word)
        )
        may_be_punctuation, may_be_tag = (
            choice % 4 >= PUNCTUATION_TAG,
            choice >= ANY_TAG,
        )
        at_end = ops.equal(left, 0)
        is_due = ops.logical_not(ops.logical_or(at_end, may_be_tag))
        is_due = ops.logical_or(is_due, ops.logical_and(at_end, progress.depth < 1))

        # The tokens of each class; then single tokens: the closing bracket, and the
        # next of the words or EOS.
        allowed, any_word = _allow_classes(
            logits, members, can_open, may_be_punctuation, may_be_tag
        )
        bracket = ops.take_along_axis(
            ids, ops.maximum(progress.innermost, 0)[:, :, None], axis=2
        )[:, :, 0]
        closing = ops.where(can_close, ops.take(classes[1], bracket), PAD)
        next_token = ops.where(is_due, next_token, PAD)
        # [N, M, 2], PAD where none is allowed
        single = ops.stack([closing, next_token], axis=2)
        values = ops.take_along_axis(logits, single, axis=2)
        # a word that is due is made probable
        least = ops.where(at_end, FORBIDDEN, any_word - UNEXPECTED)
        values = ops.maximum(
            values, ops.stack([ops.full_like(least, FORBIDDEN), least], axis=2)
        )
        return _put(
            allowed, single, ops.where(ops.equal(single, PAD), FORBIDDEN, values)
        )

    return constrain


class _Progress(NamedTuple):
    """What hypotheses have of their trees, int32 [N, M]; places are -1 where there is
    none.
    """

    depth: Tensor  # constituents that are open
    innermost: Tensor  # place of the bracket that opened the innermost of them
    last_word: Tensor  # place of the last token of a word
    nested: Tensor  # opening brackets at the end
    words: Tensor  # tokens of words


def _progress(classes: Tensor, step: Tensor) -> _Progress:
    """The progress of hypotheses, given the class of each token, int32 [N, M, L], at
    this step.
    """
    places = ops.arange(ops.shape(classes)[2])  # [L]
    kinds = ops.where(places < step, classes, -1)
    opens, closes = ops.equal(kinds, OPENING), ops.equal(kinds, CLOSING)
    is_word = ops.logical_and(kinds >= WORD, kinds <= TAG)
    # [N, M, L]
    depths = ops.cumsum(ops.cast(opens, "int32") - ops.cast(closes, "int32"), axis=2)
    depth = depths[:, :, -1]
    return _Progress(
        depth=depth,
        innermost=_last(
            ops.logical_and(opens, ops.equal(depths, depth[:, :, None])), places
        ),
        last_word=_last(is_word, places),
        nested=step
        - 1
        - _last(ops.logical_and(kinds >= 0, ops.logical_not(opens)), places),
        words=ops.sum(ops.cast(is_word, "int32"), axis=2),
    )


def _allow_classes(
    logits: Tensor,
    members: Tensor,
    can_open: Tensor,
    may_be_punctuation: Tensor,
    may_be_tag: Tensor,
) -> tuple[Tensor, Tensor]:
    """The logits without the tokens of classes that may not follow; and the logit of
    all words together, [N, M].

    `members` float32 [V, C] is 1 where a token is of a class. If tags may follow, they
    are raised, so that together they are as probable as all words.
    """
    # largest, and the exponentials, are as in `_best_continuations`, so that TensorFlow
    # computes them once
    largest = ops.max(logits, axis=-1, keepdims=True)
    # [N, M, C]
    sums = ops.maximum(ops.matmul(ops.exp(logits - largest), members), LEAST)
    words = (
        sums[:, :, WORD]
        + sums[:, :, TAG]
        + ops.where(may_be_punctuation, 0.0, sums[:, :, PUNCTUATION])
    )
    any_word = ops.log(words) + largest[:, :, 0]  # [N, M]
    # to the logits of each class
    added = [ops.full_like(any_word, FORBIDDEN)] * len(CLASSES)
    added[OPENING] = ops.where(can_open, 0.0, FORBIDDEN)
    added[PUNCTUATION] = ops.where(may_be_punctuation, 0.0, FORBIDDEN)
    added[TAG] = ops.where(may_be_tag, ops.log(words / sums[:, :, TAG]), FORBIDDEN)
    return (
        logits + ops.matmul(ops.stack(added, axis=2), ops.transpose(members)),
        any_word,
    )


def _put(logits: Tensor, tokens: Tensor, values: Tensor) -> Tensor:
    """The logits [N, M, V] with these values of some tokens, both [N, M, K]."""
    rows = ops.reshape(logits, (-1, logits.shape[-1]))
    count = tokens.shape[2]
    at = ops.repeat(ops.arange(ops.shape(rows)[0], dtype="int32"), count)
    places = ops.stack([at, ops.reshape(tokens, (-1,))], axis=1)  # [N * M * K, 2]
    return ops.reshape(
        ops.scatter_update(rows, places, ops.reshape(values, (-1,))), ops.shape(logits)
    )


def _last(marked: Tensor, places: Tensor) -> Tensor:
    """The last place that is marked, bool [N, M, L], or -1: int32 [N, M]."""
    return ops.max(ops.where(marked, places, -1), axis=2)
