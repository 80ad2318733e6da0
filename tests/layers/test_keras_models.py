"""Every public layer in a Keras model of one's own, beside the Keras layer that it
stands for.
"""

import subprocess
import sys
from collections.abc import Callable

import keras
import layer_cases
import numpy as np
import pytest
import tensorflow as tf
from layer_cases import (
    CASES,
    HIDDEN,
    IDS,
    MODELS,
    VOCAB,
    LayerCase,
    Net,
    attend_twice,
    attention,
    twice,
)
from numpy_attention import normal

from t2tlite import layers

CLASSES = np.array([0, 1])
POLICIES = ["float32", "mixed_bfloat16", "mixed_float16"]

# Keras 3.15 writes a model's weights through an interface that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


@pytest.fixture(params=CASES)
def case(request) -> LayerCase:
    return CASES[request.param]


def trained(make: Callable[[str], keras.Model], name: str) -> keras.Model:
    model = make(name)
    # XLA compiles the step in the subclassed models
    model.compile(
        "sgd",
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        jit_compile=make is Net,
    )
    model.fit(CASES[name].inputs(), CLASSES, verbose=0)
    return model


def test_every_public_layer_has_a_case():
    classes = [name for name in layers.__all__ if name[0].isupper()]
    assert {name.split("_")[0] for name in CASES} == set(classes)


@pytest.mark.parametrize(("make", "name"), MODELS)
def test_a_model_is_trained_and_made_again(make, name):
    inputs = CASES[name].inputs()
    model = trained(make, name)
    expected = np.asarray(model(inputs))
    if make is Net:
        copies = [Net.from_config({"name": name})]
    else:
        from_json = keras.models.model_from_json(model.to_json())
        copies = [keras.models.clone_model(model), from_json]
    for copy in copies:
        copy(inputs)
        copy.set_weights(model.get_weights())
        np.testing.assert_array_equal(copy(inputs), expected)


def test_another_process_loads_the_models(tmp_path):
    """All of them in one process, which has imported t2tlite.layers."""
    for i, (make, name) in enumerate(MODELS):
        model = make(name)
        inputs = CASES[name].inputs()
        outputs = model(inputs)
        model.save(tmp_path / f"{i}.keras")
        np.savez(tmp_path / f"{i}.npz", inputs=inputs, outputs=outputs)
    command = [sys.executable, "-W", "error", layer_cases.__file__, str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{len(MODELS)} equal\n"


@pytest.mark.parametrize("policy", POLICIES)
def test_dtype_shape_and_mask_are_those_of_keras(case, policy):
    """Of float32 inputs, with a mask."""
    inputs = tf.constant(case.inputs())
    if not case.takes_ids:
        inputs._keras_mask = tf.constant(IDS != 0)
    ours = case.call(case.make(dtype=policy), inputs)
    theirs = case.call_of_keras(case.of_keras(dtype=policy), inputs)
    assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape)
    np.testing.assert_array_equal(
        getattr(ours, "_keras_mask", None), getattr(theirs, "_keras_mask", None)
    )


def test_xla_computes_the_same(case):
    layer = case.make()
    inputs = tf.constant(case.inputs())
    expected = case.call(layer, inputs)
    compiled = tf.function(lambda x: case.call(layer, x), jit_compile=True)
    np.testing.assert_allclose(compiled(inputs), expected, rtol=1e-5, atol=1e-5)


def test_keras_mask_hides_padding(case):
    """The vectors of the tokens do not depend on the number of padding tokens."""
    embedding = layers.Embedding(VOCAB, HIDDEN, mask_zero=True)
    layer = layers.Dense(HIDDEN) if case.takes_ids else case.make()
    pooling = keras.layers.GlobalAveragePooling1D()
    call = twice if case.call is attend_twice else case.call
    x = keras.Input((None,))
    model = keras.Model(x, pooling(call(layer, embedding(x))))
    np.testing.assert_allclose(model(IDS[1:, :2]), model(IDS[1:]), rtol=1e-5, atol=1e-6)


