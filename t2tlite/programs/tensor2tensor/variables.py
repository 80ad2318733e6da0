"""Reads the variables of a tensor2tensor checkpoint, and loads them into our
Transformer.

tensor2tensor names a model's layers `transformer/body/...`, and its embeddings, which
it splits by rows into shards N,
`transformer/symbol_modality_VOCABULARY_WIDTH/KIND/weights_N`. A checkpoint also holds
the optimizer state and statistics of training.
"""

# D hidden size

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Iterator, Mapping

import keras
import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.files.checkpoint_paths import readable_path
from t2tlite.layers.embedding import Embedding
from t2tlite.layers.sublayer import Residual
from t2tlite.models.transformer import Transformer
from t2tlite.models.transformer_layers import DecoderLayer, EncoderLayer
from t2tlite.training.checkpoints import reason_of

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

Variables = Mapping[str, np.ndarray]  # a checkpoint's, by name

# our attention layers and their matrices -> tensor2tensor's
ATTENTIONS = {
    "self_attention": "self_attention",
    "cross_attention": "encdec_attention",
}
ATTENTION_MATRICES = {
    "query": "q",
    "key": "k",
    "value": "v",
    "output_transform": "output_transform",
}


def read_variables(path: str) -> dict[str, np.ndarray]:
    """The model's variables in a checkpoint by name, and the optimizer state of the
    target space embedding.

    Raises ValueError for a checkpoint that is damaged or of another model.
    """
    try:
        with readable_path(path) as readable:
            reader = tf.train.load_checkpoint(readable)
            names = reader.get_variable_to_shape_map()
            wanted = model_variables(names)
            for name in names:
                if name.endswith(TARGET_SPACES_MOMENTS):
                    wanted.append(name)
            _check_model(path, wanted)
            return {name: reader.get_tensor(name) for name in wanted}
    except (tf.errors.OpError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"A whole checkpoint is required. Received: {path}, which cannot be read:"
            f" {reason_of(error)}. Copy it again, all its files."
        ) from error


def _check_model(path: str, names: list[str]) -> None:
    """Raises ValueError unless the variables are those of a `transformer`."""
    scopes = set()
    for name in names:
        if name.startswith(f"{SCOPE}body/"):
            return
        scopes.add(name.split("/")[0])
    raise ValueError(
        "The checkpoint must be of tensor2tensor's model transformer."
        f" Received: {path}, with variables of"
        f" {', '.join(sorted(scopes)) or 'no model'}."
    )


def model_variables(names: Collection[str]) -> list[str]:
    """The names of the model's variables, sorted; optimizer state is below them, as in
    .../kernel/Adam_1.
    """
    ours = []
    for name in sorted(names):
        if not BOOKKEEPING.match(name) and name.rpartition("/")[0] not in names:
            ours.append(name)
    return ours


def trained_target_space(variables: Variables) -> int | None:
    """The row of the target space embedding that was trained, by the optimizer state;
    None if unknown.

    tensor2tensor's Adam does not change rows without a gradient, and a problem uses a
    single row.
    """
    for name, moments in variables.items():
        if name.endswith(TARGET_SPACES_MOMENTS) and np.ndim(moments) == 2:
            [rows] = np.nonzero(np.any(moments != 0, axis=1))
            return int(rows[0]) if len(rows) == 1 else None
    return None


def embedding_sizes(names: Collection[str]) -> list[int]:
    """The vocabulary sizes of a checkpoint's embeddings, ascending."""
    sizes = set()
    for name in names:
        match = re.match(rf"{SCOPE}symbol_modality_(\d+)_\d+/", name)
        if match:
            sizes.add(int(match[1]))
    return sorted(sizes)


@dataclasses.dataclass(frozen=True)
class Place:
    """A variable of our model, and where its value is in a checkpoint."""

    variable: keras.Variable
    names: list[str]  # the tensor2tensor variable, or its shards by rows

    @property
    def is_target_space(self) -> bool:
        """Whether one row of the tensor2tensor variable is imported."""
        return self.names == [TARGET_SPACES]

    def misfits(self, variables: Variables) -> list[str]:
        """A message on each variable that is missing, or on their shape."""
        missing = [name for name in self.names if name not in variables]
        if missing:
            return [f"{name} is missing." for name in missing]
        shapes = [tuple(variables[name].shape) for name in self.names]
        wanted = tuple(self.variable.shape)
        if self.is_target_space:
            wanted = (*shapes[0][:1], *wanted)
        if _joined_shape(shapes) == wanted:
            return []
        which = self.names[0]
        if len(self.names) > 1:
            which = f"{which} to {self.names[-1].rpartition('/')[2]} together"
        received = ", ".join(str(list(shape)) for shape in shapes)
        return [f"{which} must have the shape {list(wanted)}. Received: {received}."]

    def load(self, variables: Variables, target_space: int) -> None:
        """Gives our variable its value."""
        value = np.concatenate([variables[name] for name in self.names])
        if self.is_target_space:
            value = value[target_space]
        self.variable.assign(np.asarray(value, np.float32))


