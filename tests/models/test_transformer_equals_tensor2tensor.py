"""Logits and losses equal those that tensor2tensor 1.15.7 computed from the same
weights.
"""

import numpy as np
import pytest
from tensor2tensor_checkpoint import logits_fixture

from t2tlite.training.train_step import smoothed_cross_entropy


@pytest.mark.parametrize("name", ["postnorm_notse", "prenorm", "prenorm_unshared"])
def test_logits(t2t, name):
    data, model = logits_fixture(t2t, name)
    logits = model(data["inputs"], data["targets"])
    np.testing.assert_allclose(logits, data["logits"], atol=1e-4)


@pytest.mark.parametrize("name", ["postnorm_notse", "prenorm", "prenorm_unshared"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_loss(t2t, name, smoothing):
    data = np.load(t2t / f"transformer_logits_{name}.npz")
    total, tokens = smoothed_cross_entropy(data["logits"], data["targets"], smoothing)
    suffix = "ls0" if smoothing == 0.0 else "ls0_1"
    np.testing.assert_allclose(total, data[f"loss_numerator_{suffix}"], rtol=1e-5)
    assert tokens == data["loss_denominator"]
