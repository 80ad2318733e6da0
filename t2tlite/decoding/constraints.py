"""Constraints on decoding: functions that lower the logits of tokens that are not
allowed at a position.

Beam search and sampling choose tokens by the constrained logits. Log-probabilities are
still computed from the model's own logits, so that a translation has the same
log-probability regardless of constraints.
"""

# B sentences, N of them still in the batch, M hypotheses of a sentence, L maximum
# length, V vocabulary

from collections.abc import Callable, Sequence

from keras import ops

from t2tlite.types import EOS, PAD, Tensor

FORBIDDEN = -1e9  # the logit of a token that must not be chosen

# (logits [N, M, V], ids int32 [N, M, L] of the hypotheses so far, step: positions
# decoded, sentences int32 [N]: which of the B sentences these are) -> logits [N, M, V].
# The functions below have arguments of their own before these four; functools.partial
# makes a constraint of them.
Constraint = Callable[[Tensor, Tensor, Tensor, Tensor], Tensor]


def min_length(
    tokens: int, logits: Tensor, ids: Tensor, step: Tensor, sentences: Tensor
) -> Tensor:
    """Forbids EOS before a hypothesis has this many tokens."""
    is_eos = ops.equal(ops.arange(logits.shape[-1], dtype="int32"), EOS)  # [V]
    return ops.where(is_eos & (step < tokens), FORBIDDEN, logits)


def no_repeat_ngram(
    size: int, logits: Tensor, ids: Tensor, step: Tensor, sentences: Tensor
) -> Tensor:
    """Forbids tokens that would complete a sequence of `size` tokens that the
    hypothesis already has.
    """
    rows = ops.shape(logits)[0] * ids.shape[1]
    length = ops.shape(ids)[2]
    ids = ops.reshape(ids, (rows, length))
    positions = ops.arange(length, dtype="int32")
    repeats = ((positions >= size - 1) & (positions < step))[None]  # [1, L]
    # are the tokens before a position the last ones of the hypothesis?
    for back in range(1, size):
        last = ops.take(ids, ops.maximum(step - back, 0), axis=1)[:, None]  # [B * M, 1]
        repeats &= ops.equal(ops.roll(ids, back, axis=1), last)  # [B * M, L]
    repeats = ops.broadcast_to(repeats, (rows, length))
    lowered = ops.cast(repeats, "float32") * FORBIDDEN
    row_numbers = ops.tile(ops.arange(rows, dtype="int32")[:, None], (1, length))
    places = ops.reshape(ops.stack([row_numbers, ids], axis=-1), (-1, 2))
    shape = (rows, logits.shape[-1])
    sums = ops.scatter(places, ops.reshape(lowered, (-1,)), shape)
    return logits + ops.reshape(sums, ops.shape(logits))


def forced_prefix(
    prefixes: Tensor,
    otherwise: Constraint,
    logits: Tensor,
    ids: Tensor,
    step: Tensor,
    sentences: Tensor,
) -> Tensor:
    """Forces the tokens of `prefixes`, int32 [B, L]; where they are PAD, `otherwise`
    applies.
    """
    of_step = ops.take(prefixes, step, axis=1)  # [B]
    token = ops.take(of_step, sentences)[:, None, None]  # [N, 1, 1]
    is_token = ops.equal(ops.arange(logits.shape[-1], dtype="int32"), token)
    forced = ops.where(is_token, logits, FORBIDDEN)
    allowed = otherwise(logits, ids, step, sentences)
    return ops.where(ops.equal(token, PAD), allowed, forced)


def all_of(
    constraints: Sequence[Constraint],
    logits: Tensor,
    ids: Tensor,
    step: Tensor,
    sentences: Tensor,
) -> Tensor:
    """The conjunction of the constraints."""
    for constraint in constraints:
        logits = constraint(logits, ids, step, sentences)
    return logits
