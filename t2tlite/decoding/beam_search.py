"""Beam search: a pure function over "tokens -> logits of the next token", in keras.ops alone.

Each sentence has M slots for its alive hypotheses. When the beam is reordered, the cached keys and values stay where
they are: `ancestors` records which slot each hypothesis was in at each position, and attention reads those slots.

Sentences end at different positions, most of them long before the most positions that are allowed. So where shapes may
change, sentences that are done leave the batch whenever they are half of it, and room for more positions is made only
when it is needed, each time as much as there is.
"""

# N sentences still in the batch, B batch, M hypotheses of a sentence (beam size), V vocabulary
# L most positions, R positions that there is room for

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from keras import ops

from t2tlite.decoding.constraints import Constraint
from t2tlite.decoding.length_penalty import length_penalty
from t2tlite.tokens import EOS
from t2tlite.types import DecodingCache, Tensor

NEVER = -1e9  # score of an empty slot
FIRST_ROOM = 8  # positions that there is room for at first
BLOCK = 64  # tokens, in `top_tokens`


class BeamState(NamedTuple):
    """The search between two steps; B is N once sentences have left the batch, R is L where shapes are static."""

    step: Tensor  # int32 scalar: positions decoded
    max_lengths: Tensor  # int32 [B]: most tokens of each sentence's results
    alive_ids: Tensor  # int32 [B, M, L]: hypotheses without an EOS so far, best first
    alive_log_probs: Tensor  # float32 [B, M]: sums of log-probabilities
    ancestors: Tensor  # float32 [B, M, R, M]: 1 if a hypothesis was in that slot at that position
    finished_ids: Tensor  # int32 [B, M, L]: the best finished hypotheses, best first, EOS included
    finished_scores: Tensor  # float32 [B, M]: log-probability / length penalty; NEVER in an empty slot
    finished_log_probs: Tensor  # float32 [B, M]
    cache: DecodingCache  # of the model


class BeamResult(NamedTuple):
    """What a search found, best first."""

    ids: Tensor  # int32 [B, M, L]: ending with EOS, padded with PAD
    scores: Tensor  # float32 [B, M]: log_probs / length penalty; NEVER in an empty slot
    log_probs: Tensor  # float32 [B, M]: log-probabilities (natural) of all tokens, EOS included; NEVER likewise


