"""tensor2tensor's hparams.json turned into HParams, or refused.

An hparam of tensor2tensor's is of one of five kinds. It belongs to the model, and is a field here (MODEL); it belongs
to the model, and must have the one value that t2tlite's model stands for (REQUIRED_VALUES); it belongs to training,
and is carried over (TRAINING), or noted for the user, since t2tlite trains otherwise (NOTED); or it has no effect on
the model `transformer` whose REQUIRED_VALUES are as required: the rest, accepted with any value.

Source: tensor2tensor 1.15.7, where its model `transformer` and its trainer read each of them.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from t2tlite.config import T2T_SCHEDULE, HParams

FIELDS = {field.name: field for field in dataclasses.fields(HParams)}

# The values here, as those of TRAINING, are transformer_base's, for files of older versions, which wrote fewer hparams.
MODEL: dict[str, Any] = {
    "hidden_size": 512,
    "filter_size": 2048,
    "num_heads": 8,
    "num_hidden_layers": 6,
    "num_encoder_layers": 0,
    "num_decoder_layers": 0,
    "attention_key_channels": 0,
    "attention_value_channels": 0,
    "norm_epsilon": 1e-6,
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "pos": "timing",
    "shared_embedding_and_softmax_weights": True,
    "use_target_space_embedding": True,
}
REQUIRED = ("hidden_size", "filter_size", "num_heads", "num_hidden_layers")  # every version wrote them
POSITIONS = {"timing": "timing_halves", "none": "none"}  # theirs -> ours
NORMALISATIONS = {("n", "da"), ("none", "dan")}

# Where a file lacks one, it has the first of its values.
REQUIRED_VALUES: dict[str, tuple[Any, ...]] = {
    "self_attention_type": ("dot_product",),
    "ffn_layer": ("dense_relu_dense", "conv_hidden_relu"),  # the second is an older name of the first
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
    "pack_dataset": (False,),  # several pairs in a row, kept apart by their numbers
    "weight_dtype": ("float32",),  # bfloat16 weights lie in checkpoints as sign(w) (128 |w|)^8
    "bottom": ({},),  # these five replace what is done with a feature: embedding, softmax, loss
    "top": ({},),
    "name": ({},),
    "loss": ({},),
    "weights_fn": ({},),
    "input_modalities": ("default",),  # these three, of older versions, do the same
    "target_modality": ("default",),
    "symbol_modality_skip_top": (False,),
}

TRAINING: dict[str, Any] = {
    "layer_prepostprocess_dropout": 0.1,
    "attention_dropout": 0.1,
    "relu_dropout": 0.1,
    "label_smoothing": 0.1,
    "batch_size": 4096,
    "use_fixed_batch_size": False,
    "max_length": 256,
    "min_length_bucket": 8,
    "length_bucket_step": 1.1,
    "optimizer": "adam",
    "optimizer_adam_beta1": 0.9,
    "optimizer_adam_beta2": 0.997,
    "optimizer_adam_epsilon": 1e-9,
    "optimizer_multistep_accumulate_steps": 0,
    "learning_rate_schedule": T2T_SCHEDULE,
    "learning_rate_constant": 2.0,
    "learning_rate_warmup_steps": 8000,
    "learning_rate_decay_scheme": "noam",  # this and the next: of schedule "legacy" alone
    "learning_rate": 0.2,
    "shared_embedding": False,
    "train_steps": FIELDS["train_steps"].default,  # a flag of its trainer's, which writes it into the file
}
ADAMS = {"adam", "trueadam", "multistepadam", "adamw"}  # whose learning rates are ours

# hparam -> (the value that is as t2tlite does it, what to say of any other)
_NO_SPLITTING = "t2tlite does not split sequences."
_NO_CUTTING = "t2tlite cuts no sequences; it leaves pairs longer than max_length out of training."
_ALL_DROPOUT = "t2tlite drops each element by itself."
_PRECISION = "t2tlite computes in float32; the hparam dtype_policy chooses mixed precision."
NOTED: dict[str, tuple[Any, str]] = {
    "weight_decay": (0.0, "t2tlite has no weight decay."),
    "clip_grad_norm": (0.0, "t2tlite does not clip gradients."),
    "grad_noise_scale": (0.0, "t2tlite adds no noise to gradients."),
    "weight_noise": (0.0, "t2tlite adds no noise to weights."),
    "symbol_dropout": (0.0, "t2tlite does not drop tokens."),
    "layer_prepostprocess_dropout_broadcast_dims": ("", _ALL_DROPOUT),
    "attention_dropout_broadcast_dims": ("", _ALL_DROPOUT),
    "relu_dropout_broadcast_dims": ("", _ALL_DROPOUT),
    "scheduled_sampling_prob": (0.0, "t2tlite trains on the true targets alone."),
    "sampling_method": ("argmax", "t2tlite decodes by beam search, not by sampling."),
    "min_length": (0, "t2tlite trains on short pairs too."),
    "max_input_seq_length": (0, _NO_CUTTING),
    "max_target_seq_length": (0, _NO_CUTTING),
    "split_to_length": (0, _NO_SPLITTING),
    "split_targets_chunk_length": (0, _NO_SPLITTING),
    "activation_dtype": ("float32", _PRECISION),
    "gpu_automatic_mixed_precision": (False, _PRECISION),
}

_KINDS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}


class Converted(NamedTuple):
    """A model's hparams, and how its training would differ."""

    hparams: HParams
    notes: list[str]  # what of its training t2tlite does otherwise or has not, a line each, for the user


