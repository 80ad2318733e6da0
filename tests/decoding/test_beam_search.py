"""Beam search against exhaustive search, against a greedy loop, and against
tensor2tensor's decodes.
"""

import functools
import itertools

import keras
import numpy as np
import pytest
import tensorflow as tf
from table_model import BEAM, EOS, LENGTH, VOCAB, TableModel, padded
from tensor2tensor_checkpoint import logits_fixture
from tiny_transformer import SOURCES

from t2tlite.config import HParams
from t2tlite.decoding import beam_search as beam_search_module
from t2tlite.decoding.beam_search import beam_search
from t2tlite.decoding.slots import BeamResult, top_tokens
from t2tlite.models.transformer import Transformer

# B batch, M hypotheses of a sentence, L maximum length, V vocabulary


@pytest.fixture(scope="module")
def table() -> TableModel:
    return TableModel(sentences=4)


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize(
    "max_lengths", [[4, 4, 4, 4], [1, 2, 3, 4]], ids=["equal", "unequal"]
)
def test_a_wide_beam_finds_what_exhaustive_search_finds(table, alpha, max_lengths):
    result = table.search([0, 1, 2, 3], max_lengths, BEAM, alpha, n_best=BEAM)
    assert result[0].shape == (4, BEAM, LENGTH)
    for b, max_length in enumerate(max_lengths):
        table.check(result, b, table.exhaustive(b, max_length, alpha))


@pytest.mark.parametrize("alpha", [0.0, 0.6, 1.0])
@pytest.mark.parametrize("n_best", [1, 3])
@pytest.mark.parametrize("eos_bonus", [0.0, 4.0])
def test_stopping_early_does_not_change_the_best(alpha, n_best, eos_bonus):
    table = TableModel(sentences=3, seed=2, eos_bonus=eos_bonus)
    result = table.search([0, 1, 2], [4, 4, 3], BEAM, alpha, n_best)
    for b, max_length in enumerate([4, 4, 3]):
        expected = table.exhaustive(b, max_length, alpha)[:n_best]
        table.check(result, b, expected, complete=False)


def test_one_hypothesis_is_greedy_search(table):
    ids, scores, _ = table.search([0, 1, 2, 3], [4, 4, 4, 2], beam=1, alpha=0.6)
    for b, max_length in enumerate([4, 4, 4, 2]):
        tokens: tuple[int, ...] = ()
        while len(tokens) < max_length and EOS not in tokens:
            tokens = (*tokens, int(table.logits(b, tokens).argmax()))
        assert ids[b, 0].tolist() == padded(tokens)
        penalty = ((5 + len(tokens)) / 6) ** 0.6
        score = table.log_prob(b, tokens) / penalty
        np.testing.assert_allclose(scores[b, 0], score, rtol=1e-5)


@pytest.mark.parametrize("penalise", [True, False])
def test_live_hypotheses_where_nothing_ended(penalise):
    """With penalised scores, or with tensor2tensor's, which are not."""
    table = TableModel(sentences=2, eos_bonus=-np.inf)
    beam, alpha, max_lengths = 64, 1.0, [4, 2]
    result = table.search(
        [0, 1], max_lengths, beam, alpha, penalise_unfinished=penalise
    )
    others = [token for token in range(VOCAB) if token != EOS]
    for b, max_length in enumerate(max_lengths):
        penalty = ((5 + max_length) / 6) ** alpha if penalise else 1.0
        every = []
        for tokens in itertools.product(others, repeat=max_length):
            every.append((table.log_prob(b, tokens) / penalty, tokens))
        table.check(result, b, sorted(every, reverse=True)[:beam])


# A tiny Transformer, whose cache and positions take part.

MAX_LENGTHS = np.array([8, 5, 7], np.int32)


@pytest.fixture(scope="module", params=[0, 3], ids=["full", "restricted"])
def model(request) -> Transformer:
    """Of 4 hypotheses all end for the first sentence, none for the second and one for
    the third.

    With restricted self-attention, a ring of 3 positions holds the keys and values of
    up to 8.
    """
    hparams = HParams(
        hidden_size=16,
        filter_size=32,
        num_heads=2,
        num_hidden_layers=1,
        max_length=32,
        pos="timing_halves",
        shared_embedding_and_softmax_weights=False,
        self_attention_radius=request.param,
    )
    keras.utils.set_random_seed(2)
    model = Transformer.from_hparams(hparams, 12, 12)
    random = np.random.default_rng(2)
    # far from where training starts, so that sequences vary
    for variable in model.weights:
        variable.assign_add(0.5 * random.normal(size=variable.shape).astype(np.float32))
    return model


