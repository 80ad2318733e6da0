"""Reads the variables of a tensor2tensor checkpoint, and loads them into our
Transformer.

tensor2tensor names a model's layers `transformer/body/...`, and its embeddings, which
it splits by rows into shards N,
`transformer/symbol_modality_VOCABULARY_WIDTH/KIND/weights_N`. A checkpoint also holds
the optimizer state and statistics of training.
"""

# D hidden size

import re
from collections.abc import Collection

import keras
import numpy as np
import tensorflow as tf

from t2tlite.checked_fields import checked
from t2tlite.files.checkpoint_paths import readable_path
from t2tlite.models.transformer import Transformer
from t2tlite.training.checkpoints import Values, reason_of

SCOPE = "transformer/"
ROWS = 32  # of the target space embedding, one for each kind of target text
# [ROWS, D]
TARGET_SPACES = f"{SCOPE}body/target_space_embedding/kernel"
# the end of the name of their second moments in Adam
TARGET_SPACES_MOMENTS = f"{TARGET_SPACES}/Adam_1"

# Optimizer state and statistics of training, not of the model. The last line is of
# mixed precision.
BOOKKEEPING = re.compile(
    r"training/|losses_avg/|train_stats/|OptimizeLoss/|(.*/)?(global_step|beta[12]_power"
    r"|loss_scale|current_loss_scale|good_steps|bad_steps)$"
)

# What differs between the Keras path of a variable of ours and tensor2tensor's name, as
# regular expressions that are replaced one after the other
RENAMED = (
    (r"(encoder|decoder)_(\d+)/", r"body/\1/layer_\2/"),
    (r"(encoder|decoder)_norm/", r"body/\1/norm/"),
    (r"(\w+_attention)_residual/\1/", r"\1/multihead_attention/"),
    (r"(\w+_attention)_residual/", r"\1/"),
    ("/cross_attention/", "/encdec_attention/"),
    ("feed_forward_residual/(feed_forward/)?", "ffn/"),
    ("/inner/", "/conv1/"),
    ("/outer/", "/conv2/"),
    ("/query/", "/q/"),
    ("/key/", "/k/"),
    ("/value/", "/v/"),
    ("/norm/gamma$", "/layer_prepostprocess/layer_norm/layer_norm_scale"),
    ("/norm/beta$", "/layer_prepostprocess/layer_norm/layer_norm_bias"),
    ("^transformer/target_space$", TARGET_SPACES),
)
# our embeddings -> tensor2tensor's kinds
EMBEDDINGS = {
    "embedding": "shared",
    "source_embedding": "input_emb",
    "target_embedding": "target_emb",
    "softmax_embedding": "softmax",
}


def read_variables(path: str) -> dict[str, np.ndarray]:
    """The model's variables in a checkpoint by name, and the optimizer state of the
    target space embedding.

    Raises ValueError for a checkpoint that is damaged or of another model.
    """
    variables = {}
    try:
        with readable_path(path) as readable:
            reader = tf.train.load_checkpoint(readable)
            names = reader.get_variable_to_shape_map()
            wanted = model_variables(names)
            for name in names:
                if name in wanted or name.endswith(TARGET_SPACES_MOMENTS):
                    variables[name] = reader.get_tensor(name)
    except (tf.errors.OpError, RuntimeError, IndexError) as error:
        raise ValueError(
            f"A whole checkpoint is required. Received: {path}: {reason_of(error)}."
            " Copy it again, all its files."
        ) from error
    if not any(name.startswith(f"{SCOPE}body/") for name in variables):
        scopes = sorted({name.split("/")[0] for name in variables})
        raise ValueError(
            "A checkpoint of tensor2tensor's transformer is required. Received:"
            f" {path}, of {', '.join(scopes) or 'no model'}."
        )
    return variables


def model_variables(names: Collection[str]) -> list[str]:
    """The names of the model's variables, sorted; optimizer state is below them, as in
    .../kernel/Adam_1.
    """
    ours = []
    for name in sorted(names):
        if not BOOKKEEPING.match(name) and name.rpartition("/")[0] not in names:
            ours.append(name)
    return ours


