"""Converts tensor2tensor's hparams.json into HParams, or refuses it.

tensor2tensor's hparams are of five kinds:
- MODEL: part of the model, and a field of HParams;
- REQUIRED_VALUES: part of the model, with the one value that t2tlite's model
  implements;
- TRAINING: part of training, and converted;
- NOTED: part of training, and reported to the user, since t2tlite trains differently;
- all others: without effect on the model `transformer` with REQUIRED_VALUES, and
  accepted with any value.

Source: tensor2tensor 1.15.7, where its model `transformer` and its trainer read each
hparam.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2tlite.checked_fields import KINDS, facts_of
from t2tlite.config import HParams
from t2tlite.json_depth import check_depth
from t2tlite.schedules import T2T_SCHEDULE

# of an hparam: true or false, a number or text, which is checked when it is read
Value = Any
FIELDS = dataclasses.fields(HParams)
FACTS = {field.name: facts_of(field) for field in FIELDS}
DEFAULTS = {field.name: field.default for field in FIELDS}

# MODEL and TRAINING have transformer_base's values, for files of older versions with
# fewer hparams. Most are the paper's, the defaults of HParams.
MODEL: dict[str, Value] = {
    name: DEFAULTS[name] for name, facts in FACTS.items() if facts.t2t and facts.model
} | {
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "use_target_space_embedding": True,
}
# written by every version
REQUIRED = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")
POSITIONS = {"timing": "timing_halves", "none": "none"}  # tensor2tensor's name -> ours

# The values that t2tlite's model implements; the first is the value of a file without
# the hparam.
REQUIRED_VALUES: dict[str, tuple[object, ...]] = {
    "self_attention_type": ("dot_product",),
    # two names of the same layer
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "norm_type": ("layer",),
    "multiply_embedding_mode": ("sqrt_depth",),
    "proximity_bias": (False,),
    "causal_decoder_self_attention": (True,),
    **dict.fromkeys(["unidirectional_encoder", "attention_variables_3d"], (False,)),
    **dict.fromkeys(["num_area_layers", "hard_attention_k"], (0,)),
    "prepend_mode": ("none",),
    "vocab_divisor": (1,),
    "pack_dataset": (False,),  # several pairs in one row of a batch
    # checkpoints hold bfloat16 weights as sign(w) (128 |w|)^8
    "weight_dtype": ("float32",),
    # These replace the embedding, the softmax or the loss of a feature; the last three
    # are of older versions.
    **dict.fromkeys(["bottom", "top", "name", "loss", "weights_fn"], ({},)),
    **dict.fromkeys(["input_modalities", "target_modality"], ("default",)),
    "symbol_modality_skip_top": (False,),
}

TRAINING: dict[str, Value] = {
    **{
        name: DEFAULTS[name]
        for name, facts in FACTS.items()
        if facts.t2t and not facts.model
    },
    **dict.fromkeys(["attention_dropout", "relu_dropout"], 0.1),
    "use_fixed_batch_size": False,
    "optimizer": "adam",
    "optimizer_adam_beta2": 0.997,
    "optimizer_multistep_accumulate_steps": 0,
    "learning_rate_schedule": T2T_SCHEDULE,
    "learning_rate_constant": 2.0,
    "learning_rate_warmup_steps": 8000,
    # this and the next only have an effect in the schedule "legacy"
    "learning_rate_decay_scheme": "noam",
    "learning_rate": 0.2,
    "shared_embedding": False,
}
# the optimizers with the same learning rates as ours
ADAMS = {"adam", "trueadam", "multistepadam", "adamw"}

_BROADCAST_DIMS = [
    f"{where}_dropout_broadcast_dims"
    for where in ("layer_prepostprocess", "attention", "relu")
]
_TRUNCATION = (
    "t2tlite truncates no sequences; it leaves pairs longer than max_length out of"
    " training."
)
_PRECISION = (
    "t2tlite computes in float32; the hparam dtype_policy chooses mixed precision."
)
# hparam -> (the value that is equivalent to t2tlite's training, the remark on any other
# value)
NOTED: dict[str, tuple[object, str]] = {
    "grad_noise_scale": (0.0, "t2tlite adds no noise to gradients."),
    "weight_noise": (0.0, "t2tlite adds no noise to weights."),
    "symbol_dropout": (0.0, "t2tlite does not drop tokens."),
    **dict.fromkeys(_BROADCAST_DIMS, ("", "t2tlite draws dropout for each element.")),
    "scheduled_sampling_prob": (0.0, "t2tlite trains with teacher forcing only."),
    "sampling_method": (
        "argmax",
        (
            "t2tlite decodes by beam search; --decode_hparams=sampling_method=random"
            " samples."
        ),
    ),
    "min_length": (0, "t2tlite trains on short pairs too."),
    **dict.fromkeys(
        ["max_input_seq_length", "max_target_seq_length"], (0, _TRUNCATION)
    ),
    **dict.fromkeys(
        ["split_to_length", "split_targets_chunk_length"],
        (0, "t2tlite does not split sequences."),
    ),
    "activation_dtype": ("float32", _PRECISION),
    "gpu_automatic_mixed_precision": (False, _PRECISION),
}


def read_hparams(path: Path) -> dict[str, Value]:
    """The content of an hparams.json of tensor2tensor; FileNotFoundError or ValueError
    if it is not one.
    """
    if not path.is_file():
        raise FileNotFoundError(
            "The hparams.json that tensor2tensor's trainer writes into --output_dir is"
            f" required. Received: {path}, which is not a file. Give the folder of its"
            " training."
        )
    try:
        text = path.read_text(encoding="utf-8")
        check_depth(text)
        values = json.loads(text)
        if not isinstance(values, dict):
            raise ValueError(f"a {type(values).__name__}")
    except ValueError as error:
        # also if the file is not JSON or not UTF-8
        raise ValueError(
            f"{path} must hold a JSON object. Received: {error}. Copy it again."
        ) from error
    return values


def convert_hparams(theirs: Mapping[str, Value]) -> tuple[HParams, list[str]]:
    """HParams of our model that computes what tensor2tensor's `transformer` computes
    with hparams `theirs`.

    Also returns a line for the user on each difference in training. A missing hparam
    has transformer_base's value; unknown ones are ignored. Raises ValueError, with a
    line for each reason, if the model is not supported.
    """
    reasons: list[str] = []
    model = _model(theirs, reasons)
    for name, required in REQUIRED_VALUES.items():
        value = theirs.get(name, required[0])
        if value not in required:
            reasons.append(
                f"{name}={value!r}: must be {' or '.join(map(repr, required))}."
            )
    # Versions without learning_rate_schedule only had the legacy one.
    legacy = {"learning_rate_schedule": "legacy"} if "learning_rate" in theirs else {}
    training = _read(theirs, TRAINING | legacy, reasons)
    if reasons:
        raise ValueError(
            "tensor2tensor's hparams must be those of a model that t2tlite has."
            " Received:\n"
            + "".join(f"  {reason}\n" for reason in reasons)
            + "t2tlite cannot import this model; use it with tensor2tensor."
        )
    notes: list[str] = []
    hparams = HParams(**model, **_training(training, model, notes))
    for name, (usual, remark) in NOTED.items():
        value = theirs.get(name, usual)
        if value != usual:
            notes.append(f"{name}={value}: {remark}")
    return hparams, notes


def _read(
    theirs: Mapping[str, Value], defaults: Mapping[str, Value], reasons: list[str]
) -> dict[str, Value]:
    """The values of the hparams in `defaults`; adds those of another type than the
    default to `reasons`.
    """
    values = dict(defaults)
    for name, default in defaults.items():
        kind, value = type(default), theirs.get(name, default)
        whole = type(value) is int and abs(value) < 2**63
        # some sets have int(True)
        if (kind is float and whole) or (kind is bool and value in (0, 1)):
            value = kind(value)
        if type(value) is kind:
            values[name] = value
        else:
            reasons.append(f"{name}={value!r}: must be {KINDS[kind]}.")
    return values


def _in_range(name: str, value: float | str) -> bool:
    """Whether a value is in the range of a field of HParams, if the field has one."""
    facts = FACTS[name]
    return (
        facts.low is None
        or isinstance(value, str)
        or (math.isfinite(value) and facts.in_range(value))
    )


def _model(theirs: Mapping[str, Value], reasons: list[str]) -> dict[str, Value]:
    """The fields of HParams of the model; why t2tlite does not support it is added to
    `reasons`.
    """
    values = _read(theirs, MODEL, reasons)
    both_counts = values["num_encoder_layers"] and values["num_decoder_layers"]
    for name in REQUIRED:
        if name not in theirs and not (name == "num_hidden_layers" and both_counts):
            reasons.append(f"{name} is missing: a whole number is required.")
    for name, value in values.items():
        if not _in_range(name, value):
            reasons.append(f"{name}={value!r}: must be {FACTS[name].range}.")
    if values["pos"] not in POSITIONS:
        reasons.append(
            f"pos={values['pos']!r}: must be {' or '.join(map(repr, POSITIONS))}."
        )
    before, after = (
        values["layer_preprocess_sequence"] or "none",
        values["layer_postprocess_sequence"],
    )
    if (before, after) not in {("n", "da"), ("none", "dan")}:
        reasons.append(
            f"layer_preprocess_sequence={before!r} with"
            f" layer_postprocess_sequence={after!r}: must be 'n' with 'da', or 'none'"
            " with 'dan'."
        )
    if not reasons:
        values |= {"pos": POSITIONS[values["pos"]], "layer_preprocess_sequence": before}
        try:
            HParams(**values)  # checks the fields that depend on each other
        except ValueError as error:
            reasons.append(str(error))
    return values


def _training(
    theirs: dict[str, Value], model: Mapping[str, Value], notes: list[str]
) -> dict[str, Value]:
    """The fields of HParams of the training, from those of TRAINING; differences are
    added to `notes`.
    """
    values = {name: value for name, value in theirs.items() if name in FACTS}
    values |= _learning_rate(theirs, model, notes)
    steps = theirs["optimizer_multistep_accumulate_steps"]
    if steps > 1 and _plain(theirs["optimizer"]) == "multistepadam":
        values["accumulate_steps"] = steps
        # tensor2tensor counts batches, t2tlite optimizer steps
        values["train_steps"] //= steps
    elif steps > 1:
        notes.append(
            f"optimizer_multistep_accumulate_steps={steps}: with"
            f" optimizer={theirs['optimizer']} it slowed tensor2tensor's learning rate"
            " down; in t2tlite it has no effect."
        )
    if _plain(theirs["optimizer"]) == "adamw":
        notes.append(
            "optimizer=adam_w: t2tlite has its L2 loss (weight_decay), but not its"
            " decay of 0.01 x rate."
        )
    if theirs["use_fixed_batch_size"]:
        values["batch_size"] = DEFAULTS["batch_size"]
        notes.append(
            "use_fixed_batch_size=True: t2tlite counts tokens, not pairs;"
            f" batch_size={values['batch_size']}."
        )
    # the meaning of 0 in tensor2tensor
    values["max_length"] = values["max_length"] or values["batch_size"]
    for name, value in values.items():
        if not _in_range(name, value):
            values[name] = DEFAULTS[name]
            notes.append(
                f"{name}={value}: t2tlite requires {FACTS[name].range};"
                f" {name}={values[name]}."
            )
    if values["max_length"] > values["batch_size"]:
        notes.append(
            f"max_length={values['max_length']}: t2tlite requires at most"
            f" batch_size={values['batch_size']}."
        )
        values["max_length"] = values["batch_size"]
    if theirs["shared_embedding"] and not model["shared_embedding_and_softmax_weights"]:
        notes.append(
            "shared_embedding=True: in t2tlite training continues with separate source"
            " and target embeddings."
        )
    return values


def _plain(optimizer: str) -> str:
    """multistepadam for multistep_adam, and for MultistepAdam, its name in older
    versions.
    """
    return optimizer.replace("_", "").lower()


def _learning_rate(
    theirs: Mapping[str, Value], model: Mapping[str, Value], notes: list[str]
) -> dict[str, Value]:
    """The schedule with tensor2tensor's learning rate at every step, or t2tlite's
    default and a note.
    """
    schedule, scheme = (
        theirs["learning_rate_schedule"],
        theirs["learning_rate_decay_scheme"],
    )
    constant, warmup = (
        theirs["learning_rate_constant"],
        theirs["learning_rate_warmup_steps"],
    )
    same_rate = {
        T2T_SCHEDULE: (T2T_SCHEDULE, constant, warmup),
        "constant*linear_warmup*rsqrt_decay": (
            T2T_SCHEDULE,
            constant * model["hidden_size"] ** 0.5,
            warmup,
        ),
        # 5,000 x formula (3) x learning_rate, and 0.002 of that with Adam
        "legacy, learning_rate_decay_scheme=noam": (
            "noam",
            10 * theirs["learning_rate"],
            warmup,
        ),
    }
    name = (
        f"legacy, learning_rate_decay_scheme={scheme}"
        if schedule == "legacy"
        else schedule.replace(" ", "")
    )
    fields = (
        "learning_rate_schedule",
        "learning_rate_constant",
        "learning_rate_warmup_steps",
    )
    if _plain(theirs["optimizer"]) not in ADAMS:
        notes.append(
            f"optimizer={theirs['optimizer']}: t2tlite trains with Adam, at its default"
            " learning rate."
        )
    elif name not in same_rate:
        notes.append(
            f"learning_rate_schedule={name}: t2tlite trains at its default learning"
            " rate instead."
        )
    else:
        return dict(zip(fields, same_rate[name], strict=True))
    return {field: DEFAULTS[field] for field in fields}
