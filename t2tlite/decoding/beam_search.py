"""Beam search: a pure function over "tokens -> logits of the next token", in keras.ops
alone.

Each sentence has M slots for its alive hypotheses. When the beam is reordered, cached
keys and values stay where they are: `ancestors` records which slot each hypothesis was
in at each position, and attention reads those.

Most sentences end long before their maximum length. So where shapes may change,
sentences that are done leave the batch once they are half of it, and the cache begins
small and is doubled when it is full.
"""

# N sentences still in the batch, B batch, M hypotheses of a sentence (beam size), V
# vocabulary, L maximum length, R capacity of the cache

import dataclasses
from collections.abc import Callable
from typing import NamedTuple

from keras import ops

from t2tlite.decoding.rules import length_penalty
from t2tlite.decoding.slots import (
    NEVER,
    BeamResult,
    Constraint,
    DecodeStep,
    as_float,
    as_int,
    indices,
    is_filled,
    take_slots,
    top_tokens,
    while_loop,
)
from t2tlite.types import EOS, DecodingCache, Tensor

FIRST_CAPACITY = 8  # positions

# (cache, int32 [N], capacity) -> the cache of these sentences with this capacity
ResizeCache = Callable[..., DecodingCache]
# (state, logits and constrained logits [N, M, V]) -> tokens, log-probabilities, slots
# and priorities of the continuations to consider, [N, 2M]
Choice = Callable[..., tuple[Tensor, ...]]


class Hypotheses(NamedTuple):
    """The hypotheses of each sentence, best first. An empty slot has the score or
    log-probability NEVER.

    Attributes:
        alive_ids: int32 [B, M, L], without an EOS so far.
        alive_log_probs: float32 [B, M], sums of log-probabilities.
        finished_ids: int32 [B, M, L], EOS included.
        finished_scores: float32 [B, M], log-probability / length penalty.
        finished_log_probs: float32 [B, M].
    """

    alive_ids: Tensor
    alive_log_probs: Tensor
    finished_ids: Tensor
    finished_scores: Tensor
    finished_log_probs: Tensor


class BeamState(NamedTuple):
    """The search between two steps; once sentences have left, B is N. R is L where
    shapes are static.

    Attributes:
        step: int32 scalar, positions decoded.
        sentences: int32 [B], which of those given to the search they are.
        max_lengths: int32 [B], of the results of each sentence, in tokens.
        hypotheses: those of the sentences.
        ancestors: float32 [B, M, R, M], 1 if a hypothesis was in that slot at that
            position.
        cache: of the model.
    """

    step: Tensor
    sentences: Tensor
    max_lengths: Tensor
    hypotheses: Hypotheses
    ancestors: Tensor
    cache: DecodingCache