def beam_search(
    decode_step: Callable[[Tensor, Tensor, Tensor, DecodingCache], tuple[Tensor, DecodingCache]],
    start_decoding: Callable[[int | Tensor], DecodingCache],
    *,
    max_lengths: Tensor,
    beam_size: int,
    length: Tensor,
    alpha: float | Tensor,
    n_best: int | Tensor = 1,
    penalise_unfinished: bool = True,
    constrain: Constraint | None = None,
    resize_cache: Callable[[DecodingCache, Tensor, Tensor], DecodingCache] | None = None,
) -> BeamResult:
    """The sequences of highest log-probability / length penalty that the search finds.

    At each position the 2 M best continuations of the alive hypotheses are considered: those that end in EOS compete
    for the M slots of finished hypotheses, the M best others stay alive. A sentence is done when no alive hypothesis
    can still enter its n-best list, or at its own maximum length. With beam_size 1 this is greedy search: it ends at
    the first position where EOS is the most probable token. A sentence without a finished hypothesis at its maximum
    length gets its alive hypotheses, their scores penalised in the same way.

    Args:
        decode_step: (tokens int32 [B, M], step, ancestors [B, M, R, M], cache) -> (logits [B, M, V], cache).
        start_decoding: positions -> the cache that the first step receives, with room for so many; any nest of tensors.
        max_lengths: int32 [B], most tokens of each result, EOS included; at most `length`.
        beam_size: M.
        length: L, a scalar; an int if the search is compiled by XLA.
        alpha: exponent of the length penalty; 0 for none.
        n_best: how many of the M results must be the final ones; with fewer, a search stops sooner.
        penalise_unfinished: whether the scores of unfinished hypotheses have the length penalty; tensor2tensor's
            are log-probabilities.
        constrain: lowers the logits of tokens that must not be chosen; log-probabilities are those without it.
        resize_cache: (cache, int32 [N], positions) -> the cache of these sentences with room for so many positions.
            If given, sentences that are done leave the batch, and there is room for FIRST_ROOM positions at first;
            shapes then change, so that XLA cannot compile the search, and `constrain` must treat all sentences alike.
    """
    batch = ops.shape(max_lengths)[0]

    def unfinished(state: BeamState) -> Tensor:
        """bool [B]: sentences whose n best results may still change."""
        max_penalty = length_penalty(ops.cast(state.max_lengths, "float32"), alpha)
        best_possible = state.alive_log_probs[:, 0] / max_penalty  # all further tokens certain, at full length
        if beam_size == 1:
            hopeless = state.finished_scores[:, 0] > NEVER / 2
        else:
            hopeless = state.finished_scores[:, n_best - 1] >= best_possible
        return ops.logical_and(ops.logical_not(hopeless), state.step < state.max_lengths)

    def body(*fields: Tensor) -> BeamState:
        state = BeamState(*fields)
        active = unfinished(state)  # [B]
        last = ops.take(state.alive_ids, ops.maximum(state.step - 1, 0), axis=2)  # [B, M]
        here = ops.cast(ops.equal(ops.arange(length), state.step), "float32")  # [L], 1 at this position
        own_slot = ops.eye(beam_size, dtype="float32")[None, :, None, :]  # [1, M, 1, M]
        in_room = here[: ops.shape(state.ancestors)[2]]  # [R]
        ancestors = state.ancestors + own_slot * in_room[None, None, :, None]  # [B, M, R, M]
        logits, cache = decode_step(last, state.step, ancestors, state.cache)  # [B, M, V]
        allowed = None if constrain is None else constrain(logits, state.alive_ids, state.step)  # [B, M, V]
        tokens, log_probs, slots = _best_continuations(logits, allowed, state.alive_log_probs, beam_size)  # [B, 2M]

        ids = take_slots(state.alive_ids, slots) * (1 - ops.cast(here, "int32"))  # [B, 2M, L]
        ids = ids + tokens[:, :, None] * ops.cast(here, "int32")
        ends = ops.equal(tokens, EOS)  # [B, 2M]

        alive_log_probs, order = ops.top_k(ops.where(ends, NEVER, log_probs), beam_size)  # [B, M]
        alive_ids = take_slots(ids, order)
        alive_ancestors = take_slots(ancestors, take_slots(slots, order))

        finished = ops.logical_and(ends, log_probs > NEVER / 2)  # an empty slot is not finished
        scores = ops.where(
            finished, log_probs / length_penalty(ops.cast(state.step + 1, "float32"), alpha), NEVER
        )  # [B, 2M]
        finished_scores, order = ops.top_k(ops.concatenate([state.finished_scores, scores], axis=1), beam_size)
        finished_ids = take_slots(ops.concatenate([state.finished_ids, ids], axis=1), order)
        finished_log_probs = take_slots(ops.concatenate([state.finished_log_probs, log_probs], axis=1), order)

        def keep(new: Tensor, old: Tensor) -> Tensor:  # a sentence that is done does not change
            shape = (-1,) + (1,) * (len(new.shape) - 1)
            return ops.where(ops.reshape(active, shape), new, old)

        return BeamState(
            step=state.step + 1,
            max_lengths=state.max_lengths,
            alive_ids=keep(alive_ids, state.alive_ids),
            alive_log_probs=keep(alive_log_probs, state.alive_log_probs),
            ancestors=keep(alive_ancestors, ancestors),
            finished_ids=keep(finished_ids, state.finished_ids),
            finished_scores=keep(finished_scores, state.finished_scores),
            finished_log_probs=keep(finished_log_probs, state.finished_log_probs),
            cache=cache,
        )

    room = length if resize_cache is None else ops.minimum(FIRST_ROOM, length)
    first_only = ops.where(ops.arange(beam_size) > 0, NEVER, 0.0)  # at first every slot holds the same hypothesis
    start = BeamState(
        step=ops.convert_to_tensor(0, dtype="int32"),
        max_lengths=ops.convert_to_tensor(max_lengths, dtype="int32"),
        alive_ids=ops.zeros((batch, beam_size, length), dtype="int32"),
        alive_log_probs=ops.tile(ops.cast(first_only, "float32")[None], (batch, 1)),
        ancestors=ops.zeros((batch, beam_size, room, beam_size), dtype="float32"),
        finished_ids=ops.zeros((batch, beam_size, length), dtype="int32"),
        finished_scores=ops.full((batch, beam_size), NEVER, dtype="float32"),
        finished_log_probs=ops.full((batch, beam_size), NEVER, dtype="float32"),
        cache=start_decoding(room),
    )
    if resize_cache is None:
        state = _while(lambda state: ops.any(unfinished(state)), body, start)
        found = _hypotheses(state)
    else:
        found = _search_and_resize(unfinished, body, start, resize_cache)
    return _result(found, length_penalty(ops.cast(max_lengths, "float32"), alpha), penalise_unfinished)