def decode(model, sources, max_lengths, beam, alpha, n_best, length=8, **more):
    return beam_search(
        more.pop("decode_step", model.decode_step),
        functools.partial(model.start_decoding, sources, beam),
        max_lengths=max_lengths,
        beam_size=beam,
        length=length,
        alpha=alpha,
        n_best=n_best,
        **more,
    )


@pytest.fixture(scope="module")
def nbest(model):
    result = decode(model, SOURCES, MAX_LENGTHS, beam=4, alpha=0.6, n_best=4)
    return BeamResult(*map(np.asarray, result))


# beam size, alpha, n_best
SEARCHES = [(1, 0.0, 1), (4, 0.6, 1), (4, 0.6, 4), (2, 1.0, 1)]
FAST_CASES = {((1, 0.0, 1), 3), ((4, 0.6, 4), 2), ((2, 1.0, 1), 8)}


@pytest.mark.parametrize(
    ("search", "capacity"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case not in FAST_CASES))
        for case in itertools.product(SEARCHES, [8, 3, 2])
    ],
)
def test_sentences_that_are_done_leave_the_batch(model, monkeypatch, search, capacity):
    """The results stay the same; fewer and fewer sentences are computed, with no larger
    a cache than they need.
    """
    monkeypatch.setattr(beam_search_module, "FIRST_CAPACITY", capacity)
    sources = np.tile(SOURCES, (3, 1))
    max_lengths = np.array([8, 1, 3, 2, 5, 7, 6, 4, 2], np.int32)
    expected = decode(model, sources, max_lengths, *search)
    counts = []
    capacities = []

    def decode_step(tokens, step, ancestors, cache):
        counts.append(len(tokens))
        capacities.append(ancestors.shape[2])
        return model.decode_step(tokens, step, ancestors, cache)

    result = decode(
        model,
        sources,
        max_lengths,
        *search,
        decode_step=decode_step,
        resize_cache=model.resize_cache,
    )
    assert counts[0] == 9
    assert counts == sorted(counts, reverse=True)
    assert counts[-1] <= 4, "half of them were done, and nobody left"
    for step, actual in enumerate(capacities):
        assert actual == min(c for c in (capacity, 2 * capacity, 8) if c > step)
    assert_same_results(result, expected, n_best=search[-1])


def assert_same_results(result, expected, n_best):
    for actual, other in zip(result, expected, strict=True):
        np.testing.assert_allclose(actual[:, :n_best], other[:, :n_best], rtol=1e-5)


@pytest.mark.parametrize("size", [12, 2048, 8000, 8191], ids="vocabulary of {}".format)
@pytest.mark.parametrize("distinct", [2, 40, 10**6], ids="{} distinct numbers".format)
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_the_largest_logits_and_of_equal_ones_the_first(size, distinct, count):
    random = np.random.default_rng(1)
    logits = random.integers(distinct, size=(3, 4, size)).astype(np.float32)
    logits[0, 0] = -np.inf  # as a constraint that allows nothing makes them
    values, tokens = top_tokens(logits, count)
    order = np.argsort(-logits, axis=-1, kind="stable")[..., :count]
    np.testing.assert_array_equal(tokens, order)
    np.testing.assert_array_equal(values, np.take_along_axis(logits, order, axis=-1))


def test_equals_a_search_without_a_cache(model, nbest):
    """Whose logits are those of a full forward pass over each hypothesis, obtained
    through its ancestors.
    """
    sources = np.repeat(SOURCES, 4, axis=0)

    def decode_step(tokens, step, ancestors, slots):
        # [B, L, M]: the token that each slot read at each position
        slots, step = np.array(slots), int(step)
        slots[:, step] = tokens
        # [B, M, L]
        read = np.einsum("bmls,bls->bml", np.asarray(ancestors), slots).astype(np.int32)
        # position l reads target l - 1
        targets = np.pad(read.reshape(12, 8)[:, 1:], ((0, 0), (0, 1)))
        logits = tf.reshape(model(sources, targets)[:, step], (3, 4, 12))
        return logits, tf.constant(slots)

    ids, scores, _ = beam_search(
        decode_step,
        lambda length: np.zeros((3, length, 4), np.int32),
        max_lengths=MAX_LENGTHS,
        beam_size=4,
        length=8,
        alpha=0.6,
        n_best=4,
    )
    np.testing.assert_array_equal(ids, nbest[0])
    np.testing.assert_allclose(scores, nbest[1], rtol=1e-5)


