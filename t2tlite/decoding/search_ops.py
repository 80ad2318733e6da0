"""What beam search and sampling share: their step, their result and their operations,
in keras.ops alone.
"""

# B batch, M hypotheses of a sentence, L maximum length, R capacity of the cache, V
# vocabulary

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from keras import ops

from t2tlite.types import DecodingCache, Tensor

NEVER = -1e9  # score of an empty slot
BLOCK_TOKENS = 64  # tokens, in `top_tokens`

S = TypeVar("S", bound=tuple[Any, ...])  # the state of a loop, a NamedTuple

# (tokens int32 [B, M], step, ancestors [B, M, R, M], cache) -> (logits [B, M, V],
# cache)
DecodeStep = Callable[
    [Tensor, Tensor, Tensor, DecodingCache], tuple[Tensor, DecodingCache]
]


class BeamResult(NamedTuple):
    """The n-best list of each sentence."""

    ids: Tensor  # int32 [B, M, L]: ending with EOS, padded with PAD
    scores: Tensor  # float32 [B, M]: log_probs / length penalty; NEVER in an empty slot
    # float32 [B, M]: natural log-probabilities, EOS included; NEVER likewise
    log_probs: Tensor


def is_filled(scores: Tensor) -> Tensor:
    """Whether slots with these scores or log-probabilities have a hypothesis."""
    return scores > NEVER / 2


def while_loop(condition: Callable[[S], Tensor], body: Callable[[S], S], start: S) -> S:
    """`ops.while_loop` for a state that is a NamedTuple: applies `body` to it while
    `condition` holds.
    """
    state_of = type(start)

    def holds(*fields: Any) -> Tensor:
        return condition(state_of(*fields))

    def step(*fields: Any) -> S:
        return body(state_of(*fields))

    return state_of(*ops.while_loop(holds, step, start))


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What `ops.top_k` returns, in a fraction of its time: logits [B, M, V] -> values
    and tokens int32 [B, M, count].

    The `count` largest numbers are in the `count` blocks with the largest maxima, which
    one pass finds. Of equal numbers the first are returned.
    """
    size = logits.shape[-1]
    if size < 4 * count * BLOCK_TOKENS:
        values, tokens = ops.top_k(logits, count)
        return values, ops.cast(tokens, "int32")
    beam_size = logits.shape[1]
    blocks = -(-size // BLOCK_TOKENS)
    if size % BLOCK_TOKENS:
        padding = ((0, 0), (0, 0), (0, blocks * BLOCK_TOKENS - size))
        logits = ops.pad(logits, padding, constant_values=-float("inf"))
    rows = ops.reshape(logits, (-1, blocks, BLOCK_TOKENS))  # [B * M, blocks, 64]
    _, best = ops.top_k(ops.max(rows, axis=2), count)
    # [B * M, count], the first block first
    best = ops.sort(ops.cast(best, "int32"), axis=1)
    candidates = ops.reshape(take_slots(rows, best), (-1, count * BLOCK_TOKENS))
    values, places = ops.top_k(candidates, count)
    places = ops.cast(places, "int32")
    block = ops.take_along_axis(best, places // BLOCK_TOKENS, axis=1)
    tokens = block * BLOCK_TOKENS + places % BLOCK_TOKENS
    shape = (-1, beam_size, count)
    return ops.reshape(values, shape), ops.reshape(tokens, shape)


def take_slots(x: Tensor, slots: Tensor) -> Tensor:
    """x [B, N, ...] and int [B, K] -> [B, K, ...]: of each sentence, the entries in the
    named slots.
    """
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, ...]
    firsts = ops.arange(ops.shape(x)[0], dtype="int32")[:, None] * x.shape[1]  # [B, 1]
    return ops.take(flat, firsts + slots, axis=0)
