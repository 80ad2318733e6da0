"""tensor2tensor's hparams.json turned into HParams: what is taken, noted and
refused.
"""

import dataclasses
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

import t2tlite.hparams  # noqa: F401  (registers the sets)
from t2tlite import registry
from t2tlite.checked_fields import facts_of
from t2tlite.config import HParams
from t2tlite.programs.tensor2tensor.hparams import (
    NOTED,
    READ,
    REQUIRED_VALUES,
    convert_hparams,
)
from t2tlite.schedules import T2T_SCHEDULE
from t2tlite.training.learning_rates import make_optimizer

FIELDS = dataclasses.fields(HParams)

SMALLEST = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
}

# or other values
OTHER_NAMES = ("pos", "learning_rate_schedule", "learning_rate_constant", "train_steps")
SAME = [
    field.name
    for field in FIELDS
    if facts_of(field).t2t and field.name not in OTHER_NAMES
]


@pytest.fixture(scope="module")
def sets(fixtures):
    """Every hparam of 30 of tensor2tensor's sets, by the set's name."""
    return json.loads((fixtures / "tensor2tensor" / "hparams.json").read_text())


def converted(**changes):
    return convert_hparams(SMALLEST | changes)


def same_fields(hparams):
    return {name: getattr(hparams, name) for name in SAME}


@pytest.mark.parametrize("size", ["base", "big"])
def test_our_sets_are_tensor2tensors(sets, size):
    """But for the number of steps, which is the paper's."""
    ours, papers = (
        registry.get_hparams(f"transformer_{size}_t2t"),
        registry.get_hparams(f"transformer_{size}"),
    )
    theirs, notes = convert_hparams(sets[f"transformer_{size}"])
    assert dataclasses.replace(ours, train_steps=theirs.train_steps) == theirs
    assert notes == []  # what its training does and ours cannot
    assert ours.train_steps == papers.train_steps


def test_what_has_no_effect_may_have_any_value(sets):
    names = set(sets["transformer_base"]) - {*READ, *REQUIRED_VALUES, *NOTED}
    assert len(names) > 80
    for name in [*names, "unknown"]:
        assert convert_hparams(
            sets["transformer_base"] | {name: ["another"]}
        ) == convert_hparams(sets["transformer_base"])


def test_the_sets(sets):
    assert len(sets) == 30
    for name, theirs in sets.items():
        hparams, notes = convert_hparams(theirs)
        assert notes == [], name
        assert same_fields(hparams) == {field: theirs[field] for field in SAME}, name
        assert (hparams.pos, hparams.accumulate_steps, hparams.dtype_policy) == (
            "timing_halves",
            1,
            "float32",
        )


def rates(hparams, steps):
    """Our learning rates when so many updates are done."""
    optimizer = make_optimizer(SimpleNamespace(hparams=hparams, trainable_variables=[]))
    values = []
    for step in steps:
        optimizer.iterations.assign(step)
        values.append(float(optimizer.learning_rate))
    return values


def test_learning_rates(sets, fixtures):
    """Of every schedule in lr.json, at every step, the first included."""
    entries = json.loads((fixtures / "tensor2tensor" / "lr.json").read_text())["sets"]
    assert len(entries) == 20
    schedules = set()
    for name, theirs in entries.items():
        hparams, notes = convert_hparams(
            sets["transformer_base"]
            | {
                "hidden_size": int(name.split("/hidden")[1]),
                "learning_rate_schedule": theirs["schedule"],
                "learning_rate_constant": theirs["constant"],
                "learning_rate": theirs["learning_rate"],
                "learning_rate_warmup_steps": theirs["warmup"],
                "learning_rate_decay_scheme": theirs["decay_scheme"],
            }
        )
        assert notes == [], name
        np.testing.assert_allclose(
            rates(hparams, theirs["steps"]), theirs["values"], rtol=3e-7, err_msg=name
        )
        schedules.add(theirs["schedule"])
    assert schedules == {"legacy", "constant*linear_warmup*rsqrt_decay", T2T_SCHEDULE}


def test_learning_rates_of_a_training(t2t):
    with np.load(t2t / "train_trajectory_postnorm.npz") as data:
        hparams, _ = convert_hparams(json.loads(str(data["hparams"])))
        assert len(data["learning_rates"]) == 20
        np.testing.assert_allclose(
            rates(hparams, range(20)), data["learning_rates"], rtol=3e-7
        )


def test_missing_hparams_are_transformer_bases(sets):
    assert convert_hparams(SMALLEST) == convert_hparams(sets["transformer_base"])


