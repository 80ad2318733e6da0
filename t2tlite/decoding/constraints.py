"""Constraints on decoding: functions that lower the logits of tokens that are not
allowed at a position.

Beam search and sampling choose tokens by the constrained logits. Log-probabilities are
still computed from the model's own logits, so that a translation has the same
log-probability regardless of constraints.
"""

# B batch, N sentences still in it, M hypotheses of a sentence, L maximum length, V
# vocabulary, W tokens of a sentence's words and its EOS, C classes of tokens

from keras import ops

from t2tlite.decoding.slots import (
    FORBIDDEN,
    Constraint,
    as_float,
    as_int,
    indices,
)
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
from t2tlite.types import EOS, PAD, Tensor

# Of bracket_constraint:
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


def conjunction(
    min_length: int = 0,
    no_repeat_ngram_size: int = 0,
    prefixes: Tensor | None = None,
    brackets: Constraint | None = None,
) -> Constraint | None:
    """All these constraints together, or None without any.

    Args:
        min_length: tokens that a hypothesis has at least, without the EOS.
        no_repeat_ngram_size: no sequence of this many tokens occurs twice.
        prefixes: int32 [B, L], the tokens with which hypotheses begin, whatever else
            is forbidden; PAD behind them.
        brackets: a `bracket_constraint`.
    """
    if prefixes is None and not (min_length or no_repeat_ngram_size or brackets):
        return None

    def constrain(
        logits: Tensor,
        ids: Tensor,
        step: Tensor,
        sentences: Tensor,
    ) -> Tensor:
        vocabulary = indices(logits.shape[-1])
        allowed = logits
        if brackets:
            allowed = brackets(allowed, ids, step, sentences)
        if no_repeat_ngram_size:
            allowed = forbid_repetition(no_repeat_ngram_size, allowed, ids, step)
        if min_length:
            too_early = ops.equal(vocabulary, EOS) & (step < min_length)
            allowed = ops.where(too_early, FORBIDDEN, allowed)
        if prefixes is not None:
            token = ops.take(ops.take(prefixes, step, axis=1), sentences)
            token = token[:, None, None]  # [N, 1, 1]
            forced = ops.where(ops.equal(vocabulary, token), logits, FORBIDDEN)
            allowed = ops.where(ops.equal(token, PAD), allowed, forced)
        return allowed

    return constrain


def forbid_repetition(size: int, logits: Tensor, ids: Tensor, step: Tensor) -> Tensor:
    """Forbids tokens that would complete a sequence of `size` tokens that the
    hypothesis already has.
    """
    rows = ops.shape(logits)[0] * ids.shape[1]
    length = ops.shape(ids)[2]
    ids = ops.reshape(ids, (rows, length))
    positions = indices(length)
    repeats = ((positions >= size - 1) & (positions < step))[None]  # [1, L]
    # are the tokens before a position the last ones of the hypothesis?
    for back in range(1, size):
        last = ops.take(ids, ops.maximum(step - back, 0), axis=1)[:, None]  # [B * M, 1]
        repeats &= ops.equal(ops.roll(ids, back, axis=1), last)  # [B * M, L]
    repeats = ops.broadcast_to(repeats, (rows, length))
    lowered = as_float(repeats) * FORBIDDEN
    row_numbers = ops.tile(indices(rows)[:, None], (1, length))
    places = ops.reshape(ops.stack([row_numbers, ids], axis=-1), (-1, 2))
    shape = (rows, logits.shape[-1])
    sums = ops.scatter(places, ops.reshape(lowered, (-1,)), shape)
    return logits + ops.reshape(sums, ops.shape(logits))


