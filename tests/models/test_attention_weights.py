"""The weights that Transformer.attention returns are those of the paper's formulas,
written once more in NumPy.
"""

from typing import Any

import numpy as np
import pytest
from numpy_transformer import POST_NORM, NumpyTransformer, small_model
from tensor2tensor_checkpoint import load

from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer

# S source length, T target length

VARIANTS = {
    "post_norm": {
        "num_encoder_layers": 2,
        "num_decoder_layers": 1,
        "use_target_space_embedding": False,
        **POST_NORM,
    },
    "pre_norm": {
        "num_encoder_layers": 1,
        "num_decoder_layers": 2,
        "pos": "emb",
        "attention_key_channels": 6,
    },
}
SOURCES = np.array([[5, 9, 3, 7, 1], [8, 1, 0, 0, 0]], np.int32)
TARGETS = np.array([[6, 2, 9, 1], [3, 8, 5, 1]], np.int32)


SIDE = {"encoder": "source", "decoder": "target"}


class InNumpy(NumpyTransformer):
    """tensor2tensor's model, but with the position vectors of a model of t2tlite's."""

    def __init__(self, model: Transformer, variables: dict, hparams: dict) -> None:
        super().__init__(variables, hparams, (41, 41))
        self.model = model

    def positions(self, stack: str, length: int, width: int) -> np.ndarray:
        if self.model.hparams.pos == "emb":
            layer = getattr(self.model, f"{SIDE[stack]}_positions")
            return np.asarray(layer.table)[:length]
        i = np.arange(width)  # section 3.5; cos x = sin (x + pi / 2)
        return np.sin(
            np.arange(length)[:, None] / 10000 ** (2 * (i // 2) / width)
            + np.pi / 2 * (i % 2)
        )


def make(name: str, **changes: Any) -> tuple[Transformer, InNumpy]:
    """A model in which no weight is at its initial zero or one, and attention is far
    from even; and in NumPy.
    """
    hparams, variables = small_model(**VARIANTS[name], **changes)
    for variable in variables:
        if variable.endswith("/q/kernel"):
            variables[variable] = 6 * variables[variable]
    model = load(HParams(**hparams, max_length=16), variables, target_space=0)
    return model, InNumpy(model, variables, hparams)


@pytest.fixture(scope="module")
def post_norm() -> Transformer:
    return make("post_norm")[0]


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_equal_the_formulas(name):
    model, in_numpy = make(name)
    encoder, decoder, cross = model.attention(SOURCES[:1], TARGETS[:1])
    in_numpy.sentence(SOURCES[0], TARGETS[0])
    computed = list(encoder)
    for pair in zip(decoder, cross, strict=True):
        computed += pair
    for weights, expected in zip(computed, in_numpy.weights, strict=True):
        # rounding: below 1e-6
        np.testing.assert_allclose(np.asarray(weights)[0], expected, atol=2e-5)
        # even attention, 0.2 or 0.25, would prove little
        assert expected[:, -1].max() > 0.35


def test_rows_sum_to_one_and_masked_positions_have_no_weight(post_norm):
    encoder, decoder, cross = post_norm.attention(SOURCES, TARGETS)
    for weights in (*encoder, *decoder, *cross):
        np.testing.assert_allclose(np.asarray(weights).sum(-1), 1.0, atol=1e-5)
    for weights in decoder:
        assert (np.triu(np.asarray(weights), 1) == 0).all()
    for weights in (*encoder, *cross):
        assert (np.asarray(weights)[1, :, :, 2:] == 0).all()  # padding
    stacks = (encoder, decoder, cross)
    shapes = [np.asarray(weights[0]).shape for weights in stacks]
    assert shapes == [(2, 2, 5, 5), (2, 2, 4, 4), (2, 2, 4, 5)]


@pytest.mark.parametrize(
    "changes",
    [
        {"dtype_policy": "mixed_bfloat16"},
        {"attention_dropout": 0.5, "layer_prepostprocess_dropout": 0.5},
    ],
)
def test_weights_are_float32_and_without_dropout(changes):
    model, _ = make("post_norm", **changes)
    first, second = (model.attention(SOURCES, TARGETS) for _ in range(2))
    for layers, again in zip(first, second, strict=True):
        assert np.asarray(layers[0]).dtype == np.float32
        np.testing.assert_allclose(np.asarray(layers).sum(-1), 1.0, atol=1e-5)
        np.testing.assert_array_equal(layers, again)
