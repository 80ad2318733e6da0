"""What holds of every layer and of the model: a config it can be made from again,
dtypes, and batches of any size.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Any

import keras
import numpy as np
import pytest
from numpy_attention import normal, randomise

from t2tlite.config import HParams
from t2tlite.layers.attention import MultiHeadAttention, padding_mask
from t2tlite.layers.embedding import Embedding, Positions
from t2tlite.layers.restricted_attention import RestrictedAttention
from t2tlite.layers.sublayer import Dropout, FeedForward, LayerNormalization, Residual
from t2tlite.models.transformer import Transformer
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer

# B batch, S source length, T target length, D hidden size

HIDDEN, VOCAB = 8, 11
SOURCES = np.array([[5, 9, 3, 7, 1], [8, 1, 0, 0, 0]], np.int32)  # [B, S]
TARGETS = np.array([[6, 2, 1], [3, 8, 1]], np.int32)  # [B, T]
HPARAMS = HParams(
    hidden_size=HIDDEN,
    filter_size=12,
    num_heads=2,
    num_hidden_layers=1,
    attention_key_channels=6,
    attention_value_channels=10,
    attention_dropout=0.2,
    relu_dropout=0.3,
    max_length=16,
)
PRE_NORM = dataclasses.replace(
    HPARAMS,
    layer_preprocess_sequence="n",
    layer_postprocess_sequence="da",
    pos="emb",
    use_target_space_embedding=True,
)
UNSHARED = dataclasses.replace(HPARAMS, shared_embedding_and_softmax_weights=False)
POLICIES = ["mixed_bfloat16", "mixed_float16"]


@keras.saving.register_keras_serializable("tests")
class ResidualTanh(Residual):
    """A residual connection around tanh."""

    def call(self, x: Any, seed: Any = None) -> Any:
        return self.leave(x, keras.ops.tanh(self.enter(x)), seed=seed)


@dataclasses.dataclass(frozen=True)
class Case:
    """A layer's class with arguments, and what it is called with.

    Args:
        arguments: of the constructor, by name.
        inputs: ids, masks, or vectors [B, T, D]. Of these only vectors have the layer's compute dtype.
        options: other arguments of the call.
        has_dropout: whether the layer takes a seed.
    """

    layer: Callable[..., keras.layers.Layer]
    arguments: Mapping[str, Any]
    inputs: tuple[np.ndarray, ...]
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    has_dropout: bool = True

    def make(self, policy: str = "float32") -> keras.layers.Layer:
        if self.layer is Transformer:
            hparams = dataclasses.replace(
                self.arguments["hparams"], dtype_policy=policy
            )
            return Transformer(**{**self.arguments, "hparams": hparams})
        return self.layer(**self.arguments, dtype=policy)

    def call(
        self, layer: keras.layers.Layer, rows: slice = slice(None), **options: Any
    ) -> Any:
        inputs = [x[rows] if len(x) > 1 else x for x in self.inputs]
        inputs = [
            keras.ops.cast(x, layer.compute_dtype) if x.ndim == 3 else x for x in inputs
        ]
        return layer(*inputs, **self.options, **options)


X, MEMORY = normal(2, 3, HIDDEN), normal(2, 5, HIDDEN)  # [B, T, D], [B, S, D]
PADDING_MASK = np.asarray(padding_mask(SOURCES))
SIZES = {"source_vocab_size": VOCAB, "target_vocab_size": VOCAB}
TWO_SIZES = {"source_vocab_size": 13, "target_vocab_size": VOCAB}

ARGUMENTS = {
    "hidden_size": HIDDEN,
    "num_heads": 2,
    "key_channels": 6,
    "value_channels": 10,
    "dropout": 0.2,
}
RESTRICTED = dataclasses.replace(HPARAMS, self_attention_radius=2)

CASES = {
    "attention": Case(
        MultiHeadAttention,
        {**ARGUMENTS, "causal": False},
        (X, MEMORY, PADDING_MASK),
    ),
    "restricted_attention": Case(
        RestrictedAttention,
        {**ARGUMENTS, "radius": 2, "causal": True},
        (MEMORY, MEMORY, PADDING_MASK),
    ),
    "dropout": Case(Dropout, {"rate": 0.5}, (X,)),
    "embedding": Case(
        Embedding,
        {"vocab_size": VOCAB, "hidden_size": HIDDEN},
        (SOURCES,),
        has_dropout=False,
    ),
    "sinusoids": Case(
        Positions, {"kind": "timing", "hidden_size": HIDDEN}, (X,), has_dropout=False
    ),
    "learned_positions": Case(
        Positions,
        {"kind": "emb", "hidden_size": HIDDEN, "max_positions": 16},
        (X,),
        {"start": 2},
        has_dropout=False,
    ),
    "feed_forward": Case(
        FeedForward, {"hidden_size": HIDDEN, "filter_size": 12, "dropout": 0.3}, (X,)
    ),
    "layer_normalisation": Case(
        LayerNormalization, {"epsilon": 1e-5}, (X,), has_dropout=False
    ),
    "post_norm": Case(
        ResidualTanh, {"dropout": 0.1, "pre_norm": False, "epsilon": 1e-5}, (X,)
    ),
    "pre_norm": Case(
        ResidualTanh, {"dropout": 0.1, "pre_norm": True, "epsilon": 1e-6}, (X,)
    ),
    "encoder_layer": Case(EncoderLayer, {"hparams": HPARAMS}, (MEMORY, PADDING_MASK)),
    "restricted_encoder_layer": Case(
        EncoderLayer, {"hparams": RESTRICTED}, (MEMORY, PADDING_MASK)
    ),
    "restricted_decoder_layer": Case(
        DecoderLayer, {"hparams": RESTRICTED}, (X, MEMORY, PADDING_MASK)
    ),
    "decoder_layer": Case(
        DecoderLayer, {"hparams": PRE_NORM}, (X, MEMORY, PADDING_MASK)
    ),
    "transformer": Case(Transformer, {"hparams": HPARAMS, **SIZES}, (SOURCES, TARGETS)),
    "transformer_pre_norm": Case(
        Transformer, {"hparams": PRE_NORM, **SIZES}, (SOURCES, TARGETS)
    ),
    "transformer_restricted": Case(
        Transformer, {"hparams": RESTRICTED, **SIZES}, (SOURCES, TARGETS)
    ),
    "transformer_unshared": Case(
        Transformer, {"hparams": UNSHARED, **TWO_SIZES}, (SOURCES, TARGETS)
    ),
}


# in make test-all
MODELS = (
    "transformer",
    "transformer_pre_norm",
    "transformer_restricted",
    "transformer_unshared",
)


@pytest.fixture(
    params=[
        pytest.param(CASES[name], id=name, marks=[pytest.mark.slow] * (name in MODELS))
        for name in CASES
    ]
)
def case(request) -> Case:
    return request.param


def test_the_config_holds_the_arguments(case):
    config = case.make().get_config()
    for name, value in case.arguments.items():
        assert config[name] == (
            dataclasses.asdict(value) if name == "hparams" else value
        )


@pytest.mark.parametrize(
    "policy",
    ["float32", *(pytest.param(policy, marks=pytest.mark.slow) for policy in POLICIES)],
)
def test_a_layer_is_made_again_from_its_config(case, policy):
    layer = case.make(policy)
    config = json.loads(json.dumps(layer.get_config()))
    assert config == layer.get_config()
    by_name = keras.saving.deserialize_keras_object(
        json.loads(json.dumps(keras.saving.serialize_keras_object(layer)))
    )
    for again in (type(layer).from_config(config), by_name):
        assert type(again) is type(layer)
        assert again.get_config() == config
        assert (again.name, again.dtype_policy.name) == (layer.name, policy)


def test_layer_made_again_computes_the_same(case):
    layer = case.make()
    case.call(layer)
    randomise(layer)
    again = type(layer).from_config(layer.get_config())
    case.call(again)
    again.set_weights(layer.get_weights())
    np.testing.assert_array_equal(case.call(again), case.call(layer))
    if case.has_dropout:
        seed = keras.ops.array([1, 2], "int32")
        np.testing.assert_array_equal(
            case.call(again, seed=seed), case.call(layer, seed=seed)
        )
        assert (
            np.abs(
                np.asarray(case.call(layer, seed=seed)) - np.asarray(case.call(layer))
            ).max()
            > 0.01
        )


@pytest.mark.parametrize(
    "policy", ["mixed_bfloat16", pytest.param("mixed_float16", marks=pytest.mark.slow)]
)
def test_weights_stay_float32_and_outputs_have_the_compute_dtype(case, policy):
    layer = case.make(policy)
    output = case.call(layer)
    # logits are float32
    expected = "float32" if case.layer is Transformer else policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(output.dtype) == expected
    assert {variable.dtype for variable in layer.weights} <= {"float32"}


def test_batch_and_lengths_may_be_unknown(case):
    """As in a functional model, whose inputs are [None, None, ...]."""
    layer = case.make()
    case.call(layer)
    randomise(layer)
    symbolic = []
    for x in case.inputs:
        # ids, vectors, masks
        lengths = {2: (None,), 3: (None, x.shape[-1]), 4: (1, None, None)}[x.ndim]
        symbolic.append(
            keras.Input(lengths, dtype=keras.backend.standardize_dtype(x.dtype))
        )
    output = layer(*symbolic, **case.options)
    expected = np.asarray(case.call(layer))
    assert output.shape[0] is None
    assert output.shape[-1] == expected.shape[-1]
    model = keras.Model(symbolic, output)
    for rows in (slice(0, 2), slice(0, 1)):
        output = np.asarray(model([x[rows] if len(x) > 1 else x for x in case.inputs]))
        np.testing.assert_allclose(output, expected[rows], rtol=1e-4, atol=1e-4)
