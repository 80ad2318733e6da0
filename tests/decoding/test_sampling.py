"""Sampling against a loop in NumPy, token by token, and against the distribution it
draws from.
"""

import numpy as np
import pytest
from numpy_softmax import softmax
from table_model import EOS, LENGTH, VOCAB, TableModel, padded

from t2tlite.decoding.constraints import conjunction
from t2tlite.decoding.sampling import draw, sample

# B batch, M samples of each sentence, L maximum length, V vocabulary

SAMPLES = 6
OPTIONS = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0, "keep_top_k": 2},
    {"keep_top_k": 1},
    {"keep_top_k": 99},
]


def distribution(logits, temperature=1.0, keep_top_k=0, banned=()):
    """Probabilities [V]: of the most probable tokens, made to add up to one."""
    p = softmax(np.asarray(logits) / temperature)
    p[list(banned)] = 0
    order = np.argsort(-p)
    if keep_top_k:
        p[order[keep_top_k:]] = 0
    return p / p.sum()


@pytest.fixture(scope="module")
def table() -> TableModel:
    return TableModel(sentences=4, seed=3)


def run(table, sentences, max_lengths, uniforms, **options):
    slots = np.zeros((len(sentences), LENGTH, uniforms.shape[1]), np.int32)
    result = sample(
        table.steps(sentences),
        slots,
        max_lengths=np.array(max_lengths, np.int32),
        uniforms=uniforms.astype(np.float32),
        **{"alpha": 0.6, **options},
    )
    return tuple(map(np.asarray, result))


def expected(
    table, b, max_length, uniforms, banned=lambda tokens: (), start=(), **options
):
    """The tokens that each row of random numbers draws from sentence `b`."""
    for row in uniforms:
        tokens: tuple[int, ...] = ()
        while len(tokens) < max_length and EOS not in tokens:
            if len(tokens) < len(start):
                tokens = (*tokens, start[len(tokens)])
                continue
            p = distribution(table.logits(b, tokens), banned=banned(tokens), **options)
            tokens = (*tokens, int((np.cumsum(p) <= row[len(tokens)]).sum()))
        yield tokens


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("penalise", [True, False])
def test_equals_a_loop_in_numpy(table, options, penalise):
    uniforms = np.random.default_rng(5).random((4, SAMPLES, LENGTH))
    max_lengths = [4, 3, 1, 4]
    sentences = [0, 1, 2, 3]
    drawn = options
    options = {"penalise_unfinished": penalise, **options}
    result = run(table, sentences, max_lengths, uniforms, **options)
    for b, max_length in enumerate(max_lengths):
        rows = []
        for tokens in expected(table, b, max_length, uniforms[b], **drawn):
            is_penalised = penalise or EOS in tokens
            penalty = ((5 + len(tokens)) / 6) ** 0.6 if is_penalised else 1.0
            log_prob = table.log_prob(b, tokens)
            rows.append((padded(tokens), log_prob / penalty, log_prob))
        rows.sort(key=lambda row: -row[1])
        for actual, values in zip(result, zip(*rows, strict=True), strict=True):
            np.testing.assert_allclose(actual[b], values, rtol=1e-5)


def test_constraints(table):
    uniforms = np.random.default_rng(6).random((2, SAMPLES, LENGTH))
    prefixes = np.array([[3, 0, 0, 0], [0, 0, 0, 0]], np.int32)
    constrain = conjunction(2, 1, prefixes)
    ids, *_ = run(table, [0, 1], [4, 4], uniforms, constrain=constrain, keep_top_k=3)

    def banned(tokens):
        return {*tokens} | ({EOS} if len(tokens) < 2 else set())

    for b, start in enumerate([(3,), ()]):
        rows = expected(table, b, 4, uniforms[b], banned, start, keep_top_k=3)
        assert sorted(ids[b].tolist()) == sorted(map(padded, rows))


def test_frequencies_are_the_probabilities():
    """Of 200,000 draws; the most that a frequency may be off is 5 standard
    deviations.
    """
    logits, draws = np.array([1.0, -0.5, 0.3, 2.0, -2.0], np.float32), 200_000
    uniforms = np.random.default_rng(8).random((1, draws)).astype(np.float32)
    for options in ({}, {"temperature": 0.7, "keep_top_k": 3}):
        full = {"temperature": 1.0, "keep_top_k": 0, **options}
        of_draws = np.broadcast_to(logits, (1, draws, 5)).copy()
        tokens = np.asarray(draw(of_draws, uniforms, **full))
        p = distribution(logits, **full)
        frequencies = np.bincount(tokens[0], minlength=VOCAB) / draws
        np.testing.assert_array_less(
            np.abs(frequencies - p), 5 * np.sqrt(p * (1 - p) / draws) + 1e-12
        )


@pytest.mark.parametrize("uniform", [0.0, 0.5, 1 - 2.0**-24])
def test_no_random_number_draws_what_is_left_out(uniform):
    logits = np.random.default_rng(9).normal(size=(1, 3, 30_000)).astype(np.float32)
    uniforms = np.full((1, 3), uniform, np.float32)
    tokens = np.asarray(draw(logits, uniforms, 1.0, 40))
    for row, token in zip(logits[0], tokens[0], strict=True):
        assert row[token] >= np.sort(row)[-40]