def beam_search(
    decode_step: DecodeStep,
    start_decoding: Callable[[Tensor], DecodingCache],
    *,
    max_lengths: Tensor,
    beam_size: int,
    length: Tensor,
    alpha: Tensor,
    n_best: Tensor = 1,
    penalise_unfinished: bool = True,
    constrain: Constraint | None = None,
    choose: Choice | None = None,
    resize_cache: ResizeCache | None = None,
) -> BeamResult:
    """The sequences of highest log-probability / length penalty that the search finds.

    At each position the 2 M best continuations of the alive hypotheses are considered:
    those with EOS compete for the M slots of finished hypotheses, the M best others
    stay alive. A sentence is done at its own maximum length, or when no alive
    hypothesis can still enter its n-best list. With beam_size 1 this is greedy search,
    which ends where EOS is the most probable token. A sentence without a finished
    hypothesis gets its alive ones, their scores penalised in the same way.

    Args:
        decode_step: computes the logits of the next token of each hypothesis.
        start_decoding: capacity -> the cache that the first step receives; any nest of
            tensors.
        max_lengths: int32 [B], of each result in tokens, EOS included; at most
            `length`.
        beam_size: M.
        length: L, a scalar; an int if the search is compiled by XLA.
        alpha: exponent of the length penalty, a scalar; 0 for none.
        n_best: a scalar, how many of the M results must be the final ones; with fewer,
            a search stops sooner.
        penalise_unfinished: whether unfinished hypotheses have the length penalty;
            tensor2tensor's have not.
        constrain: lowers the logits of tokens that must not be chosen;
            log-probabilities are those without it.
        choose: chooses the continuations to consider, by default the best ones, and
            gives each a priority, by which hypotheses stay alive.
        resize_cache: selects sentences of a cache, and enlarges it. If given, sentences
            that are done leave the batch, and the cache begins with FIRST_CAPACITY. XLA
            cannot compile these changing shapes.
    """
    search = _BeamSearch(
        decode_step, beam_size, length, alpha, n_best, constrain, choose
    )
    max_lengths = ops.convert_to_tensor(max_lengths, dtype="int32")
    capacity = length
    if resize_cache:
        capacity = ops.minimum(FIRST_CAPACITY, length)
    start = search.start(max_lengths, capacity, start_decoding(capacity))
    if resize_cache:
        hypotheses = search.run_and_resize(start, resize_cache)
    else:
        hypotheses = while_loop(search.any_unfinished, search.advance, start).hypotheses
    penalty = 1.0
    if penalise_unfinished:
        penalty = length_penalty(as_float(max_lengths), alpha)[:, None]
    return _result(hypotheses, penalty)


