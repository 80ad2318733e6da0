"""Operations of beam search and of sampling, in keras.ops alone."""

# B batch, M hypotheses of a sentence, V vocabulary

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from keras import ops

from t2tlite.types import Tensor

BLOCK = 64  # tokens, in `top_tokens`

S = TypeVar("S", bound=tuple[Any, ...])  # the state of a loop, a NamedTuple


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
    if size < 4 * count * BLOCK:
        values, tokens = ops.top_k(logits, count)
        return values, ops.cast(tokens, "int32")
    beam_size, blocks = logits.shape[1], -(-size // BLOCK)
    if size % BLOCK:
        logits = ops.pad(
            logits,
            ((0, 0), (0, 0), (0, blocks * BLOCK - size)),
            constant_values=-float("inf"),
        )
    rows = ops.reshape(logits, (-1, blocks, BLOCK))  # [B * M, blocks, BLOCK]
    _, chosen = ops.top_k(ops.max(rows, axis=2), count)
    # [B * M, count], the first block first
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=1)
    values, places = ops.top_k(
        ops.reshape(take_slots(rows, chosen), (-1, count * BLOCK)), count
    )
    places = ops.cast(places, "int32")
    tokens = (
        ops.take_along_axis(chosen, places // BLOCK, axis=1) * BLOCK + places % BLOCK
    )
    return ops.reshape(values, (-1, beam_size, count)), ops.reshape(
        tokens, (-1, beam_size, count)
    )


def take_slots(x: Tensor, slots: Tensor) -> Tensor:
    """x [B, N, ...] and int [B, K] -> [B, K, ...]: of each sentence, the entries in the
    named slots.
    """
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, ...]
    # [B, K]
    rows = ops.arange(ops.shape(x)[0], dtype="int32")[:, None] * x.shape[1] + slots
    return ops.take(flat, rows, axis=0)
