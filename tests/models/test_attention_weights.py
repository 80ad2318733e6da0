"""The weights that Transformer.attention returns are those of the paper's formulas, written once more in NumPy."""

from __future__ import annotations

import keras
import numpy as np
import pytest

from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer, build_transformer

# B batch, S source length, T target length, D hidden size, H heads, K head size

SIZE = "hidden_size=12,filter_size=16,num_heads=3,max_length=16"
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
VARIANTS = {
    "post_norm": "num_encoder_layers=2,num_decoder_layers=1",
    "pre_norm": f"num_encoder_layers=1,num_decoder_layers=2,pos=emb,attention_key_channels=6,{PRE_NORM}",
}
VOCAB = 11
SOURCES = np.array([[5, 9, 3, 7, 1], [8, 1, 0, 0, 0]], np.int32)
TARGETS = np.array([[6, 2, 9, 1], [3, 8, 5, 1]], np.int32)


def make(changes: str) -> Transformer:
    """A tiny model in which no weight is at its initial zero or one, so that attention is far from even."""
    keras.utils.set_random_seed(1)
    model = build_transformer(HParams().override(f"{SIZE},{changes}"), VOCAB, VOCAB)
    random = np.random.default_rng(1)
    for variable in model.variables:
        variable.assign_add(0.2 * random.normal(size=variable.shape).astype(np.float32))
    return model


class InNumpy:
    """The model in NumPy, at double precision, for one sentence without padding."""

    def __init__(self, model: Transformer) -> None:
        self.model, self.pre_norm = model, model.hparams.pre_norm
        self.weights: list[np.ndarray] = []  # of each attention, in the order of their computation

    def run(self, source: np.ndarray, target: np.ndarray) -> list[np.ndarray]:
        memory = self.embed(source, self.model.source_positions, shifted=False)
        for layer in self.model.encoder_layers:
            memory = self.sublayer(memory, layer.self_attention_residual, self.attention(layer.self_attention))
            memory = self.sublayer(memory, layer.feed_forward_residual, self.feed_forward(layer.feed_forward))
        if self.pre_norm:
            memory = self.norm(memory, self.model.encoder_norm)
        x = self.embed(target, self.model.target_positions, shifted=True)
        for layer in self.model.decoder_layers:
            x = self.sublayer(x, layer.self_attention_residual, self.attention(layer.self_attention, causal=True))
            x = self.sublayer(x, layer.cross_attention_residual, self.attention(layer.cross_attention, memory))
            x = self.sublayer(x, layer.feed_forward_residual, self.feed_forward(layer.feed_forward))
        return self.weights

    def embed(self, ids, positions, shifted):
        x = np.asarray(self.model.target_embedding.weight, np.float64)[ids] * np.sqrt(12)
        if shifted:  # position t reads token t - 1; a vector of zeros at the first
            x = np.concatenate([np.zeros((1, 12)), x[:-1]])
        if positions.kind == "emb":
            return x + np.asarray(positions.table)[: len(ids)]
        for position in range(len(ids)):  # section 3.5
            for i in range(6):
                angle = position / 10000 ** (2 * i / 12)
                x[position, 2 * i : 2 * i + 2] += np.sin(angle), np.cos(angle)
        return x

    def sublayer(self, x, residual, function):
        if self.pre_norm:
            return x + function(self.norm(x, residual.norm))
        return self.norm(x + function(x), residual.norm)

    def norm(self, x, layer):
        x = x - x.mean(-1, keepdims=True)
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + 1e-6) * np.asarray(layer.gamma) + np.asarray(layer.beta)

    def feed_forward(self, layer):
        inner, outer = ([np.asarray(v) for v in (part.kernel, part.bias)] for part in (layer.inner, layer.outer))
        return lambda x: np.maximum(x @ inner[0] + inner[1], 0) @ outer[0] + outer[1]

    def attention(self, layer, memory=None, causal=False):
        parts = [np.asarray(p.kernel, np.float64) for p in (layer.query, layer.key, layer.value)]
        output = np.asarray(layer.output_transform.kernel, np.float64)

        def function(x):
            looked_at = x if memory is None else memory
            queries, keys, values = (
                np.stack(np.split(y @ kernel, 3, axis=-1))  # [H, length, K]
                for y, kernel in zip((x, looked_at, looked_at), parts, strict=True)
            )
            scores = np.exp(queries @ keys.swapaxes(1, 2) / np.sqrt(keys.shape[-1]))  # [H, T, S]
            if causal:
                scores = np.tril(scores)
            weights = scores / scores.sum(-1, keepdims=True)
            self.weights.append(weights)
            return np.concatenate(list(weights @ values), axis=-1) @ output

        return function


@pytest.fixture(scope="module")
def post_norm() -> Transformer:
    return make(VARIANTS["post_norm"])


@pytest.mark.parametrize("name", VARIANTS)
def test_weights_equal_the_formulas(post_norm, name):
    model = post_norm if name == "post_norm" else make(VARIANTS[name])
    encoder, decoder, cross = model.attention(SOURCES[:1], TARGETS[:1])
    expected = InNumpy(model).run(SOURCES[0], TARGETS[0])
    computed = [*encoder, *(layer for pair in zip(decoder, cross, strict=True) for layer in pair)]
    assert len(computed) == len(expected) == model.hparams.encoder_layers + 2 * model.hparams.decoder_layers
    assert len(encoder) == model.hparams.encoder_layers
    for weights, numpy_weights in zip(computed, expected, strict=True):
        np.testing.assert_allclose(np.asarray(weights)[0], numpy_weights, atol=2e-5)  # rounding: below 1e-6
        assert numpy_weights[:, -1].max() > 0.35  # even attention, 0.2 or 0.25, would prove little


def test_rows_sum_to_one_and_masked_positions_have_no_weight(post_norm):
    encoder, decoder, cross = post_norm.attention(SOURCES, TARGETS)
    for weights in (*encoder, *decoder, *cross):
        np.testing.assert_allclose(np.asarray(weights).sum(-1), 1.0, atol=1e-5)
    for weights in decoder:
        assert (np.triu(np.asarray(weights), 1) == 0).all()
    for weights in (*encoder, *cross):
        assert (np.asarray(weights)[1, :, :, 2:] == 0).all()  # padding
    assert [np.asarray(weights).shape for weights in (encoder[0], decoder[0], cross[0])] == [
        (2, 3, 5, 5),
        (2, 3, 4, 4),
        (2, 3, 4, 5),
    ]


def test_weights_are_float32_whatever_the_model_computes_in():
    for stack in make(VARIANTS["post_norm"] + ",dtype_policy=mixed_bfloat16").attention(SOURCES, TARGETS):
        for weights in stack:
            assert np.asarray(weights).dtype == np.float32
            np.testing.assert_allclose(np.asarray(weights).sum(-1), 1.0, atol=1e-5)


def test_dropout_does_not_reach_the_weights():
    model = make(VARIANTS["post_norm"] + ",attention_dropout=0.5,layer_prepostprocess_dropout=0.5")
    first, second = (model.attention(SOURCES, TARGETS) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        np.testing.assert_array_equal(a, b)