def test_a_mask_is_added_to_a_bias():
    layer, x = attention(), tf.constant(normal(2, 4, HIDDEN))
    expected = layer(x, bias=layers.padding_mask(IDS) + layers.causal_mask(4))
    x._keras_mask = tf.constant(IDS != 0)
    np.testing.assert_allclose(layer(x, bias=layers.causal_mask(4)), expected)


def test_ids_stay_exact_in_16_bits():
    """Keras may cast inputs to the compute dtype, in which 257 is 256."""
    layer = layers.Embedding(VOCAB, HIDDEN, dtype="mixed_bfloat16")
    np.testing.assert_array_equal(layer(IDS.astype("float32")), layer(IDS))


@pytest.mark.parametrize("compiled", [False, True])
def test_each_step_of_fit_draws_another_dropout_mask(tmp_path, compiled):
    def losses() -> list[float]:
        keras.utils.set_random_seed(1)
        mean = keras.layers.Dense(
            1, kernel_initializer=keras.initializers.Constant(1 / 64)
        )
        model = keras.Sequential([keras.Input((64,)), layers.Dropout(0.5), mean])
        model.save(tmp_path / "model.keras")
        model = keras.saving.load_model(tmp_path / "model.keras")
        stays = keras.optimizers.SGD(0.0)
        model.compile(stays, loss=lambda _, y: y, jit_compile=compiled)
        ones = np.ones((8, 64), np.float32)
        np.testing.assert_allclose(model.predict(ones, verbose=0), 1, rtol=1e-5)
        return model.fit(ones, ones, epochs=5, verbose=0).history["loss"]

    first = losses()
    assert len(set(first)) == 5
    np.testing.assert_allclose(first, 1, atol=0.3)
    assert losses() == first


def test_dropout_does_not_change_the_initial_weights():
    weights = []
    for rate in (0.0, 0.5):
        keras.utils.set_random_seed(1)
        layer = layers.FeedForward(HIDDEN, 12, dropout=rate)
        layer.build()
        weights.append(layer.get_weights())
    for without, with_dropout in zip(*weights, strict=True):
        np.testing.assert_array_equal(with_dropout, without)


@pytest.mark.parametrize(
    "options",
    [
        {"axis": [1, 2]},
        {"axis": 1},
        {"axis": 2},
        {"center": False, "scale": False},
        {"beta_initializer": "ones", "gamma_initializer": "random_normal"},
    ],
)
def test_layer_normalisation_honours_the_arguments_of_keras(options):
    x = 50 * normal(2, 3, HIDDEN)
    ours = layers.LayerNormalization(**options)
    theirs = keras.layers.LayerNormalization(**options)
    ours.build(x.shape)
    theirs.build(x.shape)
    theirs.set_weights(ours.get_weights())
    np.testing.assert_allclose(ours(x), theirs(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (lambda: layers.Residual(1.5), "at least 0 and less than 1. Received: 1.5"),
        (lambda: layers.Dropout(float("nan")), "less than 1. Received: nan"),
        (lambda: layers.Positions("sinus", 8), "kind must be .* Received: 'sinus', 8"),
        (lambda: layers.Positions("timing", 7), "hidden_size even .*'timing', 7"),
        (lambda: layers.Positions("emb", 8), "shape.*None"),
        (
            lambda: layers.Positions("timing", 8)(np.ones((1, 2, 1))),
            r"expected axis -1 of input shape to have value 8",
        ),
        (
            lambda: layers.RestrictedAttention(8, 2, radius=-1),
            "radius must be at least 1. Received: -1",
        ),
        (
            lambda: layers.MultiHeadAttention(8, 3),
            "must divide the channels .* Received: 3, 8 and 8",
        ),
        (
            lambda: layers.Embedding(9, 8).logits(keras.Input((None, 8))),
            "in a layer's `call`",
        ),
    ],
)
def test_arguments_that_mean_nothing_are_refused(refused, message):
    with pytest.raises(ValueError, match=message):
        refused()
