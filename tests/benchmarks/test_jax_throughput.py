"""benchmarks/jax_throughput.py: it runs without TensorFlow, trains, and computes the
loss that training computes.
"""

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import tensorflow as tf

from t2tlite.training.train_step import smoothed_cross_entropy

# B batch, T target length, V vocabulary

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        importlib.util.find_spec("jax") is None,
        reason="JAX is not installed (pip install jax)",
    ),
]

PROGRAM = Path(__file__).with_name("jax_throughput_program.py")
ARGUMENTS = [
    "--hparams_sets=transformer_base", "--vocab_size=50", "--batch_tokens=100", "--length=9", "--steps=20", "--warm=1",
    "--decode_batches=3", "--decode_steps=5", "--searches=2", "--beam_size=2", "--matmul_size=64",
    "--hparams=hidden_size=32,filter_size=64,num_heads=2,num_hidden_layers=1,learning_rate_warmup_steps=10,"
    "layer_prepostprocess_dropout=0,dtype_policy=mixed_bfloat16",
]  # fmt: skip


@pytest.fixture(scope="module")
def logits_and_targets() -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(3)
    targets = random.integers(1, 11, (4, 6)).astype(np.int32)
    targets[1, 4:] = targets[2, 1:] = 0
    # [B, T, V], [B, T]
    return random.normal(0, 3, (4, 6, 11)).astype(np.float32), targets


@pytest.fixture(scope="module")
def run(tmp_path_factory, logits_and_targets) -> tuple[list[str], dict, dict]:
    """The lines that the benchmark prints, the record it writes, and its loss and
    gradient.
    """
    folder = tmp_path_factory.mktemp("throughput")
    np.savez(
        folder / "logits.npz",
        logits=logits_and_targets[0],
        targets=logits_and_targets[1],
    )
    command = [
        sys.executable,
        PROGRAM,
        folder / "logits.npz",
        folder / "loss.npz",
        *ARGUMENTS,
    ]
    result = subprocess.run(
        [*command, f"--json={folder / 'record.json'}"],
        env={**os.environ, "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert result.returncode == 0, result.stderr
    with np.load(folder / "loss.npz") as loss:
        return (
            result.stdout.splitlines(),
            json.loads((folder / "record.json").read_text()),
            dict(loss),
        )


def test_the_loss_is_that_of_training(run, logits_and_targets):
    logits, targets = logits_and_targets
    with tf.GradientTape() as tape:
        tensor = tf.constant(logits)
        tape.watch(tensor)
        total, tokens = smoothed_cross_entropy(tensor, targets, 0.1)
        loss = total / tokens
    np.testing.assert_allclose(run[2]["loss"], loss, rtol=1e-5)
    np.testing.assert_allclose(
        run[2]["gradient"], tape.gradient(loss, tensor), atol=1e-6
    )


def test_training_learns_its_batch(run):
    training = run[1]["results"][0]
    assert len(training["step_seconds"]) == 20
    assert len(training["losses"]) == 21
    assert training["losses"][-1] < training["losses"][0] - 0.5


def test_utilisation_is_relative_to_a_matrix_product(run):
    training, rates = run[1]["results"][0], run[1]["matmul_flops_per_second"]
    median = np.median(training["step_seconds"])
    rows, length = 100 // 9, 9
    d, f, v = 32, 64, 50
    # multiplications of a row, forward: encoder, decoder (twice the attention), softmax
    projections, scores, feed_forward = (
        4 * length * d * d,
        2 * length * length * d,
        2 * length * d * f,
    )
    products = 3 * (projections + scores) + 2 * feed_forward + length * d * v
    assert training["batch"] == [rows, length]
    assert training["flops_per_step"] == pytest.approx(3 * 2 * rows * products)
    assert training["utilisation"] == pytest.approx(
        training["flops_per_step"] / median / rates["bfloat16"]
    )
    assert training["tokens_per_second"] == pytest.approx(2 * rows * length / median)