def test_before_there_were_schedules_all_were_legacy(sets):
    old = {
        name: value
        for name, value in sets["transformer_base_v2"].items()
        if name != "learning_rate_schedule"
    }
    assert convert_hparams(old) == convert_hparams(sets["transformer_base_v2"])


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pos": "none"}, {"pos": "none"}),
        *(({"optimizer": name}, {}) for name in ("Adam", "true_adam", "TrueAdam")),
        ({"learning_rate_schedule": "constant * linear_warmup * rsqrt_decay * rsqrt_hidden_size"},
         {"learning_rate_schedule": T2T_SCHEDULE, "learning_rate_constant": 2.0}),
        ({"layer_preprocess_sequence": "", "layer_postprocess_sequence": "dan"},
         {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan"}),
        ({"shared_embedding_and_softmax_weights": 0}, {"shared_embedding_and_softmax_weights": False}),
        ({"use_target_space_embedding": 0}, {"use_target_space_embedding": False}),
        ({"proximity_bias": 0, "causal_decoder_self_attention": 1}, {}),
        ({"ffn_layer": "conv_hidden_relu"}, {}),
        ({"shared_embedding": True}, {}),  # and the softmax's table shared as well
        ({"layer_prepostprocess_dropout": 0, "label_smoothing": 0},
         {"layer_prepostprocess_dropout": 0.0, "label_smoothing": 0.0}),
        ({"optimizer": "multistep_adam", "optimizer_multistep_accumulate_steps": 8, "train_steps": 250_000},
         {"accumulate_steps": 8, "train_steps": 31_250}),
        ({"num_decoder_layers": 2}, {"num_decoder_layers": 2}),
        ({"optimizer": "MultistepAdam", "optimizer_multistep_accumulate_steps": 1}, {}),
        ({"max_length": 0, "batch_size": 1024}, {"max_length": 1024, "batch_size": 1024}),
        ({"clip_grad_norm": 2.5, "weight_decay": 0.01}, {"clip_grad_norm": 2.5, "weight_decay": 0.01}),
        ({"max_length": 1024, "batch_size": 1024}, {"max_length": 1024, "batch_size": 1024}),
    ],
)  # fmt: skip
def test_converted(changes, expected):
    assert converted(**changes) == (dataclasses.replace(converted()[0], **expected), [])


DEFAULT_RATE = {
    "learning_rate_schedule": "noam", "learning_rate_constant": 1.0, "learning_rate_warmup_steps": 4000
}  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "name", "instead", "expected"),
    [
        ({"optimizer": "adam_w", "weight_decay": 0.01}, "optimizer",
         "its L2 loss weight_decay, but no decay of 0.01 x rate", {"weight_decay": 0.01}),
        ({"weight_decay": -0.1}, "weight_decay", "0.0", {}),
        ({"shared_embedding": True, "shared_embedding_and_softmax_weights": False}, "shared_embedding",
         "separate source and target embeddings", {"shared_embedding_and_softmax_weights": False}),
        ({"optimizer": "adafactor"}, "optimizer", "Adam, at its default learning rate", DEFAULT_RATE),
        ({"learning_rate_schedule": "linear_warmup*constant*cosdecay", "learning_rate_warmup_steps": 100},
         "learning_rate_schedule", "its default learning rate", DEFAULT_RATE),
        ({"learning_rate_schedule": "legacy", "learning_rate_decay_scheme": "sqrt"},
         "learning_rate_schedule", "its default learning rate", DEFAULT_RATE),
        ({"optimizer_multistep_accumulate_steps": 8}, "optimizer_multistep_accumulate_steps", "1", {}),
        ({"use_fixed_batch_size": True, "batch_size": 64}, "use_fixed_batch_size", "4096 tokens in a batch", {}),
        ({"max_length": 1024, "batch_size": 512}, "max_length", "512", {"max_length": 512, "batch_size": 512}),
        ({"max_length": -1}, "max_length", "256", {}),
        ({"attention_dropout": 1.0}, "attention_dropout", "0.0", {"attention_dropout": 0.0}),
        ({"learning_rate_warmup_steps": 0}, "learning_rate_warmup_steps", "4000", {"learning_rate_warmup_steps": 4000}),
        ({"train_steps": 0}, "train_steps", "100000", {}),
        *(({name: "another"}, name, repr(usual), {}) for name, usual in NOTED.items()),
    ],
)  # fmt: skip
def test_noted(changes, name, instead, expected):
    note = f"{name}={changes[name]}: t2tlite trains with {instead}."
    ours = dataclasses.replace(converted()[0], **expected)
    assert converted(**changes) == (ours, [note])


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
        ("pos", "timing_halves", "'timing' or 'none'"),  # ours
        ("hidden_size", 512.0, "a whole number"),
        ("num_heads", True, "a whole number"),
        ("num_encoder_layers", None, "a whole number"),
        ("norm_epsilon", "1e-6", "a number"),
        ("layer_preprocess_sequence", ["n"], "text"),
        ("use_target_space_embedding", 2, "true or false"),
        ("shared_embedding", [], "true or false"),
        ("learning_rate_constant", False, "a number"),
        ("train_steps", "many", "a whole number"),
    ],
)
def test_refused(name, value, required):
    message = re.escape(f"Received:\n  {name}={value!r}: must be {required}.")
    with pytest.raises(ValueError, match=f"{message}$"):
        converted(**{name: value})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"layer_postprocess_sequence": "dan"},
            "layer_preprocess_sequence and layer_postprocess_sequence must be none and",
        ),
        ({"layer_preprocess_sequence": "nd"}, "layer_preprocess_sequence must be one"),
        ({"filter_size": 0}, "filter_size must be at least 1. Received: 0."),
        ({"norm_epsilon": float("inf")}, "norm_epsilon must be at most"),
        (
            {"hidden_size": 511, "num_heads": 1},
            "hidden_size must be even with this pos",
        ),
    ],
)
def test_models_that_cannot_be(changes, message):
    """What HParams refuses is one of the reasons."""
    with pytest.raises(ValueError, match=re.escape(f"Received:\n  {message}")):
        converted(**changes)


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
        "The model must be one that t2tlite has. Received:",
        "  pos='emb': must be 'timing' or 'none'.",
        "  ffn_layer='sru': must be 'dense_relu_dense' or 'conv_hidden_relu'.",
        "  norm_type='batch': must be 'layer'.",
        "  hidden_size='512': must be a whole number.",
        "  filter_size=None: must be a whole number.",
        "  learning_rate='fast': must be a number.",
    ]
