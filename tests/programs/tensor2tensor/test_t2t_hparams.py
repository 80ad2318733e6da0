"""tensor2tensor's recipe, field by field against the hparams that tensor2tensor itself prints."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pytest

import t2tlite.hparams  # noqa: F401  (registers the sets)
from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.training.train_step import make_optimizer

SETS = {"transformer_base_t2t": "transformer_base", "transformer_big_t2t": "transformer_big"}

SAME = {  # of the same name, value and meaning in both
    "hidden_size", "filter_size", "num_hidden_layers", "num_encoder_layers", "num_decoder_layers", "num_heads",
    "attention_key_channels", "attention_value_channels", "layer_preprocess_sequence", "layer_postprocess_sequence",
    "norm_epsilon", "shared_embedding_and_softmax_weights", "use_target_space_embedding",
    "layer_prepostprocess_dropout", "attention_dropout", "relu_dropout", "label_smoothing",
    "batch_size",  # tokens of the longer side, padding counted, on each GPU
    "max_length", "min_length_bucket", "length_bucket_step",
    "learning_rate_schedule", "learning_rate_constant", "learning_rate_warmup_steps",
    "optimizer_adam_beta1", "optimizer_adam_beta2", "optimizer_adam_epsilon",
}  # fmt: skip

TRANSLATED = {  # of another name, or with other values
    "pos": lambda theirs: {"timing": "timing_halves"}[theirs["pos"]],
    "accumulate_steps": lambda theirs: theirs["optimizer_multistep_accumulate_steps"] or 1,  # 0: none accumulated
    "dtype_policy": lambda theirs: {("float32", "float32"): "float32"}[
        theirs["activation_dtype"], theirs["weight_dtype"]
    ],
}

NO_COUNTERPART = {
    "train_steps",  # a flag of its trainer
    "jit_compile",  # a flag of its trainer as well
    "self_attention_radius",  # there, local attention is a function of its own
    "global_batch_tokens",  # there, the batch grows with the number of GPUs
}

# What our models always do, and where tensor2tensor has a choice: its choice must be ours.
ALWAYS = {
    "optimizer": "adam",
    "norm_type": "layer",
    "ffn_layer": "dense_relu_dense",
    "self_attention_type": "dot_product",
    "multiply_embedding_mode": "sqrt_depth",
    "proximity_bias": False,
    "symbol_dropout": 0.0,
    "clip_grad_norm": 0.0,
    "weight_decay": 0.0,
    "weight_noise": 0.0,
    "grad_noise_scale": 0.0,
    "scheduled_sampling_prob": 0.0,
    "max_relative_position": 0,
    "attention_dropout_broadcast_dims": "",
    "relu_dropout_broadcast_dims": "",
    "layer_prepostprocess_dropout_broadcast_dims": "",
    "causal_decoder_self_attention": True,
    "unidirectional_encoder": False,
    "parameter_attention_key_channels": 0,
    "parameter_attention_value_channels": 0,
    "factored_logits": False,
    "min_length": 0,
    "vocab_divisor": 1,
}


@pytest.fixture
def theirs(fixtures, name):
    return json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())[SETS[name]]


def test_every_field_is_accounted_for():
    fields = {field.name for field in dataclasses.fields(HParams)}
    kinds = (SAME, set(TRANSLATED), NO_COUNTERPART)
    assert set().union(*kinds) == fields
    assert sum(map(len, kinds)) == len(fields)


@pytest.mark.parametrize("name", SETS)
def test_fields_equal_tensor2tensors(theirs, name):
    ours = dataclasses.asdict(registry.hparams(name))
    expected = {field: theirs[field] for field in SAME} | {field: f(theirs) for field, f in TRANSLATED.items()}
    assert {field: ours[field] for field in expected} == expected
    assert not NO_COUNTERPART & theirs.keys()


@pytest.mark.parametrize("name", SETS)
def test_what_is_no_field_here_is_the_same_there(theirs, name):
    assert {field: theirs[field] for field in ALWAYS} == ALWAYS


def test_steps_are_the_papers():
    for name, papers in (("transformer_base_t2t", "transformer_base"), ("transformer_big_t2t", "transformer_big")):
        assert registry.hparams(name).train_steps == registry.hparams(papers).train_steps


@pytest.mark.parametrize("name", SETS)
def test_learning_rates_equal_tensor2tensors(fixtures, name):
    hparams = registry.hparams(name)
    sets = json.loads((fixtures / "tensor2tensor" / "lr.json").read_text())["sets"]
    theirs = sets[f"{SETS[name]}/hidden{hparams.hidden_size}"]
    optimizer = make_optimizer(hparams)
    optimizer.build([])
    ours = []
    for step in theirs["steps"]:  # completed updates
        optimizer.iterations.assign(step)
        ours.append(float(optimizer.learning_rate))
    assert theirs["steps"][:2] == [0, 1]
    np.testing.assert_allclose(ours, theirs["values"], rtol=3e-7)  # both in float32
    assert ours[0] == 0.0