@pytest.mark.parametrize(
    "kind",
    [
        "resized",
        *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("fixed", "xla")),
    ],
)
def test_compiled_search_is_the_same(model, nbest, monkeypatch, kind):
    monkeypatch.setattr(beam_search_module, "FIRST_CAPACITY", 2)
    shape, length_shape = ([3, 6], [3]) if kind == "xla" else ([None, None], [None])
    options = {"resize_cache": model.resize_cache} if kind == "resized" else {}
    signature = [tf.TensorSpec(shape, tf.int32), tf.TensorSpec(length_shape, tf.int32)]
    if kind != "xla":
        signature.append(tf.TensorSpec((), tf.int32))

    @tf.function(autograph=False, input_signature=signature, jit_compile=kind == "xla")
    def compiled(sources, max_lengths, length=8):
        return decode(model, sources, max_lengths, 4, 0.6, 4, length, **options)

    result = compiled(SOURCES, MAX_LENGTHS, *([] if kind == "xla" else [8]))
    assert_same_results(result, nbest, n_best=4)


# tensor2tensor's decodes: mode -> (beam size, results it returned, alpha).

MODES = {
    "greedy": (1, 1, 0.0),
    "beam4_top1_alpha0.6": (4, 1, 0.6),
    "beam4_top4_alpha0.6": (4, 4, 0.6),
    "beam4_top4_alpha0": (4, 4, 0.0),
    "beam4_top4_alpha1": (4, 4, 1.0),
    "beam2_top2_alpha0.6": (2, 2, 0.6),
    "beam8_top1_alpha0.3": (8, 1, 0.3),
    "beam4_top4_alpha0.6_short": (4, 4, 0.6),
}


@pytest.fixture(scope="module")
def theirs(t2t):
    """A function that gives the data and the model of a fixture; each is loaded
    once.
    """
    return functools.cache(functools.partial(logits_fixture, t2t))


FAST_MODES = (
    "greedy",
    "beam4_top4_alpha0.6",
    "beam8_top1_alpha0.3",
    "beam4_top4_alpha0.6_short",
)
MAIN_CASES = {
    *(("postnorm_notse", mode) for mode in FAST_MODES),
    ("prenorm", "beam4_top4_alpha0.6"),
    ("prenorm_unshared", "greedy"),
}


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(*case, marks=[pytest.mark.slow] * (case not in MAIN_CASES))
        for case in itertools.product(
            ["postnorm_notse", "prenorm", "prenorm_unshared"], MODES
        )
    ],
)
def test_decodes_equal_tensor2tensors(theirs, name, mode):
    data, model = theirs(name)
    beam, n_best, alpha = MODES[mode]
    inputs = data["inputs"]
    # its limit, the same for every sentence of a batch
    length = inputs.shape[1] + int(data["decode_length"])
    length = 5 if mode.endswith("short") else length
    max_lengths = np.full(len(inputs), length, np.int32)
    ids, scores, _ = decode(model, inputs, max_lengths, beam, alpha, n_best, length)
    outputs = data[f"decode/{mode}/outputs"].reshape(len(inputs), n_best, -1)
    width = outputs.shape[-1]
    np.testing.assert_array_equal(np.asarray(ids)[:, :n_best, :width], outputs)
    assert not np.asarray(ids)[:, :n_best, width:].any()
    ours = np.asarray(scores)[:, :n_best]
    expected = data[f"decode/{mode}/scores"].reshape(len(inputs), n_best)
    # some hypotheses of a sentence ended, but fewer than n_best: theirs are -1e7, ours
    # -1e9
    missing = expected < -1e6
    np.testing.assert_array_equal(ours < -1e6, missing)
    np.testing.assert_allclose(ours[~missing], expected[~missing], rtol=1e-5)
