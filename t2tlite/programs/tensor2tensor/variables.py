"""Loads the variables of a tensor2tensor checkpoint into our Transformer.

tensor2tensor names a model's layers `transformer/body/...`, and its embeddings, which
it splits by rows into shards N,
`transformer/symbol_modality_VOCABULARY_WIDTH/KIND/weights_N`. A checkpoint also holds
the optimizer state and statistics of training.
"""

# D hidden size

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

import keras
import numpy as np

from t2tlite.config import HParams
from t2tlite.layers.embedding import Embedding
from t2tlite.layers.sublayer import Residual
from t2tlite.models.transformer import Transformer
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer

SCOPE = "transformer/"
# [32, D], a row for each kind of target text
TARGET_SPACES = f"{SCOPE}body/target_space_embedding/kernel"
# the end of the name of their second moments in Adam
TARGET_SPACES_MOMENTS = f"{TARGET_SPACES}/Adam_1"

# Optimizer state and statistics of training, not of the model. The last line is of
# mixed precision.
BOOKKEEPING = re.compile(
    r"training/|losses_avg/|train_stats/|OptimizeLoss/|(.*/)?(global_step|beta[12]_power"
    r"|loss_scale|current_loss_scale|good_steps|bad_steps)$"
)
# our variable, and tensor2tensor's: its name, or its shards'
Place = tuple[keras.Variable, list[str]]


def load_variables(
    model: Transformer, variables: Mapping[str, np.ndarray], target_space: int = 0
) -> None:
    """Loads the weights of a tensor2tensor model into a built Transformer with its
    converted hparams.

    `variables` are the checkpoint's, by name; `target_space` is the row of the target
    space embedding that was trained. Raises ValueError that lists the variables that
    are missing, of another shape or without a place in the model.
    """
    places = list(_places(model, variables))
    unfit: list[str] = []
    for variable, names in places:
        missing = [f"{name} is missing." for name in names if name not in variables]
        unfit += missing or _other_shape(tuple(variable.shape), names, variables)
    used = {name for _, names in places for name in names}
    left = [
        f"{name} has no place in the model."
        for name in model_variables(variables)
        if name not in used
    ]
    if unfit or left:
        raise ValueError(
            "The checkpoint's variables must be those of the model that its hparams"
            " describe. Received:\n  "
            + "\n  ".join(unfit + left)
            + "\nGive the hparams.json and vocabularies that it was trained with."
        )
    rows = len(variables.get(TARGET_SPACES, ()))
    if TARGET_SPACES in used and not 0 <= target_space < rows:
        raise ValueError(
            f"--target_space_id must be at least 0 and less than {rows}. Received:"
            f" {target_space}."
        )
    for variable, names in places:
        value = np.concatenate([variables[name] for name in names])
        variable.assign(
            np.asarray(
                value[target_space] if names == [TARGET_SPACES] else value, np.float32
            )
        )


def model_variables(names: Collection[str]) -> list[str]:
    """The names of the model's variables, sorted; optimizer state is below them, as in
    .../kernel/Adam_1.
    """
    return sorted(
        name
        for name in names
        if not BOOKKEEPING.match(name) and name.rpartition("/")[0] not in names
    )


def trained_target_space(variables: Mapping[str, np.ndarray]) -> int | None:
    """The row of the target space embedding that was trained, by the optimizer state;
    None if unknown.

    tensor2tensor's Adam does not change rows without a gradient, and a problem uses a
    single row.
    """
    moments = [
        value
        for name, value in variables.items()
        if name.endswith(TARGET_SPACES_MOMENTS)
    ]
    if not moments or np.ndim(moments[0]) != 2:
        return None
    rows = np.flatnonzero(np.any(moments[0] != 0, axis=1))
    return int(rows[0]) if len(rows) == 1 else None


def embedding_sizes(names: Collection[str]) -> list[int]:
    """The vocabulary sizes of a checkpoint's embeddings, ascending."""
    matches = (re.match(rf"{SCOPE}symbol_modality_(\d+)_\d+/", name) for name in names)
    return sorted({int(match[1]) for match in matches if match})