def read_hparams(path: Path) -> dict[str, Any]:
    """The hparams.json of a model that tensor2tensor trained, as it stands.

    Raises:
        FileNotFoundError: there is no such file.
        ValueError: it holds no JSON object.
    """
    if not path.is_file():
        raise FileNotFoundError(
            f"The hparams.json that tensor2tensor's trainer writes into --output_dir is required. Received: {path}, "
            "which is no file. Give the folder of its training."
        )
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:  # no JSON, or no UTF-8
        raise ValueError(f"{path} must hold a JSON object. Received: {error}. Copy it anew.") from error
    if not isinstance(values, dict):
        raise ValueError(f"{path} must hold a JSON object. Received: a {type(values).__name__}. Copy it anew.")
    return values


def convert_hparams(theirs: Mapping[str, Any]) -> Converted:
    """HParams of a model that computes what tensor2tensor's model `transformer` computes with hparams `theirs`.

    Its training is carried over as far as t2tlite has it. Where vocabularies differ in size, some versions of
    tensor2tensor go by shared_embedding_and_softmax_weights=False whatever the file says: the checkpoint tells.

    Args:
        theirs: what `read_hparams` returns. A missing hparam has transformer_base's value; unknown ones do not count.

    Raises:
        ValueError: t2tlite has no such model, or a value is missing, of the wrong type or out of range. The message
            has a line for each reason.
    """
    model, reasons = _model(theirs)
    for name, required in REQUIRED_VALUES.items():
        if (value := theirs.get(name, required[0])) not in required:
            reasons.append(f"{name}={value!r}: must be {' or '.join(map(repr, required))}.")
    # Versions that wrote no learning_rate_schedule had the legacy one alone.
    legacy = {"learning_rate_schedule": "legacy"} if "learning_rate" in theirs else {}
    training = _read(theirs, TRAINING | legacy, reasons)
    if reasons:
        raise ValueError(
            "tensor2tensor's hparams must be those of a model that t2tlite has. Received:\n"
            + "".join(f"  {reason}\n" for reason in reasons)
            + "t2tlite cannot take this model over; use it with tensor2tensor."
        )
    notes: list[str] = []
    hparams = HParams(**model, **_training(training, model, notes))
    for name, (usual, remark) in NOTED.items():
        if (value := theirs.get(name, usual)) != usual:
            notes.append(f"{name}={value}: {remark}")
    return Converted(hparams, notes)


def _read(theirs: Mapping[str, Any], defaults: Mapping[str, Any], reasons: list[str]) -> dict[str, Any]:
    """The values of the hparams in `defaults`, each of its default's type; `reasons` gets those of another type."""
    values = dict(defaults)
    for name, default in defaults.items():
        kind, value = type(default), theirs.get(name, default)
        if (kind is float and type(value) is int) or (kind is bool and value in (0, 1)):  # its sets have int(True) too
            value = kind(value)
        if type(value) is kind:
            values[name] = value
        else:
            reasons.append(f"{name}={value!r}: must be {_KINDS[kind]}.")
    return values


def _range_missed(name: str, value: Any) -> str:
    """The range that a field of HParams must lie in, in words, where `value` does not; "" where it does."""
    low, high = (FIELDS[name].metadata.get(end) for end in ("low", "high"))
    if low is None or (low <= value < math.inf and (high is None or value <= high)):
        return ""
    return f"at least {low}" + ("" if high is None else f" and at most {high}")


