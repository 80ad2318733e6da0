"""What holds of the Transformer and its two layers: dtypes, and batches of any size.
test_keras_models.py has the same of the layers inside.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import keras
import numpy as np
import pytest
from numpy_attention import normal, randomise

from t2tlite.config import HParams
from t2tlite.layers.attention import padding_mask
from t2tlite.models.transformer import Transformer
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer

# B batch, S source length, T target length, D hidden size

HIDDEN, VOCAB = 8, 11
SOURCES = np.array([[5, 9, 3, 7, 1], [8, 1, 0, 0, 0]], np.int32)  # [B, S]
TARGETS = np.array([[6, 2, 1], [3, 8, 1]], np.int32)  # [B, T]
X, MEMORY = normal(2, 3, HIDDEN), normal(2, 5, HIDDEN)  # [B, T, D], [B, S, D]
PADDING_MASK = np.asarray(padding_mask(SOURCES))
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
RESTRICTED = dataclasses.replace(HPARAMS, self_attention_radius=2)


@dataclasses.dataclass(frozen=True)
class Case:
    """A class with hparams and sizes of vocabularies, and what it is called with: ids,
    masks, or vectors [B, T, D], which have the compute dtype.
    """

    layer: type[keras.layers.Layer]
    hparams: HParams
    inputs: tuple[np.ndarray, ...]
    sizes: Mapping[str, int] = dataclasses.field(default_factory=dict)

    def make(self, policy: str = "float32") -> keras.layers.Layer:
        if self.sizes:
            hparams = dataclasses.replace(self.hparams, dtype_policy=policy)
            return self.layer(hparams, **self.sizes)
        return self.layer(self.hparams, dtype=policy)

    def call(self, layer: keras.layers.Layer, **options: Any) -> np.ndarray:
        inputs = []
        for x in self.inputs:
            is_vector = x.ndim == 3
            inputs.append(keras.ops.cast(x, layer.compute_dtype) if is_vector else x)
        return layer(*inputs, **options)


def model(hparams: HParams, source_vocab_size: int = VOCAB) -> Case:
    sizes = {"source_vocab_size": source_vocab_size, "target_vocab_size": VOCAB}
    return Case(Transformer, hparams, (SOURCES, TARGETS), sizes)


ENCODED = (MEMORY, PADDING_MASK)
CASES = {
    "encoder": Case(EncoderLayer, HPARAMS, ENCODED),
    "restricted_encoder": Case(EncoderLayer, RESTRICTED, ENCODED),
    "decoder": Case(DecoderLayer, PRE_NORM, (X, *ENCODED)),
    "restricted_decoder": Case(DecoderLayer, RESTRICTED, (X, *ENCODED)),
}
MODELS = {
    "transformer": model(HPARAMS),
    "pre_norm": model(PRE_NORM),
    "restricted": model(RESTRICTED),
    "unshared": model(UNSHARED, 13),
}
SLOW = [pytest.param(MODELS[name], id=name, marks=pytest.mark.slow) for name in MODELS]


@pytest.fixture(params=[*(pytest.param(CASES[name], id=name) for name in CASES), *SLOW])
def case(request) -> Case:
    return request.param


@pytest.mark.parametrize("policy", ["mixed_bfloat16", "mixed_float16"])
def test_weights_stay_float32_and_outputs_have_the_compute_dtype(case, policy):
    layer = case.make(policy)
    output = case.call(layer)
    # logits are float32
    expected = "float32" if case.sizes else policy.removeprefix("mixed_")
    assert keras.backend.standardize_dtype(output.dtype) == expected
    assert {variable.dtype for variable in layer.weights} == {"float32"}


def test_batch_and_lengths_may_be_unknown(case):
    """As in a functional model, whose inputs are [None, None, ...]."""
    layer = case.make()
    case.call(layer)
    randomise(layer)
    symbolic = []
    for x in case.inputs:
        # ids, vectors, masks
        lengths = {2: (None,), 3: (None, x.shape[-1]), 4: (1, None, None)}[x.ndim]
        symbolic.append(keras.Input(lengths, dtype=x.dtype.name))
    output = layer(*symbolic)
    expected = np.asarray(case.call(layer))
    assert output.shape == (None, None, expected.shape[-1])
    model = keras.Model(symbolic, output)
    for rows in (slice(0, 2), slice(0, 1)):
        output = np.asarray(model([x[rows] for x in case.inputs]))
        np.testing.assert_allclose(output, expected[rows], rtol=1e-4, atol=1e-4)
