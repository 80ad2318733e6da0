"""The training loss against its definition, in NumPy and in double precision."""

import numpy as np
import pytest
import tensorflow as tf
from numpy_softmax import log_softmax, softmax

from t2tlite.training.train_step import correct_tokens, smoothed_cross_entropy

# B batch, T target length, V vocabulary


def draw(
    vocabulary: int, seed: int, scale: float = 3.0
) -> tuple[np.ndarray, np.ndarray]:
    """Logits [4, 6, V] and targets [4, 6], each row padded at another length."""
    random = np.random.default_rng(seed)
    logits = random.normal(0, scale, (4, 6, vocabulary)).astype(np.float32)
    targets = random.integers(1, vocabulary, (4, 6)).astype(np.int32)
    for row, length in enumerate((6, 4, 1, 0)):
        targets[row, length:] = 0
    return logits, targets


def smoothed(targets: np.ndarray, vocabulary: int, epsilon: float) -> np.ndarray:
    """The target distributions [B, T, V]: 1 - epsilon for the true token, epsilon
    shared equally by the others.
    """
    table = np.full((*targets.shape, vocabulary), epsilon / (vocabulary - 1))
    np.put_along_axis(table, targets[..., None], 1 - epsilon, axis=-1)
    return table


def divergence(logits: np.ndarray, targets: np.ndarray, epsilon: float) -> float:
    """Sum over tokens of sum_v p_v (log p_v - log q_v), padding left out."""
    p = smoothed(targets, logits.shape[-1], epsilon)
    each = np.sum(p * (np.log(np.where(p > 0, p, 1)) - log_softmax(logits)), axis=-1)
    return float(each[targets != 0].sum())


@pytest.mark.parametrize("vocabulary", [2, 3, 97, 5000])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3, 0.9])
def test_closed_form(vocabulary, epsilon):
    logits, targets = draw(vocabulary, seed=vocabulary)
    total, tokens = smoothed_cross_entropy(logits, targets, epsilon)
    expected = divergence(logits, targets, epsilon)
    np.testing.assert_allclose(total, expected, rtol=2e-5, atol=1e-5)
    assert tokens == 6 + 4 + 1
    assert total.dtype == tokens.dtype == tf.float32


@pytest.mark.parametrize(
    ("vocabulary", "epsilon"), [(4, 0.1), (37_000, 0.1), (97, 0.5)]
)
def test_a_perfect_model_has_loss_zero(vocabulary, epsilon):
    targets = np.array([[1, 2, 0], [3, 0, 0]], np.int32)
    # a constant changes nothing
    logits = np.log(smoothed(targets, vocabulary, epsilon)).astype(np.float32) + 3.0
    total, _ = smoothed_cross_entropy(logits, targets, epsilon)
    np.testing.assert_allclose(total, 0.0, atol=2e-5)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_padding_does_not_count(epsilon):
    logits, targets = draw(20, seed=1)
    before = smoothed_cross_entropy(logits, targets, epsilon)
    logits[targets == 0] = 50 * np.random.default_rng(2).normal(size=20)
    after = smoothed_cross_entropy(logits, targets, epsilon)
    wider = smoothed_cross_entropy(
        np.concatenate([logits, logits], axis=1),
        np.concatenate([targets, 0 * targets], axis=1),
        epsilon,
    )
    assert before[1] == after[1] == wider[1] == 11
    np.testing.assert_allclose([after[0], wider[0]], [before[0], before[0]], rtol=1e-6)


@pytest.mark.parametrize("vocabulary", [3, 97, 5000])
@pytest.mark.parametrize("epsilon", [0.0, 0.1, 0.3])
def test_gradient_is_softmax_minus_target(vocabulary, epsilon):
    logits, targets = draw(vocabulary, seed=4)
    with tf.GradientTape() as tape:
        variable = tf.constant(logits)
        tape.watch(variable)
        total, _ = smoothed_cross_entropy(variable, targets, epsilon)
    expected = (softmax(logits) - smoothed(targets, vocabulary, epsilon)) * (
        targets != 0
    )[..., None]
    np.testing.assert_allclose(tape.gradient(total, variable), expected, atol=2e-6)


@pytest.mark.parametrize("epsilon", [0.0, 0.1])
def test_large_logits(epsilon):
    logits, targets = draw(30, seed=5, scale=1000.0)  # exp would overflow
    total, _ = smoothed_cross_entropy(logits, targets, epsilon)
    np.testing.assert_allclose(total, divergence(logits, targets, epsilon), rtol=1e-5)


def test_correct_tokens():
    logits, targets = draw(3, seed=8)
    hits = correct_tokens(logits, targets)
    expected = ((logits.argmax(-1) == targets) & (targets != 0)).sum()
    assert float(hits) == expected > 0
    # padding guessed as padding does not count
    assert ((logits.argmax(-1) == 0) & (targets == 0)).any()
    assert (hits.dtype, hits.shape) == (tf.float32, ())
