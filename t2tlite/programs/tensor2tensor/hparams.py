"""Converts tensor2tensor's hparams.json into HParams, or refuses it.

tensor2tensor's hparams are of four kinds:
- READ: converted to fields of HParams, mostly of the same name;
- REQUIRED_VALUES: part of the model, with the one value that t2tlite's model
  implements;
- NOTED: part of training, and reported to the user, since t2tlite trains differently;
- all others: without effect on the model `transformer` with REQUIRED_VALUES, and
  accepted with any value.

Source: tensor2tensor 1.15.7, where its model `transformer` and its trainer read each
hparam.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from t2tlite.checked_fields import KINDS, facts_of
from t2tlite.config import HParams
from t2tlite.schedules import T2T_SCHEDULE

# of an hparam: true or false, a number or text, which is checked when it is read
Value = Any
FIELDS = {field.name: field for field in dataclasses.fields(HParams)}
FACTS = {name: facts_of(field) for name, field in FIELDS.items()}


def _shared_defaults() -> dict[str, Value]:
    """The defaults of the fields of HParams that tensor2tensor has too."""
    shared = {}
    for name, facts in FACTS.items():
        if facts.t2t:
            shared[name] = FIELDS[name].default
    return shared


# What is read, with transformer_base's values, for files of older versions with fewer
# hparams. Most are the paper's, the defaults of HParams.
READ: dict[str, Value] = _shared_defaults() | {
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "use_target_space_embedding": True,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
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
READ.pop("pos")  # of REQUIRED_VALUES
# written by every version
REQUIRED = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")
POSITIONS = {"timing": "timing_halves", "none": "none"}  # tensor2tensor's name -> ours

# The values that t2tlite's model implements; the first is the value of a file without
# the hparam.
REQUIRED_VALUES: dict[str, tuple[object, ...]] = {
    "pos": tuple(POSITIONS),
    "self_attention_type": ("dot_product",),
    # two names of the same layer
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),
    "norm_type": ("layer",),
    "multiply_embedding_mode": ("sqrt_depth",),
    "proximity_bias": (False,),
    "causal_decoder_self_attention": (True,),
    "unidirectional_encoder": (False,),
    "attention_variables_3d": (False,),
    "num_area_layers": (0,),
    "hard_attention_k": (0,),
    "prepend_mode": ("none",),
    "vocab_divisor": (1,),
    "pack_dataset": (False,),  # several pairs in one row of a batch
    # checkpoints hold bfloat16 weights as sign(w) (128 |w|)^8
    "weight_dtype": ("float32",),
    # these replace the embedding, the softmax or the loss of a feature
    "bottom": ({},),
    "top": ({},),
    "name": ({},),
    "loss": ({},),
    "weights_fn": ({},),
    # likewise, in older versions
    "input_modalities": ("default",),
    "target_modality": ("default",),
    "symbol_modality_skip_top": (False,),
}

# the fields of HParams that are not copied, but converted to the same rates
RATE_FIELDS = (
    "learning_rate_schedule",
    "learning_rate_constant",
    "learning_rate_warmup_steps",
)
# the optimizers with the same learning rates as ours
ADAMS = {"adam", "trueadam", "multistepadam", "adamw"}

_DROPOUT = "t2tlite draws dropout for each element."
_TRUNCATION = (
    "t2tlite truncates no sequences; it leaves pairs longer than max_length out of"
    " training."
)
_SPLITTING = "t2tlite does not split sequences."
_PRECISION = (
    "t2tlite computes in float32; the hparam dtype_policy chooses mixed precision."
)
# hparam -> (the value that is equivalent to t2tlite's training, the remark on any other
# value)
NOTED: dict[str, tuple[object, str]] = {
    "grad_noise_scale": (0.0, "t2tlite adds no noise to gradients."),
    "weight_noise": (0.0, "t2tlite adds no noise to weights."),
    "symbol_dropout": (0.0, "t2tlite does not drop tokens."),
    "layer_prepostprocess_dropout_broadcast_dims": ("", _DROPOUT),
    "attention_dropout_broadcast_dims": ("", _DROPOUT),
    "relu_dropout_broadcast_dims": ("", _DROPOUT),
    "scheduled_sampling_prob": (0.0, "t2tlite trains with teacher forcing only."),
    "sampling_method": (
        "argmax",
        (
            "t2tlite decodes by beam search; --decode_hparams=sampling_method=random"
            " samples."
        ),
    ),
    "min_length": (0, "t2tlite trains on short pairs too."),
    "max_input_seq_length": (0, _TRUNCATION),
    "max_target_seq_length": (0, _TRUNCATION),
    "split_to_length": (0, _SPLITTING),
    "split_targets_chunk_length": (0, _SPLITTING),
    "activation_dtype": ("float32", _PRECISION),
    "gpu_automatic_mixed_precision": (False, _PRECISION),
}


def convert_hparams(theirs: Mapping[str, Value]) -> tuple[HParams, list[str]]:
    """Returns HParams of our model that computes what tensor2tensor's `transformer`
    computes with hparams `theirs`, and a line for the user on each difference in
    training.

    A missing hparam has transformer_base's value; unknown ones are ignored. Raises
    ValueError, with a line for each reason, if the model is not supported.
    """
    reasons: list[str] = []
    for name in REQUIRED:
        if name not in theirs:
            reasons.append(f"{name} is missing: a whole number is required.")
    for name, allowed in REQUIRED_VALUES.items():
        value = theirs.get(name, allowed[0])
        if value not in allowed:
            choices = " or ".join(map(repr, allowed))
            reasons.append(f"{name}={value!r}: must be {choices}.")
    read = _read(theirs, reasons)
    notes: list[str] = []
    if not reasons:
        read["pos"] = POSITIONS[theirs.get("pos", "timing")]
        try:
            hparams = HParams(**_converted(read, notes))
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        lines = "".join(f"  {reason}\n" for reason in reasons)
        raise ValueError(
            "tensor2tensor's hparams must be those of a model that t2tlite has."
            f" Received:\n{lines}t2tlite cannot import this model; use it with"
            " tensor2tensor."
        )
    for name, (usual, remark) in NOTED.items():
        value = theirs.get(name, usual)
        if value != usual:
            notes.append(f"{name}={value}: {remark}")
    return hparams, notes


def _read(theirs: Mapping[str, Value], reasons: list[str]) -> dict[str, Value]:
    """The values of the hparams in READ; adds a reason for each of another type than
    the default.
    """
    values = dict(READ)
    if "learning_rate" in theirs:
        # Versions without learning_rate_schedule only had the legacy one.
        values["learning_rate_schedule"] = "legacy"
    for name, default in READ.items():
        kind = type(default)
        value = theirs.get(name, values[name])
        whole = type(value) is int and abs(value) < 2**63
        # some sets have int(True)
        if (kind is float and whole) or (kind is bool and value in (0, 1)):
            value = kind(value)
        if type(value) is not kind:
            reasons.append(f"{name}={value!r}: must be {KINDS[kind]}.")
        values[name] = value
    return values


def _converted(theirs: Mapping[str, Value], notes: list[str]) -> dict[str, Value]:
    """The fields of HParams; notes the differences in training."""
    values = {}
    for name, value in theirs.items():
        if name in FIELDS and name not in RATE_FIELDS:
            values[name] = value
    values["layer_preprocess_sequence"] = theirs["layer_preprocess_sequence"] or "none"
    shares = theirs["shared_embedding_and_softmax_weights"]
    if theirs["shared_embedding"] and not shares:
        notes.append(
            "shared_embedding=True: in t2tlite training continues with separate source"
            " and target embeddings."
        )
    optimizer = theirs["optimizer"]
    plain = optimizer.replace("_", "").lower()  # older versions wrote MultistepAdam
    if plain in ADAMS:
        values |= _learning_rate(theirs, notes)
    else:
        notes.append(
            f"optimizer={optimizer}: t2tlite trains with Adam, at its default learning"
            " rate."
        )
    if plain == "adamw":
        notes.append(
            "optimizer=adam_w: t2tlite has its L2 loss (weight_decay), but not its"
            " decay of 0.01 x rate."
        )
    steps = theirs["optimizer_multistep_accumulate_steps"]
    if steps > 1 and plain == "multistepadam":
        values["accumulate_steps"] = steps
        # tensor2tensor counts batches, t2tlite optimizer steps
        values["train_steps"] //= steps
    elif steps > 1:
        notes.append(
            f"optimizer_multistep_accumulate_steps={steps}: with optimizer={optimizer}"
            " it slowed tensor2tensor's learning rate down; in t2tlite it has no"
            " effect."
        )
    if theirs["use_fixed_batch_size"]:
        values["batch_size"] = FIELDS["batch_size"].default
        notes.append(
            "use_fixed_batch_size=True: t2tlite counts tokens, not pairs;"
            f" batch_size={values['batch_size']}."
        )
    _bring_into_range(values, notes)
    return values


def _learning_rate(theirs: Mapping[str, Value], notes: list[str]) -> dict[str, Value]:
    """The schedule with tensor2tensor's learning rate at every step; empty, with a
    note, if t2tlite has none.
    """
    schedule = theirs["learning_rate_schedule"].replace(" ", "")
    scheme = theirs["learning_rate_decay_scheme"]
    constant = theirs["learning_rate_constant"]
    ours = T2T_SCHEDULE
    if schedule == "constant*linear_warmup*rsqrt_decay":
        constant *= theirs["hidden_size"] ** 0.5
    elif schedule == "legacy" and scheme == "noam":
        ours = "noam"
        # 5,000 x formula (3) x learning_rate, and 0.002 of that with Adam
        constant = 10 * theirs["learning_rate"]
    elif schedule != T2T_SCHEDULE:
        if schedule == "legacy":
            schedule = f"legacy, learning_rate_decay_scheme={scheme}"
        notes.append(
            f"learning_rate_schedule={schedule}: t2tlite trains at its default learning"
            " rate instead."
        )
        return {}
    warmup = theirs["learning_rate_warmup_steps"]
    return dict(zip(RATE_FIELDS, (ours, constant, warmup), strict=True))


def _bring_into_range(values: dict[str, Value], notes: list[str]) -> None:
    """Replaces values of training that t2tlite does not allow."""
    # the meaning of 0 in tensor2tensor
    values["max_length"] = values["max_length"] or values["batch_size"]
    for name, value in values.items():
        facts = FACTS[name]
        if facts.model or facts.low is None:
            continue
        if not (math.isfinite(value) and facts.in_range(value)):
            values[name] = FIELDS[name].default
            notes.append(
                f"{name}={value}: t2tlite requires {facts.range}; {name}={values[name]}."
            )
    if values["max_length"] > values["batch_size"]:
        notes.append(
            f"max_length={values['max_length']}: t2tlite requires at most"
            f" batch_size={values['batch_size']}."
        )
        values["max_length"] = values["batch_size"]
