"""Twenty optimizer steps take the weights where tensor2tensor's took them."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import tensor2tensor_variables
import tensorflow as tf

from t2tlite.data.input_pipeline import Part
from t2tlite.training.train_step import make_optimizer, make_train_step

RATE_OF_LEGACY_SCHEDULE = 0.05  # learning_rates[0] / formula (3) at step 1; its sets write 0.025 for it


@pytest.fixture(scope="module")
def trained(shared):
    """tensor2tensor's figures; our losses and learning rates, first weights and trained model."""
    data = np.load(shared / "t2t" / "train_trajectory_postnorm.npz")
    hparams = dataclasses.replace(
        tensor2tensor_variables.hparams_from(data["hparams"]), learning_rate_constant=RATE_OF_LEGACY_SCHEDULE
    )
    model = tensor2tensor_variables.load(hparams, tensor2tensor_variables.under("init", data))
    start = model.get_weights()
    optimizer = make_optimizer(hparams)
    optimizer.build(model.trainable_variables)
    part = Part(
        inputs=data["inputs"][None],
        targets=data["targets"][None],
        tokens=np.float32(np.count_nonzero(data["targets"])),
        seeds=np.zeros((1, 2), np.int32),
    )
    batches = iter(tf.data.Dataset.from_tensors(part).repeat())
    step = make_train_step(tf.distribute.get_strategy(), model, optimizer, hparams)
    losses, rates = [], []
    for _ in data["losses"]:
        rates.append(float(optimizer.learning_rate))
        losses.append(float(step(batches).loss))
    return data, hparams, losses, rates, start, model


def test_losses(trained):
    data, _, losses, *_ = trained
    np.testing.assert_allclose(losses, data["losses"], rtol=1e-5)
    assert losses[-1] < 0.4 * losses[0]


def test_learning_rates(trained):
    data, _, _, rates, *_ = trained
    np.testing.assert_allclose(rates, data["learning_rates"], rtol=1e-5)


def test_final_weights(trained):
    data, hparams, _, _, start, model = trained
    theirs = tensor2tensor_variables.load(hparams, tensor2tensor_variables.under("final", data))
    for ours, expected, before in zip(model.variables, theirs.get_weights(), start, strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-4, err_msg=ours.path)
        error, moved = np.abs(np.asarray(ours) - expected).mean(), np.abs(expected - before).mean()
        assert error < 0.001 * moved, ours.path


def test_tensor2tensors_adam_moves_every_row_of_a_shared_table(trained):
    """Its Adam moves only rows with a gradient; the softmax gives every row one. So plain Adam is the same here."""
    data = trained[0]
    for i in range(16):
        name = f"transformer/symbol_modality_97_64/shared/weights_{i}:0"
        assert (np.abs(data[f"final/{name}"] - data[f"init/{name}"]).max(axis=1) > 1e-3).all()