def trained_target_space(variables: Values) -> int:
    """The row of the target space embedding that was trained, by the optimizer state;
    0, as in nearly all problems, if that does not show it.

    tensor2tensor's Adam does not change rows without a gradient, and a problem uses a
    single row.
    """
    for name, moments in variables.items():
        if name.endswith(TARGET_SPACES_MOMENTS) and np.ndim(moments) == 2:
            [rows] = np.nonzero(np.any(moments != 0, axis=1))
            return int(rows[0]) if len(rows) == 1 else 0
    return 0


def embedding_sizes(names: Collection[str]) -> list[int]:
    """The vocabulary sizes of a checkpoint's embeddings, ascending."""
    sizes = set()
    for name in names:
        match = re.match(rf"{SCOPE}symbol_modality_(\d+)_\d+/", name)
        if match:
            sizes.add(int(match[1]))
    return sorted(sizes)


def load_variables(
    model: Transformer, variables: Values, target_space: int = 0
) -> None:
    """Loads the weights of a tensor2tensor model into a built Transformer with its
    converted hparams.

    `target_space` is the row of the target space embedding that was trained. Raises
    ValueError that lists the variables that are missing, of another shape or without a
    place in the model.
    """
    weights = []
    misfits = []
    unused = set(model_variables(variables))
    for variable in model.trainable_variables:
        if variable.path.endswith("_positions/table"):
            continue  # no imported model has learned positions
        names = _names(variable, model.hparams.pre_norm, variables)
        unused.difference_update(names)
        shape = list(variable.shape)
        if names == [TARGET_SPACES]:
            shape = [ROWS, *shape]
        misfit = _misfit(names, shape, variables)
        if misfit:
            misfits.append(misfit)
        else:
            weights.append((variable, names))
    misfits.sort()
    misfits += [f"{name} has no place in the model." for name in sorted(unused)]
    if misfits:
        received = "\n  ".join(misfits)
        raise ValueError(
            "hparams.json and the vocabularies must be the checkpoint's. Received:"
            f"\n  {received}"
        )
    if TARGET_SPACES in variables:
        checked("--target_space_id", int, target_space, low=0, high=ROWS - 1)
    for variable, names in weights:
        value = np.concatenate([variables[name] for name in names])
        if names == [TARGET_SPACES]:
            value = value[target_space]
        variable.assign(value.astype(np.float32))


def _misfit(names: list[str], shape: list[int], variables: Values) -> str:
    """Says which of the shards is missing, or that they do not have a shape together;
    empty if they fit.
    """
    shapes = []
    for name in names:
        if name not in variables:
            return f"{name} is missing."
        shapes.append(list(variables[name].shape))
    rows = sum(each[0] for each in shapes if each)
    if all(each[1:] == shape[1:] for each in shapes) and rows == shape[0]:
        return ""
    received = ", ".join(map(str, shapes))
    return f"{names[0]} must have the shape {shape}. Received: {received}."


def _names(
    variable: keras.Variable, pre_norm: bool, names: Collection[str]
) -> list[str]:
    """The tensor2tensor variable of a variable of ours, or its shards by rows."""
    layer = variable.path.partition("/")[0]
    if layer in EMBEDDINGS:
        return _shards(EMBEDDINGS[layer], variable.shape, names)
    name = variable.path
    for ours, theirs in RENAMED:
        name = re.sub(ours, theirs, name)
    if not pre_norm:
        name = name.replace("layer_prepostprocess", "layer_postprocess")
    return [name]


def _shards(kind: str, shape: tuple[int, int], names: Collection[str]) -> list[str]:
    """The names of an embedding's shards; if there are none, the name of the first.

    A model that shares embeddings has `shared`, one per vocabulary; otherwise it has
    `input_emb`, `target_emb` and `softmax`, or with shared_embedding `shared` and
    `softmax`. Older versions share between target and softmax even if the source has
    another vocabulary.
    """
    modality = f"{SCOPE}symbol_modality_{shape[0]}_{shape[1]}"
    start = f"{modality}/{kind}/weights_"
    shared = f"{modality}/shared/weights_"
    if f"{start}0" not in names and f"{shared}0" in names:
        start = shared
    count = sum(re.fullmatch(rf"{start}\d+", name) is not None for name in names)
    return [f"{start}{i}" for i in range(max(count, 1))]
