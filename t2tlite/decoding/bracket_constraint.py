"""The constraint that a decoded sequence has exactly the words of its sentence, in
their order, with balanced brackets around them, as in a transition parser.

At each position only tokens are allowed after which such a sequence can be completed:
an opening bracket while words remain, the closing bracket of the innermost open pair
once it holds a word, the next token of the words, and EOS when all is closed. The stack
is computed from the ids so far: a search needs no state for it.
"""

# B batch, N sentences still in it, M hypotheses of a sentence, L maximum length, V
# vocabulary, W tokens of a sentence's words and its EOS, C classes of tokens

from typing import NamedTuple

from keras import ops

from t2tlite.decoding.constraints import FORBIDDEN, Constraint
from t2tlite.tasks.bracketing import (
    ANY_TAG,
    BRACKETS_MAY_FOLLOW,
    CLASSES,
    CLOSING,
    OPENING,
    PUNCTUATION,
    PUNCTUATION_TAG,
    TAG,
    WORD,
)
from t2tlite.types import PAD, Tensor

# Opening brackets without a word between. 22 of 107,000 places of GUM's trees have
# more.
MAX_NESTED = 6
# The logit of the word that is due is at least that of all words together, less this.
# Otherwise a search whose model expects another word puts the due one off by opening
# one bracket after the other. F1 on dev, from half of GUM's trees: 69.2 with 1.0, 70.4
# with 2.0; less with 3.0 to 6.0, on a part.
UNEXPECTED = 2.0
# of the sum of a class's probabilities, relative to the largest probability
LEAST = 1e-30


def bracket_constraint(
    classes: Tensor, tokens: Tensor, choices: Tensor, max_lengths: Tensor
) -> Constraint:
    """Allows the tokens by which a hypothesis can become a bracketing of the words of
    its sentence.

    Args:
        classes: int32 [2, V], see `Bracketing`.
        tokens: int32 [B, W], those of the sentences.
        choices: int32 [B, W], those of the sentences, then ABSENT.
        max_lengths: int32 [B], of the sequences, EOS included.
    """
    kinds = ops.array(CLASSES, dtype="int32")
    members = ops.cast(ops.equal(classes[0][:, None], kinds), "float32")  # [V, C]
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
        due = ops.take_along_axis(ops.take(tokens, sentences, axis=0), used, axis=1)
        choice = ops.take_along_axis(ops.take(choices, sentences, axis=0), used, axis=1)

        # What may follow.
        may_be_punctuation = choice % 4 >= PUNCTUATION_TAG
        may_be_tag = choice >= ANY_TAG
        at_end = left < 1
        is_closed = progress.depth < 1
        between_words = choice % 2 >= BRACKETS_MAY_FOLLOW
        # tokens of a further pair, the other pairs, the words and EOS
        fits = room >= progress.depth + left + 3
        can_open = between_words & fits & (progress.nested < MAX_NESTED) & ~at_end
        holds_word = progress.last_word > progress.innermost
        can_close = between_words & holds_word & ~is_closed
        is_due = ops.where(at_end, is_closed, ~may_be_tag)

        # The tokens of each class; then single tokens: the closing bracket, and the
        # next of the words or EOS.
        allowed, any_word = _allow_classes(
            logits, members, can_open, may_be_punctuation, may_be_tag
        )
        place = ops.maximum(progress.innermost, 0)[:, :, None]
        opening = ops.take_along_axis(ids, place, axis=2)[:, :, 0]
        closing = ops.where(can_close, ops.take(classes[1], opening), PAD)
        due = ops.where(is_due, due, PAD)
        single = ops.stack([closing, due], axis=2)  # [N, M, 2], PAD for none
        values = ops.take_along_axis(logits, single, axis=2)
        # a word that is due is made probable
        least = ops.where(at_end, FORBIDDEN, any_word - UNEXPECTED)
        least = ops.stack([ops.full_like(least, FORBIDDEN), least], axis=2)
        values = ops.maximum(values, least)
        values = ops.where(ops.equal(single, PAD), FORBIDDEN, values)
        return _put(allowed, single, values)

    return constrain


class _Progress(NamedTuple):
    """The state of hypotheses, int32 [N, M]; a place is -1 where there is none."""

    depth: Tensor  # pairs of brackets that are open
    innermost: Tensor  # place of the bracket that opened the innermost of them
    last_word: Tensor  # place of the last token of a word
    nested: Tensor  # opening brackets at the end
    words: Tensor  # tokens of words


def _progress(classes: Tensor, step: Tensor) -> _Progress:
    """The progress of hypotheses, given the class of each token, int32 [N, M, L], at
    this step.
    """
    places = ops.arange(ops.shape(classes)[2], dtype="int32")  # [L]
    kinds = ops.where(places < step, classes, -1)  # [N, M, L], like those below
    opens = ops.equal(kinds, OPENING)
    closes = ops.equal(kinds, CLOSING)
    is_word = (kinds >= WORD) & (kinds <= TAG)
    is_other = (kinds >= 0) & ~opens
    depths = ops.cumsum(ops.cast(opens, "int32") - ops.cast(closes, "int32"), axis=2)
    depth = depths[:, :, -1]
    opens_here = opens & ops.equal(depths, depth[:, :, None])
    return _Progress(
        depth=depth,
        innermost=_last(opens_here, places),
        last_word=_last(is_word, places),
        nested=step - 1 - _last(is_other, places),
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

    `members`, float32 [V, C], is 1 where a token is of a class. If tags may follow,
    they are raised, so that together they are as probable as all words.
    """
    # largest, and the exponentials, are as in `_best_continuations`, so that TensorFlow
    # computes them once
    largest = ops.max(logits, axis=-1, keepdims=True)
    # [N, M, C]
    sums = ops.maximum(ops.matmul(ops.exp(logits - largest), members), LEAST)
    punctuation = ops.where(may_be_punctuation, 0.0, sums[:, :, PUNCTUATION])
    words = sums[:, :, WORD] + sums[:, :, TAG] + punctuation
    any_word = ops.log(words) + largest[:, :, 0]  # [N, M]
    raised = ops.log(words / sums[:, :, TAG])
    # to the logits of each class
    added = [ops.full_like(any_word, FORBIDDEN)] * len(CLASSES)
    added[OPENING] = ops.where(can_open, 0.0, FORBIDDEN)
    added[PUNCTUATION] = ops.where(may_be_punctuation, 0.0, FORBIDDEN)
    added[TAG] = ops.where(may_be_tag, raised, FORBIDDEN)
    by_class = ops.stack(added, axis=2)
    return logits + ops.matmul(by_class, ops.transpose(members)), any_word


def _put(logits: Tensor, tokens: Tensor, values: Tensor) -> Tensor:
    """The logits [N, M, V] with these values of some tokens, both [N, M, K]."""
    rows = ops.reshape(logits, (-1, logits.shape[-1]))
    count = tokens.shape[2]
    at = ops.repeat(ops.arange(ops.shape(rows)[0], dtype="int32"), count)
    places = ops.stack([at, ops.reshape(tokens, (-1,))], axis=1)  # [N * M * K, 2]
    changed = ops.scatter_update(rows, places, ops.reshape(values, (-1,)))
    return ops.reshape(changed, ops.shape(logits))


def _last(marked: Tensor, places: Tensor) -> Tensor:
    """The last place that is marked, bool [N, M, L], or -1: int32 [N, M]."""
    return ops.max(ops.where(marked, places, -1), axis=2)