class _Hypotheses(NamedTuple):
    """The fields of a BeamState that results are made of."""

    alive_ids: Tensor
    alive_log_probs: Tensor
    finished_ids: Tensor
    finished_scores: Tensor
    finished_log_probs: Tensor


def _hypotheses(state: BeamState) -> _Hypotheses:
    return _Hypotheses(*(getattr(state, name) for name in _Hypotheses._fields))


def _while(condition: Callable[[BeamState], Tensor], body: Callable[..., BeamState], start: BeamState) -> BeamState:
    return BeamState(*ops.while_loop(lambda *fields: condition(BeamState(*fields)), body, start))


def _search_and_resize(
    unfinished: Callable[[BeamState], Tensor],
    body: Callable[..., BeamState],
    start: BeamState,
    resize_cache: Callable[[DecodingCache, Tensor, Tensor], DecodingCache],
) -> _Hypotheses:
    """The hypotheses of all sentences. Those that are done leave the batch; the room for positions grows."""

    def fits(state: BeamState) -> Tensor:
        """Whether most of the batch is unfinished, and there is room for a position."""
        waiting = ops.sum(ops.cast(unfinished(state), "int32"))
        mostly_unfinished = 2 * waiting > ops.shape(state.max_lengths)[0]
        return ops.logical_and(mostly_unfinished, state.step < ops.shape(state.ancestors)[2])

    def search(sentences: Tensor, fields: tuple[Tensor, ...], found: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """`sentences`, int32 [N]: which sentences are in the batch. `found`: what there is of all, [B, ...]."""
        state = _while(fits, body, BeamState(*fields))
        place = sentences[:, None]
        updated = [ops.scatter_update(old, place, new) for old, new in zip(found, _hypotheses(state), strict=True)]
        left = ops.cast(ops.nonzero(unfinished(state))[0], "int32")
        batched = {name: ops.take(getattr(state, name), left, axis=0) for name in BeamState._fields[1:-1]}
        room, length = ops.shape(state.ancestors)[2], ops.shape(state.alive_ids)[2]
        more = ops.where(state.step < room, 0, ops.minimum(room, length - room))
        batched["ancestors"] = ops.pad(batched["ancestors"], ((0, 0), (0, 0), (0, more), (0, 0)))
        state = state._replace(cache=resize_cache(state.cache, left, room + more), **batched)
        return ops.take(sentences, left, axis=0), tuple(state), tuple(updated)

    everyone = ops.arange(ops.shape(start.max_lengths)[0], dtype="int32")
    loop = everyone, tuple(start), tuple(_hypotheses(start))
    return _Hypotheses(*ops.while_loop(lambda sentences, *_: ops.size(sentences) > 0, search, loop)[2])


def _result(found: _Hypotheses, max_penalty: Tensor, penalise_unfinished: bool) -> BeamResult:
    """The finished hypotheses of each sentence, or if there are none those that are alive; max_penalty is [B]."""
    none_finished = found.finished_scores[:, :1] <= NEVER / 2  # [B, 1]
    alive_scores = found.alive_log_probs / (max_penalty[:, None] if penalise_unfinished else 1.0)  # [B, M]
    alive_scores = ops.where(found.alive_log_probs <= NEVER / 2, NEVER, alive_scores)
    scores = ops.where(none_finished, alive_scores, found.finished_scores)
    log_probs = ops.where(none_finished, found.alive_log_probs, found.finished_log_probs)
    return BeamResult(
        ids=ops.where(none_finished[:, :, None], found.alive_ids, found.finished_ids),
        scores=scores,
        log_probs=ops.where(scores <= NEVER / 2, NEVER, log_probs),
    )


def _best_continuations(
    logits: Tensor, allowed: Tensor | None, alive_log_probs: Tensor, beam_size: int
) -> tuple[Tensor, Tensor, Tensor]:
    """The 2 M best (for greedy search the one best) one-token continuations of a sentence's hypotheses.

    From logits [B, M, V], what a constraint made of them, if there is one, and alive_log_probs [B, M] to tokens int32,
    log_probs float32, slots int32 (which hypothesis each continues), all [B, 2M], best first.
    """
    wanted = 1 if beam_size == 1 else 2 * beam_size
    each = min(wanted, logits.shape[-1])
    values, tokens = top_tokens(logits if allowed is None else allowed, each)  # [B, M, each]
    largest = values[:, :, :1] if allowed is None else ops.max(logits, axis=-1, keepdims=True)
    log_sum = ops.log(ops.sum(ops.exp(logits - largest), axis=-1, keepdims=True))  # less the largest logit
    log_probs = values - largest - log_sum + alive_log_probs[:, :, None]
    log_probs, order = ops.top_k(ops.reshape(log_probs, (-1, beam_size * each)), wanted)  # [B, 2M]
    tokens = ops.take_along_axis(ops.reshape(tokens, (-1, beam_size * each)), order, axis=1)
    return tokens, log_probs, ops.cast(order // each, "int32")


def top_tokens(logits: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """What `ops.top_k` returns, in a fraction of its time: logits [B, M, V] -> values and tokens int32 [B, M, count].

    The `count` largest numbers are in the `count` blocks whose largest numbers are the largest, and to find these takes
    one pass. Of equal numbers the first are returned.
    """
    size = logits.shape[-1]
    if size < 4 * count * BLOCK:
        values, tokens = ops.top_k(logits, count)
        return values, ops.cast(tokens, "int32")
    beam_size, blocks = logits.shape[1], -(-size // BLOCK)
    if size % BLOCK:
        logits = ops.pad(logits, ((0, 0), (0, 0), (0, blocks * BLOCK - size)), constant_values=-float("inf"))
    rows = ops.reshape(logits, (-1, blocks, BLOCK))  # [B * M, blocks, BLOCK]
    _, chosen = ops.top_k(ops.max(rows, axis=2), count)
    chosen = ops.sort(ops.cast(chosen, "int32"), axis=1)  # [B * M, count], the first block first
    values, places = ops.top_k(ops.reshape(take_slots(rows, chosen), (-1, count * BLOCK)), count)
    places = ops.cast(places, "int32")
    tokens = ops.take_along_axis(chosen, places // BLOCK, axis=1) * BLOCK + places % BLOCK
    return ops.reshape(values, (-1, beam_size, count)), ops.reshape(tokens, (-1, beam_size, count))


def take_slots(x: Tensor, slots: Tensor) -> Tensor:
    """x [B, N, ...] and int [B, K] -> [B, K, ...]: of each sentence, the entries in the named slots."""
    flat = ops.reshape(x, (-1, *ops.shape(x)[2:]))  # [B * N, ...]
    rows = ops.arange(ops.shape(x)[0], dtype="int32")[:, None] * x.shape[1] + slots  # [B, K]
    return ops.take(flat, rows, axis=0)
