"""Hparams of tensor2tensor's that t2tlite refuses, one by one and together."""

from __future__ import annotations

import re

import pytest

from t2tlite.programs.tensor2tensor.hparams import REQUIRED_VALUES, convert_hparams

SMALLEST = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
}


def converted(**changes):
    return convert_hparams(SMALLEST | changes)


@pytest.mark.parametrize(
    ("name", "value", "required"),
    [
        *(
            (name, "another", " or ".join(map(repr, values)))
            for name, values in REQUIRED_VALUES.items()
        ),
        ("ffn_layer", "local_moe", "'dense_relu_dense' or 'conv_hidden_relu'"),
        ("proximity_bias", True, "False"),
        ("loss", {"targets": "l2"}, "{}"),
        ("pos", "emb", "'timing' or 'none'"),
        ("pos", "timing_from_features", "'timing' or 'none'"),
        ("pos", "timing_halves", "'timing' or 'none'"),  # ours
        ("hidden_size", "512", "a whole number"),
        ("hidden_size", 512.0, "a whole number"),
        ("num_heads", True, "a whole number"),
        ("num_encoder_layers", None, "a whole number"),
        ("norm_epsilon", "1e-6", "a number"),
        ("layer_preprocess_sequence", ["n"], "text"),
        ("shared_embedding_and_softmax_weights", "true", "true or false"),
        ("use_target_space_embedding", 2, "true or false"),
        ("shared_embedding", [], "true or false"),
        ("relu_dropout", "0.1", "a number"),
        ("batch_size", 4096.5, "a whole number"),
        ("optimizer", 1, "text"),
        ("learning_rate_schedule", None, "text"),
        ("learning_rate_constant", False, "a number"),
        ("train_steps", "many", "a whole number"),
    ],
)
def test_refused(name, value, required):
    with pytest.raises(
        ValueError, match=re.escape(f"\n  {name}={value!r}: must be {required}.\n")
    ):
        converted(**{name: value})


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("n", "dan", "A sublayer normalises once"),
        ("none", "da", "A sublayer normalises once"),
        ("nd", "da", "layer_preprocess_sequence must be one of none, n."),
        ("", "n", "layer_postprocess_sequence must be one of dan, da."),
    ],
)
def test_other_normalisations_are_refused(before, after, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        converted(layer_preprocess_sequence=before, layer_postprocess_sequence=after)


def test_every_reason_is_reported():
    theirs = {
        "hidden_size": "512",
        "num_heads": 8,
        "num_hidden_layers": 6,
        "pos": "emb",
        "norm_type": "batch",
        "ffn_layer": "sru",
        "learning_rate": "fast",
        "attention_dropout": 1.0,  # of training alone: no reason
    }
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the whole message is compared)
        convert_hparams(theirs)
    assert str(caught.value).split("\n") == [
        "tensor2tensor's hparams must be those of a model that t2tlite has. Received:",
        "  filter_size is missing: a whole number is required.",
        "  pos='emb': must be 'timing' or 'none'.",
        "  ffn_layer='sru': must be 'dense_relu_dense' or 'conv_hidden_relu'.",
        "  norm_type='batch': must be 'layer'.",
        "  hidden_size='512': must be a whole number.",
        "  learning_rate='fast': must be a number.",
        "t2tlite cannot import this model; use it with tensor2tensor.",
    ]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"filter_size": 0}, "filter_size must be at least 1. Received: 0."),
        (
            {"num_decoder_layers": -1},
            "num_decoder_layers must be at least 0. Received: -1.",
        ),
        ({"norm_epsilon": float("nan")}, "norm_epsilon must be at least 0.0."),
        ({"norm_epsilon": float("inf")}, "norm_epsilon must be at most 1e+300."),
        (
            {"hidden_size": 511, "num_heads": 1},
            "hidden_size must be even for sinusoid positions. Received: 511.",
        ),
        (
            {"attention_key_channels": 100},
            "must be a multiple of num_heads. Received: 100 channels, num_heads=8.",
        ),
    ],
)
def test_models_that_cannot_be(changes, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        converted(**changes)


@pytest.mark.parametrize("name", SMALLEST)
def test_what_must_be_there(name):
    theirs = {other: value for other, value in SMALLEST.items() if other != name}
    with pytest.raises(
        ValueError, match=f"\n  {name} is missing: a whole number is required.\n"
    ):
        convert_hparams(theirs)


def test_layers_may_be_counted_for_each_stack():
    hparams, _ = converted(num_decoder_layers=2)
    assert (hparams.encoder_layers, hparams.decoder_layers) == (6, 2)