def _model(theirs: Mapping[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """The fields of HParams that make the model, and the reasons why t2tlite has none like it."""
    reasons: list[str] = []
    values = _read(theirs, MODEL, reasons)
    both_counts = values["num_encoder_layers"] and values["num_decoder_layers"]
    for name in REQUIRED:
        if name not in theirs and not (name == "num_hidden_layers" and both_counts):
            reasons.append(f"{name} is missing: a whole number is required.")
    for name, value in values.items():
        if required := _range_missed(name, value):
            reasons.append(f"{name}={value!r}: must be {required}.")
    if values["pos"] in POSITIONS:
        values["pos"] = POSITIONS[values["pos"]]
    else:
        reasons.append(f"pos={values['pos']!r}: must be {' or '.join(map(repr, POSITIONS))}.")
    values["layer_preprocess_sequence"] = values["layer_preprocess_sequence"] or "none"
    before_and_after = values["layer_preprocess_sequence"], values["layer_postprocess_sequence"]
    if before_and_after not in NORMALISATIONS:
        reasons.append(
            f"layer_preprocess_sequence={before_and_after[0]!r} with layer_postprocess_sequence="
            f"{before_and_after[1]!r}: must be 'n' with 'da', or 'none' with 'dan'."
        )
    if not reasons:  # what is left to check needs several fields
        try:
            HParams(**values)
        except ValueError as error:
            reasons.append(str(error))
    return values, reasons


def _training(theirs: dict[str, Any], model: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """The fields of HParams that make the training; `theirs` are the values of TRAINING."""
    values = {name: value for name, value in theirs.items() if name in FIELDS} | _learning_rate(theirs, model, notes)
    values["accumulate_steps"] = 1
    steps = theirs["optimizer_multistep_accumulate_steps"]
    if steps > 1 and _plain(theirs["optimizer"]) == "multistepadam":
        values["accumulate_steps"] = steps
        values["train_steps"] //= steps  # tensor2tensor counts batches, t2tlite updates
    elif steps > 1:
        notes.append(
            f"optimizer_multistep_accumulate_steps={steps}: with optimizer={theirs['optimizer']} it slowed "
            "tensor2tensor's learning rate down; in t2tlite it does nothing."
        )
    if theirs["use_fixed_batch_size"]:
        values["batch_size"] = FIELDS["batch_size"].default
        notes.append(f"use_fixed_batch_size=True: t2tlite counts tokens, not pairs; batch_size={values['batch_size']}.")
    values["max_length"] = values["max_length"] or values["batch_size"]  # as tensor2tensor reads 0
    for name, value in values.items():
        if required := _range_missed(name, value):
            values[name] = FIELDS[name].default
            notes.append(f"{name}={value}: t2tlite requires {required}; {name}={values[name]}.")
    if values["max_length"] > values["batch_size"]:
        notes.append(f"max_length={values['max_length']}: t2tlite requires at most batch_size={values['batch_size']}.")
        values["max_length"] = values["batch_size"]
    if theirs["shared_embedding"] and not model["shared_embedding_and_softmax_weights"]:
        notes.append("shared_embedding=True: trained on, source and target have tables of their own in t2tlite.")
    return values


def _plain(optimizer: str) -> str:
    """multistep_adam, and MultistepAdam as older versions have it -> multistepadam."""
    return optimizer.replace("_", "").lower()


def _learning_rate(theirs: Mapping[str, Any], model: Mapping[str, Any], notes: list[str]) -> dict[str, Any]:
    """Schedule, constant and warm-up: tensor2tensor's rate at every step, or t2tlite's defaults and a note."""
    schedule, scheme = theirs["learning_rate_schedule"], theirs["learning_rate_decay_scheme"]
    constant, warmup = theirs["learning_rate_constant"], theirs["learning_rate_warmup_steps"]
    same_rate = {
        T2T_SCHEDULE: (T2T_SCHEDULE, constant, warmup),
        "constant*linear_warmup*rsqrt_decay": (T2T_SCHEDULE, constant * model["hidden_size"] ** 0.5, warmup),
        # 5,000 x formula (3) x learning_rate, and 0.002 of that with Adam
        "legacy, learning_rate_decay_scheme=noam": ("noam", 10 * theirs["learning_rate"], warmup),
    }
    name = f"legacy, learning_rate_decay_scheme={scheme}" if schedule == "legacy" else schedule.replace(" ", "")
    fields = ("learning_rate_schedule", "learning_rate_constant", "learning_rate_warmup_steps")
    if _plain(theirs["optimizer"]) not in ADAMS:
        notes.append(f"optimizer={theirs['optimizer']}: t2tlite trains with Adam, at its default learning rate.")
    elif name not in same_rate:
        notes.append(f"learning_rate_schedule={name}: t2tlite trains at its default learning rate instead.")
    else:
        return dict(zip(fields, same_rate[name], strict=True))
    return {field: FIELDS[field].default for field in fields}
