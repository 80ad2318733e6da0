"""Copies tensor2tensor's variables into our Transformer, so that tests can compare the two."""

from __future__ import annotations

import json

import numpy as np

from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer, build_transformer

TARGET_SPACE = 1  # the row of its target-space table that the fixtures use


def hparams_from(saved: str) -> HParams:
    """Our HParams for tensor2tensor's, where both have the field."""
    theirs = json.loads(str(saved))
    ours = {field: theirs[field] for field in HParams().__dict__ if field in theirs}
    ours["pos"] = "timing_halves"
    return HParams(**ours)


def load(hparams: HParams, variables: dict[str, np.ndarray]) -> Transformer:
    """A model with these variables.

    Args:
        hparams: of the model.
        variables: by tensor2tensor's name, after "transformer/" and without ":0".
    """
    sizes = {name.split("/")[0]: None for name in variables if name.startswith("symbol_modality")}
    tables = {
        f"{name}/{kind}": _shards(variables, f"{name}/{kind}") for name in sizes for kind in _kinds(name, variables)
    }
    sizes_by_kind = {name.split("/")[1]: len(table) for name, table in tables.items()}
    shared = sizes_by_kind.get("shared")
    model = build_transformer(hparams, shared or sizes_by_kind["input_emb"], shared or sizes_by_kind["target_emb"])
    for name, table in tables.items():
        embedding = {
            "shared": model.target_embedding,
            "input_emb": model.source_embedding,
            "target_emb": model.target_embedding,
            "softmax": model.softmax_embedding,
        }[name.split("/")[1]]
        embedding.weight.assign(table)
    if model.target_space is not None:
        model.target_space.assign(variables["body/target_space_embedding/kernel"][TARGET_SPACE])
    for stack, layers in (("encoder", model.encoder_layers), ("decoder", model.decoder_layers)):
        for i, layer in enumerate(layers):
            _load_layer(layer, variables, f"body/{stack}/layer_{i}")
        if hparams.pre_norm:
            norm = model.encoder_norm if stack == "encoder" else model.decoder_norm
            _load_norm(norm, variables, f"body/{stack}/layer_prepostprocess/layer_norm")
    return model


def under(prefix: str, data: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The entries of a fixture below `prefix`, without it, "transformer/" and ":0"."""
    start = f"{prefix}/transformer/"
    return {name.removeprefix(start).removesuffix(":0"): data[name] for name in data if name.startswith(start)}


def _kinds(modality: str, variables: dict[str, np.ndarray]) -> set[str]:
    return {name.split("/")[1] for name in variables if name.startswith(f"{modality}/")}


def _shards(variables: dict[str, np.ndarray], prefix: str) -> np.ndarray:
    count = sum(name.startswith(f"{prefix}/weights_") for name in variables)
    return np.concatenate([variables[f"{prefix}/weights_{i}"] for i in range(count)])


def _load_layer(layer, variables: dict[str, np.ndarray], prefix: str) -> None:
    attentions = {"self_attention": "self_attention"}
    if hasattr(layer, "cross_attention"):
        attentions["cross_attention"] = "encdec_attention"
    for ours, theirs in attentions.items():
        attention = getattr(layer, ours)
        for part, name in (("query", "q"), ("key", "k"), ("value", "v"), ("output_transform", "output_transform")):
            kernel = variables[f"{prefix}/{theirs}/multihead_attention/{name}/kernel"]
            getattr(attention, part).kernel.assign(kernel)
        _load_residual(getattr(layer, f"{ours}_residual"), variables, f"{prefix}/{theirs}")
    for ours, theirs in (("inner", "conv1"), ("outer", "conv2")):
        dense = getattr(layer.feed_forward, ours)
        dense.kernel.assign(variables[f"{prefix}/ffn/{theirs}/kernel"])
        dense.bias.assign(variables[f"{prefix}/ffn/{theirs}/bias"])
    _load_residual(layer.feed_forward_residual, variables, f"{prefix}/ffn")


def _load_residual(residual, variables: dict[str, np.ndarray], prefix: str) -> None:
    where = "layer_prepostprocess" if residual.pre_norm else "layer_postprocess"
    _load_norm(residual.norm, variables, f"{prefix}/{where}/layer_norm")


def _load_norm(norm, variables: dict[str, np.ndarray], prefix: str) -> None:
    norm.gamma.assign(variables[f"{prefix}/layer_norm_scale"])
    norm.beta.assign(variables[f"{prefix}/layer_norm_bias"])
