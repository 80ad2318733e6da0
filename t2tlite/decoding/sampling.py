"""Sampling: translations drawn token by token from the model's distribution, in
keras.ops alone.

The random numbers are an argument, so that the same numbers give the same tokens in any
batch and with any backend.
"""

# B batch, M samples of each sentence, L maximum length, V vocabulary

from typing import NamedTuple

from keras import ops

from t2tlite.decoding.constraints import FORBIDDEN, Constraint
from t2tlite.decoding.rules import length_penalty
from t2tlite.decoding.search_ops import BeamResult, DecodeStep, take_slots, while_loop
from t2tlite.types import EOS, DecodingCache, Tensor

# so that a random number, times a sum, is below the sum in float32
BELOW_ONE = 1.0 - 2.0**-23


class SamplingState(NamedTuple):
    """The samples between two steps."""

    step: Tensor  # int32 scalar: positions decoded
    ids: Tensor  # int32 [B, M, L]
    log_probs: Tensor  # float32 [B, M]
    lengths: Tensor  # int32 [B, M]: tokens, EOS included
    finished: Tensor  # bool [B, M]: it ends with EOS
    cache: DecodingCache  # of the model


def sample(
    decode_step: DecodeStep,
    cache: DecodingCache,
    *,
    max_lengths: Tensor,
    uniforms: Tensor,
    alpha: float | Tensor,
    temperature: float = 1.0,
    keep_top_k: int = 0,
    top_p: float = 1.0,
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
        top_p: draw from the most probable tokens that together have at least this
            probability; 1 for all.
    """
    batch = ops.shape(max_lengths)[0]
    slots = uniforms.shape[1]
    positions = ops.arange(ops.shape(uniforms)[2], dtype="int32")  # [L]
    sentences = ops.arange(batch, dtype="int32")
    # [B, M, 1, M], a sample stays in its slot
    own_slot = ops.eye(slots, dtype="float32")[None, :, None, :]
    own_slot = ops.tile(own_slot, (batch, 1, 1, 1))

    def active(state: SamplingState) -> Tensor:
        """bool [B, M]: samples that get another token."""
        return (state.step < max_lengths[:, None]) & ~state.finished

    def any_active(state: SamplingState) -> Tensor:
        return ops.any(active(state))

    def advance(state: SamplingState) -> SamplingState:
        """Decodes one position; samples that are not active do not change."""
        last = ops.take(state.ids, ops.maximum(state.step - 1, 0), axis=2)  # [B, M]
        past = ops.cast(positions <= state.step, "float32")
        ancestors = own_slot * past[None, None, :, None]
        # [B, M, V]
        logits, cache = decode_step(last, state.step, ancestors, state.cache)
        allowed = logits
        if constrain is not None:
            allowed = constrain(logits, state.ids, state.step, sentences)
        uniform = ops.take(uniforms, state.step, axis=2)
        # [B, M], like those below
        tokens = draw(allowed, uniform, temperature, keep_top_k, top_p)
        chosen = ops.take_along_axis(logits, tokens[:, :, None], axis=2)[:, :, 0]
        log_probs = chosen - ops.logsumexp(logits, axis=-1)
        changes = active(state)
        here = ops.cast(ops.equal(positions, state.step), "int32")
        return SamplingState(
            step=state.step + 1,
            ids=state.ids + ops.where(changes, tokens, 0)[:, :, None] * here,
            log_probs=state.log_probs + ops.where(changes, log_probs, 0.0),
            lengths=state.lengths + ops.cast(changes, "int32"),
            finished=state.finished | (changes & ops.equal(tokens, EOS)),
            cache=cache,
        )

    start = SamplingState(
        step=ops.convert_to_tensor(0, dtype="int32"),
        ids=ops.zeros_like(uniforms, dtype="int32"),
        log_probs=ops.zeros((batch, slots), dtype="float32"),
        lengths=ops.zeros((batch, slots), dtype="int32"),
        finished=ops.zeros((batch, slots), dtype="bool"),
        cache=cache,
    )
    state = while_loop(any_active, advance, start)
    penalty = length_penalty(ops.cast(state.lengths, "float32"), alpha)
    if not penalise_unfinished:
        penalty = ops.where(state.finished, penalty, 1.0)
    scores, order = ops.top_k(state.log_probs / penalty, slots)
    ids = take_slots(state.ids, order)
    return BeamResult(ids, scores, take_slots(state.log_probs, order))


def draw(
    logits: Tensor, uniform: Tensor, temperature: float, keep_top_k: int, top_p: float
) -> Tensor:
    """Tokens int32 [B, M], drawn from softmax(logits [B, M, V] / temperature) with
    random numbers [B, M] from [0, 1).

    If `keep_top_k` is not 0, only that many most probable tokens remain. If `top_p` is
    below 1, only the fewest most probable of these remain whose probabilities add up to
    it. The token drawn is the first, by id, whose cumulative probability exceeds the
    random number.
    """
    logits = logits / temperature
    if keep_top_k:
        largest, _ = ops.top_k(logits, min(keep_top_k, logits.shape[-1]))
        logits = ops.where(logits >= largest[:, :, -1:], logits, FORBIDDEN)
    if top_p < 1.0:
        ordered = -ops.sort(-logits, axis=-1)  # most probable first
        probabilities = ops.softmax(ordered, axis=-1)
        before = ops.cumsum(probabilities, axis=-1) - probabilities
        kept = ops.where(before < top_p, ordered, -FORBIDDEN)
        least = ops.min(kept, axis=-1, keepdims=True)
        logits = ops.where(logits >= least, logits, FORBIDDEN)
    weights = ops.softmax(logits, axis=-1)
    sums = ops.cumsum(weights, axis=-1)
    threshold = uniform[:, :, None] * BELOW_ONE * ops.max(sums, axis=-1, keepdims=True)
    # parallel sums may not be monotonic
    above = (sums > threshold) & (weights > 0)
    # of floats: a GPU has no ArgMax of integers
    first = ops.argmax(ops.cast(above, "float32"), axis=-1)
    return ops.cast(first, "int32")
