"""What is decoded together, and what needs a search of its own."""

import itertools

import numpy as np
import pytest
from fake_engine import FakeEngine

from t2tlite.config import DecodeHParams
from t2tlite.decoding import engine, tensorflow_engine
from t2tlite.decoding.engine import Sentence
from t2tlite.programs.runs.load import load

# the default of parsing problems
PARSER = {"beam_size": 21, "alpha": 0.3, "extra_length": 300}
LENGTHS = [1, 3, 7, 7, 12, 25, 40, 100, 300, 2000] * 200


def decoded_by_fake(lengths, **options) -> FakeEngine:
    """An engine that has decoded sources of these numbers of tokens."""
    fake = FakeEngine()
    sentences = [Sentence([5] * length) for length in lengths]
    fake.decode(sentences, DecodeHParams(**options))
    return fake


def batches(lengths, **options) -> list[list[int]]:
    """The numbers of tokens of the sources in each batch."""
    batches = []
    for batch in decoded_by_fake(lengths, **options).decoded:
        batches.append([len(sentence.ids) for sentence in batch])
    return batches


@pytest.mark.parametrize(
    "options", [{}, PARSER, {"beam_size": 1}, {"beam_size": 8, "extra_length": 1000}]
)
def test_the_cache_of_a_batch_is_limited(options):
    options = {"beam_size": 4, "extra_length": 50} | options
    actual = batches(LENGTHS, **options)
    assert sum(map(len, actual)) == len(LENGTHS)
    for batch in actual:
        positions = (
            len(batch) * options["beam_size"] * (max(batch) + options["extra_length"])
        )
        assert positions <= engine.BATCH_POSITIONS or len(batch) == 1
        assert sum(batch) <= engine.BATCH_TOKENS or len(batch) == 1


def test_the_length_limit_is_at_most_the_longest_bucket():
    fake = decoded_by_fake([2], extra_length=2**31 - 1)
    assert fake.limits == [[engine.LONGEST_BUCKET]]


@pytest.mark.parametrize(("batch_size", "rows"), [(1, 1), (64, 8), (4096, 512)])
def test_batch_size_is_in_source_tokens_whatever_the_memory(batch_size, rows):
    assert len(batches([7] * 512, batch_size=batch_size, **PARSER)[0]) == rows


def test_search_is_built_once_for_all_penalties_and_n_best_lists(tiny_run, monkeypatch):
    model = load(tiny_run.run)  # one that has built no search
    sentences = ["red cat sees dog", "fish likes mouse today"]
    model.n_best(sentences)
    monkeypatch.setattr(
        tensorflow_engine, "search", None
    )  # to build another would fail
    for alpha, count in itertools.product((0.0, 1.0, 2.5), (1, 2, 4)):
        for outputs in model.n_best(sentences, count, alpha=alpha, extra_length=20):
            assert len(outputs) == count
            for hypothesis in outputs:
                penalty = ((5 + len(hypothesis.ids) + 1) / 6) ** alpha
                assert hypothesis.score == pytest.approx(
                    hypothesis.log_prob / penalty, rel=1e-5
                )
    with pytest.raises(TypeError):
        model.n_best(sentences, beam_size=3)


@pytest.mark.parametrize(
    "options", [{}, {"min_length": 2}, {"sampling_method": "random"}], ids=str
)
def test_weights_that_are_not_finite_are_reported_as_such(tiny_run, eagerly, options):
    model = load(tiny_run.run)
    for variable in model.engine.model.trainable_variables:
        variable.assign(variable.numpy() * np.nan)
    with pytest.raises(
        ValueError,
        match=r"has no translation .* checkpoint, whose weights are finite",
    ):
        model.translate(["red cat sees dog"], extra_length=0, **options)
