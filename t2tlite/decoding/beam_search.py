"""Beam search: a pure function over "tokens -> logits of the next token", in keras.ops alone.

Hypotheses live in M slots of each sentence. When the beam is reordered nothing that the model has cached moves:
`ancestors` records which slot each hypothesis passed through at each position, and the model looks there.
"""

# B batch, M hypotheses of a sentence (beam size), L most positions, V vocabulary

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from keras import ops

from t2tlite.tokens import EOS

NEVER = -1e9  # score of what may not be chosen


class BeamState(NamedTuple):
    """One position of the search, between two steps."""

    step: Any  # int32 scalar: positions done
    live_ids: Any  # int32 [B, M, L]: hypotheses that have not ended, best first
    live_log_probs: Any  # float32 [B, M]: sums of log-probabilities
    ancestors: Any  # float32 [B, M, L, M]: 1 where a hypothesis was in that slot at that position
    ended_ids: Any  # int32 [B, M, L]: the best that have ended, best first, end mark included
    ended_scores: Any  # float32 [B, M]: log-probability / length penalty; NEVER in an unfilled slot
    cache: Any  # the model's


def length_penalty(length: Any, alpha: float) -> Any:
    """((5 + length) / 6)^alpha (Wu et al. 2016, equation 14); the end mark counts as a token."""
    return ((5.0 + ops.cast(length, "float32")) / 6.0) ** alpha


def beam_search(
    decode_step: Callable[[Any, Any, Any, Any], tuple[Any, Any]],
    cache: Any,
    *,
    max_lengths: Any,
    beam_size: int,
    length: Any,
    alpha: float,
    n_best: int = 1,
    penalise_unfinished: bool = True,
) -> tuple[Any, Any]:
    """The sequences of highest log-probability / length penalty that the search finds.

    At each position the 2 M best continuations of the live hypotheses are looked at: those that end compete for the M
    ended slots, the M best others live on. A sentence is done when no live hypothesis can still come among its n
    best, or at its own maximum length. With beam_size 1 this is greedy search: it ends at the first end mark that is
    the most probable token. A sentence of which nothing has ended by its maximum length gets its live hypotheses,
    with scores penalised in the same way.

    Args:
        decode_step: (tokens int32 [B, M], step, ancestors [B, M, L, M], cache) -> (logits [B, M, V], cache).
        cache: what the first step receives; any structure of tensors.
        max_lengths: int32 [B], most tokens of each result, end mark included; at most `length`.
        beam_size: M.
        length: L, a scalar; an int where the search is to be compiled by XLA.
        alpha: exponent of the length penalty; 0 turns it off.
        n_best: how many of the M results must be right; fewer let a search stop sooner.
        penalise_unfinished: False leaves the scores of hypotheses that have not ended log-probabilities, as
            tensor2tensor does.

    Returns:
        ids: int32 [B, M, L], best first, ending with the end mark, padded with 0.
        scores: float32 [B, M]; NEVER marks a slot for which nothing was found.
    """
    batch = ops.shape(max_lengths)[0]
    max_penalty = length_penalty(max_lengths, alpha)  # [B]

    def unfinished(state: BeamState) -> Any:
        """bool [B]: sentences whose n best results may still change."""
        best_possible = state.live_log_probs[:, 0] / max_penalty  # all further tokens certain, at full length
        if beam_size == 1:
            hopeless = state.ended_scores[:, 0] > NEVER / 2
        else:
            hopeless = state.ended_scores[:, n_best - 1] >= best_possible
        return ops.logical_and(ops.logical_not(hopeless), state.step < max_lengths)

    def body(*fields: Any) -> BeamState:
        state = BeamState(*fields)
        active = unfinished(state)  # [B]
        last = ops.take(state.live_ids, ops.maximum(state.step - 1, 0), axis=2)  # [B, M]
        here = ops.cast(ops.equal(ops.arange(length), state.step), "float32")  # [L], 1 at this position
        own_slot = ops.eye(beam_size, dtype="float32")[None, :, None, :]  # [1, M, 1, M]
        ancestors = state.ancestors + own_slot * here[None, None, :, None]  # [B, M, L, M]
        logits, cache = decode_step(last, state.step, ancestors, state.cache)  # [B, M, V]
        tokens, log_probs, slots = _best_continuations(logits, state.live_log_probs, beam_size)  # [B, 2M] each

        ids = _take_slots(state.live_ids, slots) * (1 - ops.cast(here, "int32"))  # [B, 2M, L]
        ids = ids + tokens[:, :, None] * ops.cast(here, "int32")
        ends = ops.equal(tokens, EOS)  # [B, 2M]

        live_log_probs, order = ops.top_k(ops.where(ends, NEVER, log_probs), beam_size)  # [B, M]
        live_ids = _take_slots(ids, order)
        live_ancestors = _take_slots(ancestors, _take_slots(slots, order))

        ended = ops.logical_and(ends, log_probs > NEVER / 2)  # a slot that held nothing has not ended either
        scores = ops.where(ended, log_probs / length_penalty(state.step + 1, alpha), NEVER)  # [B, 2M]
        ended_scores, order = ops.top_k(ops.concatenate([state.ended_scores, scores], axis=1), beam_size)
        ended_ids = _take_slots(ops.concatenate([state.ended_ids, ids], axis=1), order)

        def keep(new: Any, old: Any) -> Any:  # a sentence that is done stays as it is
            shape = (-1,) + (1,) * (len(new.shape) - 1)
            return ops.where(ops.reshape(active, shape), new, old)

        return BeamState(
            step=state.step + 1,
            live_ids=keep(live_ids, state.live_ids),
            live_log_probs=keep(live_log_probs, state.live_log_probs),
            ancestors=keep(live_ancestors, ancestors),
            ended_ids=keep(ended_ids, state.ended_ids),
            ended_scores=keep(ended_scores, state.ended_scores),
            cache=cache,
        )

    first_only = ops.where(ops.arange(beam_size) > 0, NEVER, 0.0)  # at first every slot holds the same hypothesis
    start = BeamState(
        step=ops.convert_to_tensor(0, dtype="int32"),
        live_ids=ops.zeros((batch, beam_size, length), dtype="int32"),
        live_log_probs=ops.tile(ops.cast(first_only, "float32")[None], (batch, 1)),
        ancestors=ops.zeros((batch, beam_size, length, beam_size), dtype="float32"),
        ended_ids=ops.zeros((batch, beam_size, length), dtype="int32"),
        ended_scores=ops.full((batch, beam_size), NEVER, dtype="float32"),
        cache=cache,
    )
    state = ops.while_loop(lambda *fields: ops.any(unfinished(BeamState(*fields))), body, start)
    state = BeamState(*state)
    nothing_ended = state.ended_scores[:, :1] <= NEVER / 2  # [B, 1]
    live_scores = state.live_log_probs / (max_penalty[:, None] if penalise_unfinished else 1.0)  # [B, M]
    live_scores = ops.where(state.live_log_probs <= NEVER / 2, NEVER, live_scores)
    scores = ops.where(nothing_ended, live_scores, state.ended_scores)
    return ops.where(nothing_ended[:, :, None], state.live_ids, state.ended_ids), scores


