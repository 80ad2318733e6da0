"""Sampling: translations drawn token by token from the model's distribution, in
keras.ops alone.

The random numbers are an argument, so that the same numbers give the same tokens in any
batch and with any backend.
"""

# B batch, M samples of each sentence, L maximum length, V vocabulary

from typing import NamedTuple

from keras import ops

from t2tlite.decoding.rules import length_penalty
from t2tlite.decoding.slots import (
    FORBIDDEN,
    BeamResult,
    Constraint,
    DecodeStep,
    as_float,
    as_int,
    indices,
    take_slots,
    while_loop,
)
from t2tlite.types import EOS, DecodingCache, Tensor

# so that a random number, times a sum, is below the sum in float32
BELOW_ONE = 1.0 - 2.0**-23


class SamplingState(NamedTuple):
    """The samples between two steps.

    Attributes:
        step: int32 scalar, positions decoded.
        ids: int32 [B, M, L].
        log_probs: float32 [B, M].
        cache: of the model.
    """

    step: Tensor
    ids: Tensor
    log_probs: Tensor
    cache: DecodingCache


def sample(
    decode_step: DecodeStep,
    cache: DecodingCache,
    *,
    max_lengths: Tensor,
    uniforms: Tensor,
    alpha: Tensor,
    temperature: float = 1.0,
    keep_top_k: int = 0,
    constrain: Constraint | None = None,
    penalise_unfinished: bool = True,
) -> BeamResult:
    """M translations of each sentence, drawn independently of each other, highest score
    first.

    Each token is drawn from softmax(logits / temperature), without the tokens that
    `draw` excludes. Log-probabilities are the model's: at temperature 1, with nothing
    excluded. Arguments as for `beam_search`, and

    Args:
        uniforms: float32 [B, M, L], random numbers from [0, 1), one for each token.
        temperature: above 1 for more varied samples, below for more probable ones.
        keep_top_k: draw from this many most probable tokens; 0 for all.
    """
    batch = ops.shape(max_lengths)[0]
    slots = uniforms.shape[1]
    positions = indices(ops.shape(uniforms)[2])  # [L]
    sentences = indices(batch)
    # [B, M, 1, M], a sample stays in its slot
    own_slot = ops.eye(slots, dtype="float32")[None, :, None, :]
    own_slot = ops.tile(own_slot, (batch, 1, 1, 1))

    def active(state: SamplingState) -> Tensor:
        """bool [B, M]: samples that get another token."""
        return (state.step < max_lengths[:, None]) & ~_is_finished(state)

    def advance(state: SamplingState) -> SamplingState:
        """Decodes one position; samples that are not active do not change."""
        last = ops.take(state.ids, ops.maximum(state.step - 1, 0), axis=2)  # [B, M]
        past = as_float(positions <= state.step)
        ancestors = own_slot * past[None, None, :, None]
        # [B, M, V]
        logits, cache = decode_step(last, state.step, ancestors, state.cache)
        allowed = logits
        if constrain:
            allowed = constrain(logits, state.ids, state.step, sentences)
        uniform = ops.take(uniforms, state.step, axis=2)
        # [B, M], like those below
        tokens = draw(allowed, uniform, temperature, keep_top_k)
        chosen = ops.take_along_axis(logits, tokens[:, :, None], axis=2)[:, :, 0]
        log_probs = chosen - ops.logsumexp(logits, axis=-1)
        changes = active(state)
        here = as_int(ops.equal(positions, state.step))
        return SamplingState(
            step=state.step + 1,
            ids=state.ids + ops.where(changes, tokens, 0)[:, :, None] * here,
            log_probs=state.log_probs + ops.where(changes, log_probs, 0.0),
            cache=cache,
        )

    start = SamplingState(
        step=ops.convert_to_tensor(0, dtype="int32"),
        ids=ops.zeros_like(uniforms, dtype="int32"),
        log_probs=ops.zeros((batch, slots), dtype="float32"),
        cache=cache,
    )
    state = while_loop(lambda state: ops.any(active(state)), advance, start)
    finished = _is_finished(state)
    # with EOS
    lengths = _first(ops.equal(state.ids, EOS)) + 1
    lengths = ops.where(finished, lengths, max_lengths[:, None])
    penalty = length_penalty(as_float(lengths), alpha)
    if not penalise_unfinished:
        penalty = ops.where(finished, penalty, 1.0)
    scores, order = ops.top_k(state.log_probs / penalty, slots)
    ids = take_slots(state.ids, order)
    return BeamResult(ids, scores, take_slots(state.log_probs, order))


def _is_finished(state: SamplingState) -> Tensor:
    """bool [B, M]: samples that end with EOS."""
    return ops.any(ops.equal(state.ids, EOS), axis=2)


def _first(marked: Tensor) -> Tensor:
    """The first place that is marked, bool [B, M, N]: int32 [B, M]."""
    # of floats: a GPU has no ArgMax of integers
    return as_int(ops.argmax(as_float(marked), axis=-1))


def draw(
    logits: Tensor, uniform: Tensor, temperature: float, keep_top_k: int
) -> Tensor:
    """Tokens int32 [B, M], drawn from softmax(logits [B, M, V] / temperature) with
    random numbers [B, M] from [0, 1).

    If `keep_top_k` is not 0, only that many most probable tokens remain. The token
    drawn is the first, by id, whose cumulative probability exceeds the random number.
    """
    logits = logits / temperature
    if keep_top_k:
        largest, _ = ops.top_k(logits, min(keep_top_k, logits.shape[-1]))
        logits = ops.where(logits >= largest[:, :, -1:], logits, FORBIDDEN)
    weights = ops.softmax(logits, axis=-1)
    sums = ops.cumsum(weights, axis=-1)
    threshold = uniform[:, :, None] * BELOW_ONE * ops.max(sums, axis=-1, keepdims=True)
    # parallel sums may not be monotonic
    return _first((sums > threshold) & (weights > 0))
