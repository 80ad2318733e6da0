"""The model, its layers and beam search under KERAS_BACKEND=jax, beside what TensorFlow
computes.

Skipped if JAX is not installed: t2tlite itself does not require it.
"""

import importlib.util
import os
import subprocess
import sys

import jax_program
import numpy as np
import pytest
from jax_program import MAX_LENGTHS, PREFIXES, UNIFORMS
from tiny_transformer import PRE_NORM_AND_EMB, SOURCES, TARGETS, make_transformer

from t2tlite.decoding.slots import is_filled
from t2tlite.models.transformer import Transformer

# B batch, T target length, V vocabulary, M beam size, L most positions

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="JAX is not installed (pip install jax)",
    ),
    # Keras 3.15 writes a model's weights through an interface that NumPy 2 deprecates.
    pytest.mark.filterwarnings(
        "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
    ),
]

DROPOUT = "layer_prepostprocess_dropout=0.1,attention_dropout=0.2,relu_dropout=0.3"
VARIANTS = {
    "paper": "",
    "pre_norm": PRE_NORM_AND_EMB,
    "restricted": "self_attention_radius=3",
}
TARGETS = TARGETS[:, :5]


@pytest.fixture(scope="module", params=VARIANTS.values(), ids=VARIANTS.keys())
def both(request, tmp_path_factory) -> tuple[Transformer, dict[str, np.ndarray]]:
    """A model, and what JAX computes with it after loading it from a .keras file."""
    folder = tmp_path_factory.mktemp("jax")
    model = make_transformer(f"{DROPOUT},{request.param}")
    model.save(folder / "model.keras")
    np.savez(
        folder / "ids.npz",
        sources=SOURCES,
        targets=TARGETS,
        prefixes=PREFIXES,
        uniforms=UNIFORMS,
    )
    files = (folder / name for name in ("model.keras", "ids.npz", "results.npz"))
    command = [sys.executable, jax_program.__file__, *files]
    environment = {**os.environ, "KERAS_BACKEND": "jax", "JAX_PLATFORMS": "cpu"}
    result = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600
    )
    assert result.returncode == 0, result.stderr
    with np.load(folder / "results.npz") as results:
        assert results["backend"] == "jax"
        assert not results["loaded_tensorflow"]
        return model, dict(results)


def test_logits_equal_tensorflows(both):
    model, results = both
    expected = np.asarray(model(SOURCES, TARGETS))  # [B, T, V]
    np.testing.assert_allclose(
        results["logits"], expected, rtol=0, atol=2e-5 * np.abs(expected).max()
    )


def test_beam_search_finds_what_it_finds_under_tensorflow(both):
    model, results = both
    ids, scores, log_probs = jax_program.search(model, SOURCES, MAX_LENGTHS)
    np.testing.assert_array_equal(results["ids"], ids)  # [B, M, L]
    np.testing.assert_allclose(results["scores"], scores, rtol=1e-4)
    np.testing.assert_allclose(results["log_probs"], log_probs, rtol=1e-4)


def test_constraints_and_sampling_equal_those_under_tensorflow(both):
    model, results = both
    expected = jax_program.constrained(model, SOURCES, MAX_LENGTHS, PREFIXES, UNIFORMS)
    for name, result in zip(("constrained", "sampled"), expected, strict=True):
        np.testing.assert_array_equal(results[f"{name}_ids"], result.ids)
        np.testing.assert_allclose(
            results[f"{name}_log_probs"], result.log_probs, rtol=1e-4
        )
        # empty slots left out
        first = np.asarray(result.ids)[0, is_filled(np.asarray(result.scores))[0]]
        assert len(first)
        assert (first[:, :2] == 7).all()


def test_dropout_is_a_function_of_the_seed(both):
    """JAX's masks are not TensorFlow's, but obey the same rules."""
    _, results = both
    first, again, other, negative = results["dropped"]
    np.testing.assert_array_equal(first, again)
    for mask, other_mask in (
        (first, other),
        (first, negative),
        (other, negative),
        (first, results["logits"]),
    ):
        assert (np.abs(mask - other_mask).max(axis=-1) > 1e-3).all()


def test_embedding_gradient_is_summed_in_float32(both):
    """In bfloat16, ones add up to 256 at most: 256 + 1 is rounded to 256."""
    _, results = both
    expected = np.zeros((3, 4))
    # id 2 occurs 1,000 times, and its vector is scaled by sqrt(D)
    expected[2] = 1000 * 4**0.5
    np.testing.assert_allclose(results["embedding_gradient"], expected, rtol=1e-6)
