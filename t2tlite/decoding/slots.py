"""What beam search, sampling and constraints share: the functions that they call, their
result, and operations on the slots of hypotheses; in keras.ops alone.
"""

# N sentences still in the batch, B batch, M hypotheses of a sentence (beam size), V
# vocabulary, L maximum length, R capacity of the cache

from collections.abc import Callable
from typing import NamedTuple, TypeVar

from keras import ops

from t2tlite.types import DecodingCache, Tensor

# score of an empty slot
NEVER = -1e9
# the logit of a token that must not be chosen
FORBIDDEN = -1e9
# tokens, in `top_tokens`
BLOCK_TOKENS = 64

# the state of a loop, a NamedTuple
S = TypeVar("S")

# (tokens int32 [B, M], step, ancestors [B, M, R, M], cache) -> (logits [B, M, V],
# cache)
DecodeStep = Callable[..., tuple[Tensor, DecodingCache]]
# (logits [N, M, V], ids int32 [N, M, L] of the hypotheses so far, step: positions
# decoded, sentences int32 [N]: which of the B sentences these are) -> logits
# [N, M, V], lower where a token must not be chosen
Constraint = Callable[..., Tensor]


class BeamResult(NamedTuple):
    """The n-best list of each sentence.

    Attributes:
        ids: int32 [B, M, L], ending with EOS, padded with PAD.
        scores: float32 [B, M], log_probs / length penalty; NEVER in an empty slot.
        log_probs: float32 [B, M], natural log-probabilities, EOS included; NEVER
            likewise.
    """

    ids: Tensor
    scores: Tensor
    log_probs: Tensor


def is_filled(scores: Tensor) -> Tensor:
    """Whether slots with these scores or log-probabilities have a hypothesis."""
    return scores > NEVER / 2


def while_loop(condition: Callable[[S], Tensor], body: Callable[[S], S], start: S) -> S:
    """Applies `body` to the state while `condition` holds."""
    return ops.while_loop(condition, lambda state: (body(state),), (start,))[0]


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What `ops.top_k` returns, in a fraction of its time: logits [B, M, V] -> values
    and tokens int32 [B, M, count].

    The `count` largest numbers are in the `count` blocks with the largest maxima, which
    one pass finds. Of equal numbers the first are returned.
    """
    size = logits.shape[-1]
    if size < 4 * count * BLOCK_TOKENS:
        values, tokens = ops.top_k(logits, count)
        return values, as_int(tokens)
    blocks = -(-size // BLOCK_TOKENS)
    if size % BLOCK_TOKENS:
        padding = ((0, 0), (0, 0), (0, blocks * BLOCK_TOKENS - size))
        logits = ops.pad(logits, padding, constant_values=-float("inf"))
    # [B * M, blocks, 64]
    rows = ops.reshape(logits, (-1, blocks, BLOCK_TOKENS))
    _, best = ops.top_k(ops.max(rows, axis=2), count)
    # [B * M, count], the first block first
    best = ops.sort(as_int(best), axis=1)
    candidates = ops.reshape(take_slots(rows, best), (-1, count * BLOCK_TOKENS))
    values, places = ops.top_k(candidates, count)
    places = as_int(places)
    block = ops.take_along_axis(best, places // BLOCK_TOKENS, axis=1)
    tokens = block * BLOCK_TOKENS + places % BLOCK_TOKENS
    shape = (-1, logits.shape[1], count)
    return ops.reshape(values, shape), ops.reshape(tokens, shape)


def take_slots(x: Tensor, slots: Tensor) -> Tensor:
    """x [B, N, ...] and int [B, K] -> [B, K, ...]: of each sentence, the entries in the
    named slots.
    """
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, ...]
    firsts = indices(ops.shape(x)[0])[:, None] * x.shape[1]  # [B, 1]
    return ops.take(flat, firsts + slots, axis=0)


def indices(count: Tensor) -> Tensor:
    """0, 1, ..., count - 1, int32."""
    return ops.arange(count, dtype="int32")


def as_int(x: Tensor) -> Tensor:
    return ops.cast(x, "int32")


def as_float(x: Tensor) -> Tensor:
    return ops.cast(x, "float32")
