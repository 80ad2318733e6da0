"""Beam search in which every translation has certain terms: sequences of tokens.

The slots of a beam are shared among banks, as in dynamic beam allocation (Post and
Vilar, 2018; vectorised: Hu et al., 2019). The bank of a hypothesis is the number of
tokens of terms that it has. Hypotheses of a bank compete with each other, so that a
term, which the model may find improbable, moves to its most probable place. How far the
terms are is computed from the ids so far: a search needs no state for it.
"""

# B batch, N sentences still in it, M hypotheses of a sentence, L maximum length, V
# vocabulary, K terms of a sentence, P tokens of a term, C continuations

from keras import ops

from t2tlite.decoding.beam_search import BeamState, Choice
from t2tlite.decoding.constraints import put
from t2tlite.decoding.slots import (
    FORBIDDEN,
    NEVER,
    as_float,
    as_int,
    indices,
    is_filled,
    take_slots,
    top_tokens,
)
from t2tlite.types import EOS, PAD, Tensor

# Of hypotheses that are equally good in their banks, one has so much less
# log-probability for each token of a term that it has.
WORTH = 4.0
# with more tokens of terms, hypotheses share a bank
LAST_BANK = 63
# more than any difference of log-probabilities
TURN = 1e4


def term_choice(
    terms: Tensor | None, beam_size: int, prefixes: Tensor | None = None
) -> Choice | None:
    """Chooses the continuations of hypotheses that shall have all terms of their
    sentence; None without terms.

    The next token of each term is a continuation of each hypothesis. Until all terms
    are there, EOS is forbidden; where it would be the best token, only a term may
    follow. A term may have what a constraint forbids, except within a prefix.

    Args:
        terms: int32 [B, K, P], those of each sentence; PAD behind each term, and for
            none.
        beam_size: M.
        prefixes: int32 [B, L], as of `conjunction`.
    """
    if terms is None:
        return None
    # for greedy search the single best
    wanted = 1 if beam_size == 1 else 2 * beam_size
    most = ops.minimum(ops.size(terms[0]), LAST_BANK)

    def choose(
        state: BeamState, logits: Tensor, allowed: Tensor | None
    ) -> tuple[Tensor, ...]:
        if allowed is None:
            allowed = logits
        alive = state.hypotheses
        of_sentences = ops.take(terms, state.sentences, axis=0)
        due, progress, banks = _progress(of_sentences, alive.alive_ids, state.step)
        is_open = due > PAD  # [N, M, K]
        if prefixes is not None:
            forced = ops.take(ops.take(prefixes, state.step, axis=1), state.sentences)
            is_open &= ops.equal(forced, PAD)[:, None, None]
        is_due = put(ops.zeros_like(logits), due, as_float(is_open)) > 0
        is_end = ops.equal(indices(logits.shape[2]), EOS)
        allowed = ops.where(is_due, logits, allowed)
        largest = ops.max(allowed, axis=2, keepdims=True)
        is_end |= allowed[:, :, EOS : EOS + 1] >= largest
        is_forbidden = ops.any(is_open, axis=2, keepdims=True) & is_end & ~is_due
        allowed = ops.where(is_forbidden, FORBIDDEN, allowed)

        # those of each hypothesis, [N, M, each]
        each = min(4 * beam_size, logits.shape[2])
        _, tokens = top_tokens(allowed + TURN * as_float(is_due), each)
        values = ops.take_along_axis(allowed, tokens, axis=2)
        # as in `_best_continuations`, so that other sentences have the same values
        largest = ops.max(logits, axis=2, keepdims=True)
        log_sum = ops.log(ops.sum(ops.exp(logits - largest), axis=2, keepdims=True))
        log_probs = values - largest - log_sum + alive.alive_log_probs[:, :, None]
        is_next = ops.equal(tokens[:, :, :, None], due[:, :, None])
        is_next &= is_open[:, :, None]  # [N, M, each, K]
        longest = ops.max(ops.where(is_next, progress[:, :, None] + 1, 0), axis=3)
        banks = banks[:, :, None] + longest

        # those of each sentence, [N, C], most probable first
        count = beam_size * each
        flat = (-1, count)
        log_probs, order = ops.top_k(ops.reshape(log_probs, flat), count)
        banks = take_slots(ops.reshape(banks, flat), order)
        priorities = _priorities(log_probs, banks, most)
        priorities, best = ops.top_k(priorities, wanted)  # [N, 2M]
        log_probs = take_slots(log_probs, best)
        order = take_slots(order, best)
        tokens = take_slots(ops.reshape(tokens, flat), order)
        return tokens, log_probs, as_int(order // each), priorities

    return choose


def _priorities(log_probs: Tensor, banks: Tensor, most: Tensor) -> Tensor:
    """Of continuations [N, C], most probable first: the best of each bank come before
    the second best. Those from `most` on are one bank.
    """
    joined = ops.minimum(banks, most)
    members = ops.equal(joined[:, :, None], indices(most + 1))  # [N, C, most + 1]
    ranks = ops.cumsum(as_int(members), axis=1)
    turns = ops.sum(ops.where(members, ranks, 0), axis=2)
    priorities = log_probs + WORTH * as_float(banks) - TURN * as_float(turns)
    return ops.where(is_filled(log_probs), priorities, NEVER)


def _progress(terms: Tensor, ids: Tensor, step: Tensor) -> tuple[Tensor, ...]:
    """The progress of hypotheses with ids int32 [N, M, L] in terms [N, K, P].

    Returns int32:
        [N, M, K], the next token of each term, PAD of those that are complete,
        [N, M, K], the number of tokens of each term at the end of the ids,
        [N, M], the number of tokens of all complete terms.
    """
    terms = terms[:, None]  # [N, 1, K, P]
    places = indices(ops.shape(ids)[2])
    size = ops.shape(terms)[3]
    # behind the last token all ids are PAD
    windows = places[:, None] + indices(size)
    windows = ops.take(ids, ops.minimum(windows, places[-1]), axis=2)  # [N, M, L, P]
    expected = ops.where(terms > PAD, terms, -1)[:, :, :, None]
    differs = ops.not_equal(windows[:, :, None], expected)
    # the first tokens of each term, from each place on, [N, M, K, L]
    same = ops.min(ops.where(differs, indices(size), size), axis=4)
    lengths = ops.sum(as_int(terms > PAD), axis=3)  # [N, 1, K]
    is_complete = ops.any(ops.equal(same, lengths[:, :, :, None]), axis=3)
    is_last = ops.equal(places + same, step)
    progress = ops.max(ops.where(is_last, same, 0), axis=3)
    due = ops.take_along_axis(terms, progress[:, :, :, None], axis=3)[:, :, :, 0]
    due = ops.where(is_complete, PAD, due)
    complete = ops.sum(ops.where(is_complete, lengths, 0), axis=2)
    return due, progress, complete