def _joined_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...] | None:
    """The shape of arrays joined by rows; None if they cannot be joined."""
    rest = shapes[0][1:]
    rows = 0
    for shape in shapes:
        if not shape or shape[1:] != rest:
            return None
        rows += shape[0]
    return (rows, *rest)


def load_variables(
    model: Transformer, variables: Variables, target_space: int = 0
) -> None:
    """Loads the weights of a tensor2tensor model into a built Transformer with its
    converted hparams.

    `target_space` is the row of the target space embedding that was trained. Raises
    ValueError that lists the variables that are missing, of another shape or without a
    place in the model.
    """
    places = list(_places(model, variables))
    misfits = []
    used = set()
    for place in places:
        misfits += place.misfits(variables)
        used.update(place.names)
    for name in model_variables(variables):
        if name not in used:
            misfits.append(f"{name} has no place in the model.")
    if misfits:
        received = "\n  ".join(misfits)
        raise ValueError(
            "The checkpoint's variables must be those of the model that its hparams"
            f" describe. Received:\n  {received}\nGive the hparams.json and"
            " vocabularies that it was trained with."
        )
    rows = len(variables.get(TARGET_SPACES, ()))
    if TARGET_SPACES in used and not 0 <= target_space < rows:
        raise ValueError(
            f"--target_space_id must be at least 0 and less than {rows}. Received:"
            f" {target_space}."
        )
    for place in places:
        place.load(variables, target_space)


def _places(model: Transformer, names: Collection[str]) -> Iterator[Place]:
    """Yields the place of each of our variables once."""
    yield from _embeddings(model, names)
    if model.target_space is not None:
        yield Place(model.target_space, [TARGET_SPACES])
    for stack in ("encoder", "decoder"):
        scope = f"{SCOPE}body/{stack}"
        for i, layer in enumerate(getattr(model, f"{stack}_layers")):
            yield from _layer(layer, f"{scope}/layer_{i}")
        if model.hparams.pre_norm:
            norm = getattr(model, f"{stack}_norm")
            yield from _norm(norm, f"{scope}/layer_prepostprocess")


def _embeddings(model: Transformer, names: Collection[str]) -> Iterator[Place]:
    kinds = {
        "input_emb": model.source_embedding,
        "target_emb": model.target_embedding,
        "softmax": model.softmax_embedding,
    }
    placed: list[Embedding] = []
    for kind, embedding in kinds.items():
        if embedding not in placed:  # tied embeddings come once
            shards = _shards(embedding, kind, model.hparams, names)
            yield Place(embedding.weight, shards)
            placed.append(embedding)


def _layer(layer: EncoderLayer | DecoderLayer, scope: str) -> Iterator[Place]:
    for ours, theirs in ATTENTIONS.items():
        if not hasattr(layer, ours):  # an encoder layer has no cross-attention
            continue
        attention = getattr(layer, ours)
        for part, name in ATTENTION_MATRICES.items():
            kernel = f"{scope}/{theirs}/multihead_attention/{name}/kernel"
            yield Place(getattr(attention, part).kernel, [kernel])
        yield from _residual(getattr(layer, f"{ours}_residual"), f"{scope}/{theirs}")
    feed_forward = layer.feed_forward
    dense_layers = {"conv1": feed_forward.inner, "conv2": feed_forward.outer}
    for theirs, dense in dense_layers.items():
        yield Place(dense.kernel, [f"{scope}/ffn/{theirs}/kernel"])
        yield Place(dense.bias, [f"{scope}/ffn/{theirs}/bias"])
    yield from _residual(layer.feed_forward_residual, f"{scope}/ffn")


def _residual(residual: Residual, scope: str) -> Iterator[Place]:
    kind = "layer_prepostprocess" if residual.pre_norm else "layer_postprocess"
    return _norm(residual.norm, f"{scope}/{kind}")


def _norm(norm: keras.layers.LayerNormalization, scope: str) -> Iterator[Place]:
    yield Place(norm.gamma, [f"{scope}/layer_norm/layer_norm_scale"])
    yield Place(norm.beta, [f"{scope}/layer_norm/layer_norm_bias"])


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
    shares = hparams.shared_embedding_and_softmax_weights
    if f"{modality}/{kind}/weights_0" not in names:
        shares = shares or f"{modality}/shared/weights_0" in names
    prefix = f"{modality}/{'shared' if shares else kind}/weights_"
    shard = re.compile(rf"{re.escape(prefix)}\d+")
    count = len(list(filter(shard.fullmatch, names)))
    return [f"{prefix}{i}" for i in range(max(count, 1))]