def bracket_constraint(
    classes: Tensor,
    tokens: Tensor,
    choices: Tensor,
    max_lengths: Tensor,
) -> Constraint:
    """Allows the sequences that have exactly the words of their sentence, in their
    order, with balanced brackets around them, as in a transition parser.

    At each position only tokens are allowed after which such a sequence can be
    completed: an opening bracket while words remain, the closing bracket of the
    innermost open pair once it holds a word, the next token of the words, and EOS when
    all is closed. The stack is computed from the ids so far: a search needs no state
    for it.

    Args:
        classes: int32 [2, V], see `Bracketing`.
        tokens: int32 [B, W], those of the sentences.
        choices: int32 [B, W], those of the sentences, then ABSENT.
        max_lengths: int32 [B], of the sequences, EOS included.
    """
    # [V, C]
    members = as_float(ops.equal(classes[0][:, None], indices(len(CLASSES))))
    # [B], tokens of the words
    wanted = ops.sum(as_int(choices >= 0), axis=1) - 1

    def constrain(
        logits: Tensor,
        ids: Tensor,
        step: Tensor,
        sentences: Tensor,
    ) -> Tensor:
        kinds = ops.take(classes[0], ids)
        depth, innermost, last_word, nested, words = _progress(kinds, step)
        all_words = ops.take(wanted, sentences)[:, None]
        # an empty slot can have more
        used = ops.minimum(words, all_words)
        left = all_words - used
        # tokens that can still follow
        room = ops.take(max_lengths, sentences)[:, None] - step
        due = ops.take_along_axis(ops.take(tokens, sentences, axis=0), used, axis=1)
        choice = ops.take_along_axis(ops.take(choices, sentences, axis=0), used, axis=1)

        # What may follow.
        may_be_punctuation = choice % 4 >= PUNCTUATION_TAG
        may_be_tag = choice >= ANY_TAG
        at_end = left < 1
        is_closed = depth < 1
        between_words = choice % 2 >= BRACKETS_MAY_FOLLOW
        # tokens of a further pair, the other pairs, the words and EOS
        fits = room >= depth + left + 3
        can_open = between_words & fits & (nested < MAX_NESTED) & ~at_end
        holds_word = last_word > innermost
        can_close = between_words & holds_word & ~is_closed
        is_due = ops.where(at_end, is_closed, ~may_be_tag)

        # The tokens of each class. If tags may follow, they are raised, so that
        # together they are as probable as all words. The exponentials are as in
        # `_best_continuations`, so that TensorFlow computes them once.
        largest = ops.max(logits, axis=-1, keepdims=True)
        sums = ops.matmul(ops.exp(logits - largest), members)
        sums = ops.maximum(sums, LEAST)  # [N, M, C]
        punctuation = ops.where(may_be_punctuation, 0.0, sums[:, :, PUNCTUATION])
        all_sum = sums[:, :, WORD] + sums[:, :, TAG] + punctuation
        any_word = ops.log(all_sum) + largest[:, :, 0]  # [N, M]
        raised = ops.log(all_sum / sums[:, :, TAG])
        # to the logits of each class
        added = [ops.full_like(any_word, FORBIDDEN)] * len(CLASSES)
        added[OPENING] = ops.where(can_open, 0.0, FORBIDDEN)
        added[PUNCTUATION] = ops.where(may_be_punctuation, 0.0, FORBIDDEN)
        added[TAG] = ops.where(may_be_tag, raised, FORBIDDEN)
        added = ops.stack(added, axis=2)
        allowed = logits + ops.matmul(added, ops.transpose(members))

        # Single tokens: the closing bracket, and the next of the words or EOS.
        place = ops.maximum(innermost, 0)[:, :, None]
        opening = ops.take_along_axis(ids, place, axis=2)[:, :, 0]
        closing = ops.where(can_close, ops.take(classes[1], opening), PAD)
        due = ops.where(is_due, due, PAD)
        # [N, M, 2], PAD for none
        single = ops.stack([closing, due], axis=2)
        values = ops.take_along_axis(logits, single, axis=2)
        # a word that is due is made probable
        least = ops.where(at_end, FORBIDDEN, any_word - UNEXPECTED)
        least = ops.stack([ops.full_like(least, FORBIDDEN), least], axis=2)
        values = ops.maximum(values, least)
        values = ops.where(ops.equal(single, PAD), FORBIDDEN, values)
        return put(allowed, single, values)

    return constrain


def _progress(classes: Tensor, step: Tensor) -> tuple[Tensor, ...]:
    """The progress of hypotheses, given the class of each token, int32 [N, M, L], at
    this step.

    Returns int32 [N, M]; a place is -1 where there is none:
        the number of pairs of brackets that are open,
        the place of the bracket that opened the innermost of them,
        the place of the last token of a word,
        the number of opening brackets at the end,
        the number of tokens of words.
    """
    places = indices(ops.shape(classes)[2])  # [L]
    # [N, M, L], like those below
    kinds = ops.where(places < step, classes, -1)
    opens = ops.equal(kinds, OPENING)
    closes = ops.equal(kinds, CLOSING)
    is_word = (kinds >= WORD) & (kinds <= TAG)
    depths = ops.cumsum(as_int(opens) - as_int(closes), axis=2)
    depth = depths[:, :, -1]
    innermost = _last(opens & ops.equal(depths, depth[:, :, None]), places)
    nested = step - 1 - _last((kinds >= 0) & ~opens, places)
    words = ops.sum(as_int(is_word), axis=2)
    return depth, innermost, _last(is_word, places), nested, words


def put(logits: Tensor, tokens: Tensor, values: Tensor) -> Tensor:
    """The logits [N, M, V] with these values of some tokens, both [N, M, K]."""
    rows = ops.reshape(logits, (-1, logits.shape[-1]))
    count = ops.shape(tokens)[2]
    at = ops.repeat(indices(ops.shape(rows)[0]), count)
    # [N * M * K, 2]
    places = ops.stack([at, ops.reshape(tokens, (-1,))], axis=1)
    changed = ops.scatter_update(rows, places, ops.reshape(values, (-1,)))
    return ops.reshape(changed, ops.shape(logits))


def _last(marked: Tensor, places: Tensor) -> Tensor:
    """The last place that is marked, bool [N, M, L], or -1: int32 [N, M]."""
    return ops.max(ops.where(marked, places, -1), axis=2)
