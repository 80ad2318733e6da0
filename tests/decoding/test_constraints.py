"""Constraints on beam search and sampling against exhaustive search, and against what
they say in plain Python.
"""

import numpy as np
import pytest
from table_model import BEAM, TableModel

from t2tlite.decoding.constraints import conjunction, forbid_repetition
from t2tlite.decoding.slots import FORBIDDEN, NEVER

# B batch, M hypotheses of a sentence, L maximum length, V vocabulary


@pytest.fixture(scope="module")
def table() -> TableModel:
    return TableModel(sentences=4)


def check(table, constrain, allowed, max_lengths=(4, 4, 4, 4), alpha=0.6):
    """The n-best list is that of exhaustive search over the sequences
    `allowed(sentence, tokens)`, EOS included.
    """
    result = table.search(
        [0, 1, 2, 3], max_lengths, BEAM, alpha, n_best=BEAM, constrain=constrain
    )
    for b, max_length in enumerate(max_lengths):
        expected = []
        for score, tokens in table.exhaustive(b, max_length, alpha):
            if allowed(b, tokens):
                expected.append((score, tokens))
        table.check(result, b, expected)


@pytest.mark.parametrize("tokens", [1, 2, 3])
def test_min_length(table, tokens):
    check(table, conjunction(tokens), lambda b, row: len(row) - 1 >= tokens)


def test_both_and_a_prefix(table):
    """A prefix may have what is otherwise forbidden; a sentence without one is free."""
    prefixes = np.array(
        [[2, 2, 0, 0], [3, 0, 0, 0], [0, 0, 0, 0], [4, 3, 2, 0]], np.int32
    )
    starts = [(2, 2), (3,), (), (4, 3, 2)]

    def allowed(b, tokens):
        *body, _ = tokens
        start = starts[b]
        if tuple(body[: len(start)]) != start or len(body) < 2:
            return False
        return all(
            token not in body[:i] for i, token in enumerate(body) if i >= len(start)
        )

    check(table, conjunction(2, 1, prefixes), allowed, max_lengths=(4, 3, 3, 4))


def test_nothing_is_found_where_nothing_is_allowed(table):
    _, scores, log_probs = table.search(
        [0], [4], BEAM, 0.6, constrain=lambda logits, *_: logits * 0 + FORBIDDEN
    )
    assert (scores == np.float32(NEVER)).all()
    assert (log_probs == np.float32(NEVER)).all()


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_no_repeat_ngram_of_long_sequences(size):
    random = np.random.default_rng(size)
    ids = random.integers(0, 4, (3, 2, 40)).astype(np.int32)
    logits = random.normal(size=(3, 2, 4)).astype(np.float32)
    for step in (0, 1, size - 1, size, 7, 39, 40):
        ids_now = np.where(np.arange(40) < step, ids, 0).astype(np.int32)
        actual = forbid_repetition(size, logits, ids_now, step)
        expected = logits.copy()
        for b, m, v in np.ndindex(logits.shape):
            tokens = tuple(ids[b, m, :step].tolist())
            last = (*tokens, v)[-size:]
            ngrams = {tokens[i : i + size] for i in range(step - size + 1)}
            if last in ngrams:
                expected[b, m, v] = FORBIDDEN
        allowed = expected > FORBIDDEN / 2
        np.testing.assert_array_equal(np.asarray(actual) > FORBIDDEN / 2, allowed)
        np.testing.assert_array_equal(np.asarray(actual)[allowed], expected[allowed])