def _other_shape(
    wanted: tuple[int, ...], names: list[str], variables: Mapping[str, np.ndarray]
) -> list[str]:
    """A message if the shards together do not have the wanted shape; otherwise an empty
    list.
    """
    shapes = [tuple(variables[name].shape) for name in names]
    if names == [TARGET_SPACES]:
        wanted = (*shapes[0][:1], *wanted)  # one row of it is imported
    alike = all(
        len(shape) == len(wanted) and shape[1:] == wanted[1:] for shape in shapes
    )
    if alike and sum(shape[0] for shape in shapes) == wanted[0]:
        return []
    which = (
        names[0]
        if len(names) == 1
        else f"{names[0]} to {names[-1].rpartition('/')[2]} together"
    )
    return [
        f"{which} must have the shape {list(wanted)}. Received:"
        f" {', '.join(str(list(s)) for s in shapes)}."
    ]


def _places(model: Transformer, names: Collection[str]) -> Iterator[Place]:
    """Yields each of our variables once, with the names of the corresponding
    tensor2tensor variables.
    """
    embeddings = [
        model.source_embedding,
        model.target_embedding,
        model.softmax_embedding,
    ]
    for i, kind in enumerate(("input_emb", "target_emb", "softmax")):
        if embeddings[i] not in embeddings[:i]:  # tied embeddings come once
            yield (
                embeddings[i].weight,
                _shards(embeddings[i], kind, model.hparams, names),
            )
    if model.target_space is not None:
        yield model.target_space, [TARGET_SPACES]
    for stack in ("encoder", "decoder"):
        for i, layer in enumerate(getattr(model, f"{stack}_layers")):
            yield from _layer(layer, f"{SCOPE}body/{stack}/layer_{i}")
        if model.hparams.pre_norm:
            yield from _norm(
                getattr(model, f"{stack}_norm"),
                f"{SCOPE}body/{stack}/layer_prepostprocess",
            )


def _layer(layer: EncoderLayer | DecoderLayer, prefix: str) -> Iterator[Place]:
    for ours, theirs in (
        ("self_attention", "self_attention"),
        ("cross_attention", "encdec_attention"),
    ):
        if not hasattr(layer, ours):  # an encoder layer has no cross-attention
            continue
        attention = getattr(layer, ours)
        for part, name in (
            ("query", "q"),
            ("key", "k"),
            ("value", "v"),
            ("output_transform", "output_transform"),
        ):
            yield (
                getattr(attention, part).kernel,
                [f"{prefix}/{theirs}/multihead_attention/{name}/kernel"],
            )
        yield from _residual(getattr(layer, f"{ours}_residual"), f"{prefix}/{theirs}")
    for dense, theirs in (
        (layer.feed_forward.inner, "conv1"),
        (layer.feed_forward.outer, "conv2"),
    ):
        yield dense.kernel, [f"{prefix}/ffn/{theirs}/kernel"]
        yield dense.bias, [f"{prefix}/ffn/{theirs}/bias"]
    yield from _residual(layer.feed_forward_residual, f"{prefix}/ffn")


def _residual(residual: Residual, prefix: str) -> Iterator[Place]:
    kind = "layer_prepostprocess" if residual.pre_norm else "layer_postprocess"
    return _norm(residual.norm, f"{prefix}/{kind}")


def _norm(norm: keras.layers.LayerNormalization, prefix: str) -> Iterator[Place]:
    yield norm.gamma, [f"{prefix}/layer_norm/layer_norm_scale"]
    yield norm.beta, [f"{prefix}/layer_norm/layer_norm_bias"]


def _shards(
    embedding: Embedding, kind: str, hparams: HParams, names: Collection[str]
) -> list[str]:
    """The names of an embedding's shards; if there are none, the name of the first.

    A model that shares embeddings has `shared`, one per vocabulary; otherwise it has
    `input_emb`, `target_emb` and `softmax`, or with shared_embedding `shared` and
    `softmax`. Older versions share between target and softmax even if the source has
    another vocabulary.
    """
    modality = f"{SCOPE}symbol_modality_{embedding.vocab_size}_{embedding.hidden_size}"
    has_kind, has_shared = (
        f"{modality}/{name}/weights_0" in names for name in (kind, "shared")
    )
    if hparams.shared_embedding_and_softmax_weights or (has_shared and not has_kind):
        kind = "shared"
    count = sum(
        re.fullmatch(rf"{modality}/{kind}/weights_\d+", name) is not None
        for name in names
    )
    return [f"{modality}/{kind}/weights_{i}" for i in range(max(count, 1))]