@dataclasses.dataclass(frozen=True, eq=False)
class _BeamSearch:
    """The steps of a search; the fields are arguments of `beam_search`."""

    decode_step: DecodeStep
    beam_size: int
    length: Tensor
    alpha: Tensor
    n_best: Tensor
    constrain: Constraint | None
    choose: Choice | None

    def start(
        self,
        max_lengths: Tensor,
        capacity: Tensor,
        cache: DecodingCache,
    ) -> BeamState:
        """The state before the first step: equal empty hypotheses, all but one with
        score NEVER.
        """
        batch = ops.shape(max_lengths)[0]
        size = self.beam_size
        no_ids = ops.zeros((batch, size, self.length), dtype="int32")
        no_scores = ops.full((batch, size), NEVER, dtype="float32")
        first_only = as_float(indices(size)[None] > 0) * NEVER  # [1, M]
        hypotheses = Hypotheses(
            alive_ids=no_ids,
            alive_log_probs=ops.zeros_like(no_scores) + first_only,
            finished_ids=no_ids,
            finished_scores=no_scores,
            finished_log_probs=no_scores,
        )
        return BeamState(
            step=ops.convert_to_tensor(0, dtype="int32"),
            sentences=indices(batch),
            max_lengths=max_lengths,
            hypotheses=hypotheses,
            ancestors=ops.zeros((batch, size, capacity, size), dtype="float32"),
            cache=cache,
        )

    def unfinished(self, state: BeamState) -> Tensor:
        """bool [B]: sentences whose n best results may still change."""
        scores = state.hypotheses.finished_scores
        if self.beam_size == 1:
            is_final = is_filled(scores[:, 0])
        else:
            best = ops.top_k(state.hypotheses.alive_log_probs, 1)[0][:, 0]
            # with all further tokens certain
            longest = as_float(state.max_lengths)
            best_possible = best / length_penalty(longest, self.alpha)
            is_final = scores[:, self.n_best - 1] >= best_possible
        return ~is_final & (state.step < state.max_lengths)

    def any_unfinished(self, state: BeamState) -> Tensor:
        return ops.any(self.unfinished(state))

    def advance(self, state: BeamState) -> BeamState:
        """Decodes one position; hypotheses of sentences that are done do not change."""
        active = self.unfinished(state)  # [B]
        before = ops.maximum(state.step - 1, 0)
        last = ops.take(state.hypotheses.alive_ids, before, axis=2)  # [B, M]
        here = ops.equal(indices(self.length), state.step)  # [L]
        in_cache = as_float(here)[: ops.shape(state.ancestors)[2]]  # [R]
        own_slot = ops.eye(self.beam_size, dtype="float32")
        added = own_slot[None, :, None, :] * in_cache[None, None, :, None]
        ancestors = state.ancestors + added  # [B, M, R, M]
        logits, cache = self.decode_step(last, state.step, ancestors, state.cache)
        hypotheses, parents = self._continue(state, logits, as_int(here))
        # one sentence is active while the loop runs
        if not _is_single(state):
            hypotheses = _where(active, hypotheses, state.hypotheses)
        return state._replace(
            step=state.step + 1,
            hypotheses=hypotheses,
            ancestors=take_slots(ancestors, parents),
            cache=cache,
        )

    def _continue(
        self,
        state: BeamState,
        logits: Tensor,
        here: Tensor,
    ) -> tuple[Hypotheses, Tensor]:
        """The hypotheses with one more token, and the slots that the alive ones were
        in, int32 [B, M].

        `logits` [B, M, V] are those of position `state.step`, at which `here`, int32
        [L], is 1.
        """
        old = state.hypotheses
        allowed = None
        if self.constrain:
            allowed = self.constrain(logits, old.alive_ids, state.step, state.sentences)
        # [B, 2M]
        if self.choose:
            tokens, log_probs, slots, priorities = self.choose(state, logits, allowed)
        else:
            tokens, log_probs, slots = _best_continuations(
                logits, allowed, old.alive_log_probs, self.beam_size
            )
        ids = take_slots(old.alive_ids, slots) * (1 - here)  # [B, 2M, L]
        ids = ids + tokens[:, :, None] * here
        is_end = ops.equal(tokens, EOS)  # [B, 2M]
        unended = ops.where(is_end, NEVER, log_probs)
        alive_log_probs, alive = ops.top_k(unended, self.beam_size)  # [B, M]
        if self.choose:
            priorities = ops.where(is_end, NEVER, priorities)
            _, alive = ops.top_k(priorities, self.beam_size)
            alive_log_probs = take_slots(unended, alive)

        is_finished = is_end & is_filled(log_probs)
        length = as_float(state.step + 1)
        scores = log_probs / length_penalty(length, self.alpha)
        scores = ops.where(is_finished, scores, NEVER)  # [B, 2M]
        # [B, 3M], like those below
        scores = ops.concatenate([old.finished_scores, scores], axis=1)
        finished_scores, finished = ops.top_k(scores, self.beam_size)  # [B, M]
        all_ids = ops.concatenate([old.finished_ids, ids], axis=1)
        log_probs = ops.concatenate([old.finished_log_probs, log_probs], axis=1)
        continued = Hypotheses(
            alive_ids=take_slots(ids, alive),
            alive_log_probs=alive_log_probs,
            finished_ids=take_slots(all_ids, finished),
            finished_scores=finished_scores,
            finished_log_probs=take_slots(log_probs, finished),
        )
        return continued, take_slots(slots, alive)

    def run_and_resize(self, start: BeamState, resize: ResizeCache) -> Hypotheses:
        """The hypotheses of all sentences. Those that are done leave the batch; the
        capacity grows.
        """

        def fits(state: BeamState) -> Tensor:
            """Whether most of the batch is unfinished, and the cache is not full."""
            waiting = ops.sum(as_int(self.unfinished(state)))
            mostly_unfinished = 2 * waiting > ops.shape(state.max_lengths)[0]
            has_room = state.step < ops.shape(state.ancestors)[2]
            return mostly_unfinished & has_room

        def search_and_shrink(
            state: BeamState, results: Hypotheses
        ) -> tuple[BeamState, Hypotheses]:
            """`results` [B, ...] are those of all sentences."""
            state = while_loop(fits, self.advance, state)
            rows = state.sentences[:, None]
            # that of a single sentence
            left = ops.zeros_like(state.sentences)
            if not _is_single(state):
                left = as_int(ops.nonzero(self.unfinished(state))[0])
            updated = []
            for old, new in zip(results, state.hypotheses, strict=True):
                updated.append(ops.scatter_update(old, rows, new))

            def of_left(x: Tensor) -> Tensor:
                return ops.take(x, left, axis=0)

            capacity = ops.shape(state.ancestors)[2]
            doubled = ops.minimum(capacity, self.length - capacity)
            added = ops.where(state.step < capacity, 0, doubled)
            growth = ((0, 0), (0, 0), (0, added), (0, 0))
            state = BeamState(
                step=state.step,
                sentences=of_left(state.sentences),
                max_lengths=of_left(state.max_lengths),
                hypotheses=Hypotheses(*map(of_left, state.hypotheses)),
                ancestors=ops.pad(of_left(state.ancestors), growth),
                cache=resize(state.cache, left, capacity + added),
            )
            return state, Hypotheses(*updated)

        # the state, and the results of all sentences
        loop = start, start.hypotheses
        return ops.while_loop(
            lambda state, results: self.any_unfinished(state), search_and_shrink, loop
        )[1]


