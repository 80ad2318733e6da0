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

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

from t2tlite.checked_fields import VALUE_KINDS, facts_of
from t2tlite.config import HParams
from t2tlite.schedules import T2T_SCHEDULE

# of an hparam: true or false, a number or text, which is checked when it is read
Value = Any
FIELDS = {field.name: field for field in dataclasses.fields(HParams)}
FACTS = {name: facts_of(field) for name, field in FIELDS.items()}


# What is read, with transformer_base's values, for files of older versions with fewer
# hparams. Most are the paper's, the defaults of HParams.
READ: dict[str, Value] = {
    **{name: FIELDS[name].default for name, facts in FACTS.items() if facts.t2t},
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

# part of training only, with the value that is equivalent to t2tlite's training
NOTED: dict[str, object] = {
    "grad_noise_scale": 0.0,
    "weight_noise": 0.0,
    "symbol_dropout": 0.0,
    "layer_prepostprocess_dropout_broadcast_dims": "",
    "attention_dropout_broadcast_dims": "",
    "relu_dropout_broadcast_dims": "",
    "scheduled_sampling_prob": 0.0,
    "sampling_method": "argmax",
    "min_length": 0,
    "max_input_seq_length": 0,
    "max_target_seq_length": 0,
    "split_to_length": 0,
    "split_targets_chunk_length": 0,
    "activation_dtype": "float32",
    "gpu_automatic_mixed_precision": False,
}

# tensor2tensor's hparam -> what t2tlite trains with instead
Notes = dict[str, object]


def convert_hparams(theirs: Mapping[str, Value]) -> tuple[HParams, list[str]]:
    """Returns HParams of our model that computes what tensor2tensor's `transformer`
    computes with hparams `theirs`, and a line for the user on each difference in
    training.

    A missing hparam has transformer_base's value; unknown ones are ignored. Raises
    ValueError, with a line for each reason, if the model is not supported.
    """
    reasons: list[str] = []
    for name, allowed in REQUIRED_VALUES.items():
        value = theirs.get(name, allowed[0])
        if value not in allowed:
            choices = " or ".join(map(repr, allowed))
            reasons.append(f"{name}={value!r}: must be {choices}.")
    read = _read(theirs, reasons)
    instead: Notes = {}
    if not reasons:
        read["pos"] = POSITIONS[theirs.get("pos", "timing")]
        try:
            hparams = HParams(**_converted(read, instead))
        except ValueError as error:
            reasons.append(str(error))
    if reasons:
        received = "\n  ".join(reasons)
        raise ValueError(
            f"The model must be one that t2tlite has. Received:\n  {received}"
        )
    for name, usual in NOTED.items():
        if theirs.get(name, usual) != usual:
            instead[name] = repr(usual)
    notes = []
    for name, ours in instead.items():
        value = read.get(name, theirs.get(name))
        notes.append(f"{name}={value}: t2tlite trains with {ours}.")
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
        value = theirs.get(name, None if name in REQUIRED else values[name])
        whole = type(value) is int and abs(value) < 2**63
        # some sets have int(True)
        if (kind is float and whole) or (kind is bool and value in (0, 1)):
            value = kind(value)
        if type(value) is not kind:
            reasons.append(f"{name}={value!r}: must be {VALUE_KINDS[kind]}.")
        values[name] = value
    return values


def _converted(theirs: Mapping[str, Value], notes: Notes) -> dict[str, Value]:
    """The fields of HParams; notes the differences in training."""
    values = {}
    for name, value in theirs.items():
        if name in FIELDS and name not in RATE_FIELDS:
            values[name] = value
    values["layer_preprocess_sequence"] = theirs["layer_preprocess_sequence"] or "none"
    shares = theirs["shared_embedding_and_softmax_weights"]
    if theirs["shared_embedding"] and not shares:
        notes["shared_embedding"] = "separate source and target embeddings"
    # older versions wrote MultistepAdam
    optimizer = theirs["optimizer"].replace("_", "").lower()
    if optimizer in ADAMS:
        values |= _learning_rate(theirs, notes)
    else:
        notes["optimizer"] = "Adam, at its default learning rate"
    if optimizer == "adamw":
        notes["optimizer"] = "its L2 loss weight_decay, but no decay of 0.01 x rate"
    steps = theirs["optimizer_multistep_accumulate_steps"]
    if steps > 1 and optimizer == "multistepadam":
        values["accumulate_steps"] = steps
        # tensor2tensor counts batches, t2tlite optimizer steps
        values["train_steps"] //= steps
    elif steps > 1:  # it slowed tensor2tensor's learning rate down
        notes["optimizer_multistep_accumulate_steps"] = 1
    if theirs["use_fixed_batch_size"]:
        values["batch_size"] = FIELDS["batch_size"].default
        notes["use_fixed_batch_size"] = f"{values['batch_size']} tokens in a batch"
    # the meaning of 0 in tensor2tensor
    values["max_length"] = values["max_length"] or values["batch_size"]
    for name, value in values.items():
        facts = FACTS[name]
        is_of_training = facts.low is not None and not facts.model
        if is_of_training and not (math.isfinite(value) and facts.in_range(value)):
            values[name] = notes[name] = FIELDS[name].default
    if values["max_length"] > values["batch_size"]:
        values["max_length"] = notes["max_length"] = values["batch_size"]
    return values


def _learning_rate(theirs: Mapping[str, Value], notes: Notes) -> dict[str, Value]:
    """The schedule with tensor2tensor's learning rate at every step; empty, with a
    note, if t2tlite has none.
    """
    schedule = theirs["learning_rate_schedule"].replace(" ", "")
    constant = theirs["learning_rate_constant"]
    ours = T2T_SCHEDULE
    if schedule == "constant*linear_warmup*rsqrt_decay":
        constant *= theirs["hidden_size"] ** 0.5
    elif schedule == "legacy" and theirs["learning_rate_decay_scheme"] == "noam":
        ours = "noam"
        # 5,000 x formula (3) x learning_rate, and 0.002 of that with Adam
        constant = 10 * theirs["learning_rate"]
    elif schedule != T2T_SCHEDULE:
        notes["learning_rate_schedule"] = "its default learning rate"
        return {}
    warmup = theirs["learning_rate_warmup_steps"]
    return dict(zip(RATE_FIELDS, (ours, constant, warmup), strict=True))