def _best_continuations(logits: Any, live_log_probs: Any, beam_size: int) -> tuple[Any, Any, Any]:
    """The 2 M best (for greedy search the one best) one-token continuations of a sentence's hypotheses.

    Args:
        logits: [B, M, V].
        live_log_probs: [B, M].

    Returns:
        tokens int32, log_probs float32, slots int32 (which hypothesis each continues), all [B, 2M], best first.
    """
    wanted = 1 if beam_size == 1 else 2 * beam_size
    each = min(wanted, logits.shape[-1])
    values, tokens = ops.top_k(logits, each)  # [B, M, each]
    log_probs = values - ops.logsumexp(logits, axis=-1, keepdims=True) + live_log_probs[:, :, None]
    log_probs, order = ops.top_k(ops.reshape(log_probs, (-1, beam_size * each)), wanted)  # [B, 2M]
    tokens = ops.take_along_axis(ops.reshape(tokens, (-1, beam_size * each)), order, axis=1)
    return ops.cast(tokens, "int32"), log_probs, ops.cast(order // each, "int32")


def _take_slots(x: Any, slots: Any) -> Any:
    """x [B, N, ...] and int [B, K] -> [B, K, ...]: of each sentence, the entries in the named slots."""
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, ...]
    rows = ops.arange(ops.shape(x)[0], dtype="int32")[:, None] * x.shape[1] + slots  # [B, K]
    return ops.take(flat, rows, axis=0)
