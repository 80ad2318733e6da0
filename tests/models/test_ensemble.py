"""Ensembles: each token's probability is the mean of the models', against NumPy on
their full forward passes.
"""

import numpy as np
import pytest
from numpy_softmax import softmax
from tiny_transformer import (
    PRE_NORM,
    PRE_NORM_AND_EMB,
    SOURCES,
    TARGETS,
    make_transformer,
)

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import Sentence
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.ensemble import Ensemble, mean_log_probs

IDS = [[5, 9, 3, 7], [8], [4, 4, 10, 6, 2]]


@pytest.fixture(scope="module")
def models():
    """Different layers, positions and sizes, one vocabulary."""
    return [
        make_transformer(""),
        make_transformer("self_attention_radius=3," + PRE_NORM, layers=2),
        make_transformer("attention_key_channels=8," + PRE_NORM_AND_EMB, layers=2),
    ]


@pytest.fixture(scope="module")
def engine(models):
    return TensorFlowEngine(Ensemble(models))


pytestmark = pytest.mark.usefixtures("eagerly")


def mean_probabilities(models, source: list[int], target: list[int]) -> np.ndarray:
    """float64 [T, V]: of each next token after a beginning of `target`, its EOS
    counted.
    """
    inputs = np.array([[*source, 1]], np.int32)
    targets = np.array([[*target, 1, 0]], np.int32)  # padded: Keras warns of length 1
    of_models = [softmax(np.asarray(model(inputs, targets))[0]) for model in models]
    of_models = [probabilities[:-1] for probabilities in of_models]
    return sum(of_models) / len(models)


def test_mean_is_of_probabilities():
    """By hand: (1/2 + 1/10) / 2 = 0.3; the mean of logarithms would give 0.224."""
    logits = np.log(np.array([[[0.5, 0.5]], [[0.1, 0.9]]], np.float32)) + 3.0
    mean = np.exp(mean_log_probs(list(logits)))
    np.testing.assert_allclose(mean, [[0.3, 0.7]], rtol=1e-6)
    # log((e^-300 + e^-200) / 2) = -200 - log 2, to 43 digits, does not underflow
    logits = [np.array([0.0, -300.0], np.float32), np.array([0.0, -200.0], np.float32)]
    assert float(mean_log_probs(logits)[1]) == pytest.approx(-200 - np.log(2))


def test_every_hypothesis_has_the_mean_of_the_models(models, engine):
    """Caches of different layers, capacities and head counts, beside each other; and
    sentences leave the batch.
    """
    options = DecodeHParams(beam_size=3, return_beams=3, extra_length=5, alpha=0.0)
    n_best = engine.decode([Sentence(ids) for ids in IDS], options)
    assert [len(hypotheses) for hypotheses in n_best] == [3, 3, 3]
    lengths = set()
    for source, hypotheses in zip(IDS, n_best, strict=True):
        for ids, _, log_prob in hypotheses:
            lengths.add(len(ids))
            rows = mean_probabilities(models, source, ids)
            picked = np.log(rows[np.arange(len(ids) + 1), [*ids, 1]])
            unended = len(ids) == len(source) + 6  # at its limit, no EOS
            expected = picked[:-1].sum() if unended else picked.sum()
            assert log_prob == pytest.approx(expected, abs=2e-4)
    assert len(lengths) > 1


def test_scores_of_given_targets(models, engine):
    targets = [[6, 2, 9], [], [9, 4, 4, 4]]
    log_probs = engine.score(IDS, targets, DecodeHParams())
    for source, target, log_prob in zip(IDS, targets, log_probs, strict=True):
        rows = mean_probabilities(models, source, target)
        expected = np.log(rows[np.arange(len(target) + 1), [*target, 1]]).sum()
        assert log_prob == pytest.approx(expected, abs=2e-4)


def test_alignments_average_the_layers_of_all(models, engine):
    source, target = SOURCES[0, :4].tolist(), TARGETS[0, :3].tolist()
    [(_, weights)] = engine.cross_attention([source], [target], DecodeHParams())
    layers = []
    for model in models:
        pair = np.array([[*source, 1]], np.int32), np.array([[*target, 1]], np.int32)
        layers += [
            np.asarray(layer)[0].mean(0) for layer in model.attention(*pair).cross
        ]
    assert len(layers) == 5
    np.testing.assert_allclose(weights, np.mean(layers, axis=0)[:3, :4], atol=1e-6)


def test_limits_and_size(models, engine):
    assert (models[0].max_positions, models[2].max_positions) == (None, 32)
    assert engine.max_positions == 32
    assert engine.parameters == sum(model.count_params() for model in models)