def _is_single(state: BeamState) -> bool:
    """Whether it is known without computing that the batch is one sentence."""
    return state.max_lengths.shape[0] == 1


def _where(active: Tensor, new: Hypotheses, old: Hypotheses) -> Hypotheses:
    """`new` of the sentences that are active, bool [B], and `old` of the others."""
    chosen = []
    for these, others in zip(new, old, strict=True):
        shape = (-1,) + (1,) * (len(these.shape) - 1)
        chosen.append(ops.where(ops.reshape(active, shape), these, others))
    return Hypotheses(*chosen)


def _result(hypotheses: Hypotheses, penalty: Tensor) -> BeamResult:
    """The finished hypotheses of each sentence, or if there are none the alive ones,
    which have this length penalty, [B, 1].
    """
    alive_ids, alive_log_probs, ids, scores, log_probs = hypotheses
    alive_scores = alive_log_probs / penalty  # [B, M]
    alive_scores = ops.where(is_filled(alive_log_probs), alive_scores, NEVER)
    has_finished = is_filled(scores[:, :1])  # [B, 1]
    ids = ops.where(has_finished[:, :, None], ids, alive_ids)
    scores = ops.where(has_finished, scores, alive_scores)
    log_probs = ops.where(has_finished, log_probs, alive_log_probs)
    log_probs = ops.where(is_filled(scores), log_probs, NEVER)
    return BeamResult(ids, scores, log_probs)


def _best_continuations(
    logits: Tensor,
    allowed: Tensor | None,
    alive_log_probs: Tensor,
    beam_size: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """The 2 M best (for greedy search the single best) one-token continuations of a
    sentence's hypotheses.

    From logits [B, M, V], the constrained logits, if there is a constraint, and
    alive_log_probs [B, M] to tokens int32, log_probs float32, slots int32 (which
    hypothesis each continues), all [B, 2M], best first.
    """
    wanted = 1 if beam_size == 1 else 2 * beam_size
    each = min(wanted, logits.shape[-1])
    if allowed is None:
        values, tokens = top_tokens(logits, each)  # [B, M, each]
        largest = values[:, :, :1]
    else:
        values, tokens = top_tokens(allowed, each)
        largest = ops.max(logits, axis=-1, keepdims=True)
    # less the largest logit
    log_sum = ops.log(ops.sum(ops.exp(logits - largest), axis=-1, keepdims=True))
    log_probs = values - largest - log_sum + alive_log_probs[:, :, None]
    flat = (-1, beam_size * each)
    log_probs, order = ops.top_k(ops.reshape(log_probs, flat), wanted)  # [B, 2M]
    tokens = ops.take_along_axis(ops.reshape(tokens, flat), order, axis=1)
    return tokens, log_probs, as_int(order // each)
