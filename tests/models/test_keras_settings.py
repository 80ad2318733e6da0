"""Settings of Keras that other programs leave behind change nothing."""

import os
import subprocess
import sys
from collections.abc import Iterator

import jax_program
import keras
import numpy as np
import pytest
import tensorflow as tf
from jax_program import MAX_LENGTHS, PREFIXES, UNIFORMS
from tiny_run import trainer_flags
from tiny_training import part_of
from tiny_transformer import SOURCES, TARGETS, make_transformer

from t2tlite.machine import import_tensorflow
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.train_step import make_train_step

DROPOUT = "layer_prepostprocess_dropout=0.1,dtype_policy={}"


def results(changes: str, policy: str) -> Iterator[object]:
    """A search, samples, and losses of training."""
    model = make_transformer(f"{DROPOUT.format(policy)},{changes}")
    yield jax_program.search(model, SOURCES, MAX_LENGTHS)
    yield from jax_program.constrained(model, SOURCES, MAX_LENGTHS, PREFIXES, UNIFORMS)
    batches = tf.data.Dataset.from_tensors(part_of(SOURCES, TARGETS, seed=(1, 2)))
    optimizer = make_optimizer(model)
    step = make_train_step(tf.distribute.get_strategy(), model, optimizer)
    yield [step(iter(batches)).loss for _ in range(2)]


@pytest.mark.parametrize(
    ("floatx", "policy", "changes"),
    [
        pytest.param("float64", "float32", "", marks=pytest.mark.slow),
        ("float16", "mixed_float16", "self_attention_radius=3,pos=emb"),
    ],
)
def test_floatx_and_global_policy_change_nothing(floatx, policy, changes):
    expected = list(results(changes, policy))
    try:
        keras.config.set_floatx(floatx)
        keras.config.set_dtype_policy(floatx)
        changed = list(results(changes, policy))
    finally:
        keras.config.set_floatx("float32")
        keras.config.set_dtype_policy("float32")
    for ours, theirs in zip(changed, expected, strict=True):
        for value, other in zip(ours, theirs, strict=True):
            assert value.dtype == other.dtype
            np.testing.assert_array_equal(value, other)


def test_a_run_resumes_whatever_keras_is_set_to(tiny_run, tiny_run_copy, tmp_path):
    (tmp_path / "keras.json").write_text('{"backend": "jax", "floatx": "float16"}')
    settings = {
        "KERAS_HOME": str(tmp_path),
        "KERAS_BACKEND": "torch",
        "TF_USE_LEGACY_KERAS": "1",
    }
    flags = trainer_flags(tiny_run, tiny_run_copy, "--train_steps=121")
    result = subprocess.run(
        [sys.executable, "-m", "t2tlite.bin.t2t_trainer", *flags],
        env=os.environ | settings,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert "Newest checkpoint: step 121." in result.stdout


def test_another_backend_of_keras_is_refused(monkeypatch):
    monkeypatch.setattr(keras.config, "backend", lambda: "jax")
    with pytest.raises(ValueError, match="KERAS_BACKEND=tensorflow set before"):
        import_tensorflow()
