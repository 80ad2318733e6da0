"""tensor2tensor's model `transformer` in NumPy, at double precision, and variables for
it.

Written from the names of its variables and what they mean there, without t2tlite's
code.
"""

# S source length, T target length, D hidden size, V vocabulary, H heads, K head size

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy_softmax import softmax

# What its hparams.json has, of a small model; the rest is transformer_base's.
SMALL = {
    "hidden_size": 16,
    "filter_size": 24,
    "num_heads": 2,
    "num_hidden_layers": 1,
    "layer_preprocess_sequence": "n",
    "layer_postprocess_sequence": "da",
    "use_target_space_embedding": True,
    "shared_embedding_and_softmax_weights": True,
}
SHARDS = 16  # of an embedding
POST_NORM = {"layer_preprocess_sequence": "none", "layer_postprocess_sequence": "dan"}


class NumpyTransformer:
    """Computes logits of sentences one by one.

    Args:
        variables: by their names in a checkpoint.
        hparams: what its hparams.json holds.
        sizes: of the source's and the target's vocabulary.
        target_space: the row of the target space embedding.
    """

    def __init__(
        self,
        variables: Mapping[str, Any],
        hparams: dict,
        sizes: tuple[int, int],
        target_space: int = 0,
    ):
        start = "transformer/body/"
        self.body = {
            n.removeprefix(start): np.asarray(v, np.float64)
            for n, v in variables.items()
            if n.startswith(start)
        }
        self.hparams, self.target_space = hparams, target_space
        # [H, T, S] of each attention, in the order of their computation
        self.weights: list[np.ndarray] = []
        self.pre_norm = hparams["layer_preprocess_sequence"] == "n"
        self.source_table = self.table(variables, sizes[0], "input_emb")  # [V, D]
        self.target_table = self.table(variables, sizes[1], "target_emb")
        self.softmax_table = self.table(variables, sizes[1], "softmax")

    def table(self, variables: Mapping[str, Any], size: int, kind: str) -> np.ndarray:
        modality = f"transformer/symbol_modality_{size}_{self.hparams['hidden_size']}"
        start = next(
            s
            for s in (f"{modality}/{kind}", f"{modality}/shared")
            if f"{s}/weights_0" in variables
        )
        names = itertools.takewhile(
            lambda name: name in variables,
            (f"{start}/weights_{i}" for i in itertools.count()),
        )
        return np.concatenate(
            [np.asarray(variables[name], np.float64) for name in names]
        )

    def logits(self, inputs: np.ndarray, targets: np.ndarray) -> np.ndarray:
        """int [B, S] and [B, T], padded with 0 -> [B, T, V]."""
        return np.stack(
            [self.sentence(*pair) for pair in zip(inputs, targets, strict=True)]
        )

    def sentence(self, source: np.ndarray, target: np.ndarray) -> np.ndarray:
        x = self.embed(self.source_table, source)
        if self.hparams["use_target_space_embedding"]:
            x = x + self.body["target_space_embedding/kernel"][self.target_space]
        memory = self.stack("encoder", x, np.tile(source != 0, (len(source), 1)))
        x = self.embed(self.target_table, target)
        # position t reads token t - 1
        x = np.concatenate([np.zeros_like(x[:1]), x[:-1]])
        seen = np.tri(len(target), dtype=bool)
        x = self.stack(
            "decoder", x, seen, memory, np.tile(source != 0, (len(target), 1))
        )
        return x @ self.softmax_table.T

    def embed(self, table: np.ndarray, ids: np.ndarray) -> np.ndarray:
        return table[ids] * self.hparams["hidden_size"] ** 0.5 * (ids != 0)[:, None]

    def stack(
        self,
        name: str,
        x: np.ndarray,
        seen: np.ndarray,
        memory: Any = None,
        memory_seen: Any = None,
    ) -> np.ndarray:
        x = x + self.positions(name, *x.shape)
        for i in range(
            self.hparams.get(f"num_{name}_layers") or self.hparams["num_hidden_layers"]
        ):
            layer = f"{name}/layer_{i}"
            x = self.sublayer(
                f"{layer}/self_attention", x, lambda y, at: self.attend(at, y, y, seen)
            )
            if memory is not None:
                x = self.sublayer(
                    f"{layer}/encdec_attention",
                    x,
                    lambda y, at: self.attend(at, y, memory, memory_seen),
                )
            x = self.sublayer(f"{layer}/ffn", x, self.feed_forward)
        return self.norm(f"{name}/layer_prepostprocess", x) if self.pre_norm else x

    def positions(self, stack: str, length: int, width: int) -> Any:
        return (
            timing(length, width)
            if self.hparams.get("pos", "timing") == "timing"
            else 0.0
        )

    def sublayer(
        self, at: str, x: np.ndarray, function: Callable[[np.ndarray, str], np.ndarray]
    ) -> np.ndarray:
        if self.pre_norm:
            return x + function(self.norm(f"{at}/layer_prepostprocess", x), at)
        return self.norm(f"{at}/layer_postprocess", x + function(x, at))

    def norm(self, at: str, x: np.ndarray) -> np.ndarray:
        epsilon = self.hparams.get("norm_epsilon", 1e-6)
        x = (x - x.mean(-1, keepdims=True)) / np.sqrt(
            x.var(-1, keepdims=True) + epsilon
        )
        return (
            x * self.body[f"{at}/layer_norm/layer_norm_scale"]
            + self.body[f"{at}/layer_norm/layer_norm_bias"]
        )

    def feed_forward(self, x: np.ndarray, at: str) -> np.ndarray:
        inner = np.maximum(
            x @ self.body[f"{at}/conv1/kernel"] + self.body[f"{at}/conv1/bias"], 0
        )
        return inner @ self.body[f"{at}/conv2/kernel"] + self.body[f"{at}/conv2/bias"]

    def attend(
        self, at: str, x: np.ndarray, memory: np.ndarray, seen: np.ndarray
    ) -> np.ndarray:
        q, k, v = (
            np.stack(
                np.split(
                    y @ self.body[f"{at}/multihead_attention/{part}/kernel"],
                    self.hparams["num_heads"],
                    -1,
                )
            )
            for y, part in ((x, "q"), (memory, "k"), (memory, "v"))
        )  # [H, length, K]
        scores = np.where(seen, q @ k.swapaxes(1, 2) / np.sqrt(k.shape[-1]), -np.inf)
        self.weights.append(softmax(scores))
        return (
            np.concatenate(list(self.weights[-1] @ v), -1)
            @ self.body[f"{at}/multihead_attention/output_transform/kernel"]
        )


def timing(length: int, width: int) -> np.ndarray:
    """All sines, then all cosines, of rates from 1 down to 1/10,000 in equal ratios;
    [length, width].
    """
    angles = np.arange(length)[:, None] * np.geomspace(1, 1e-4, width // 2)
    return np.concatenate([np.sin(angles), np.cos(angles)], -1)


def shapes(
    hparams: dict, tables: Sequence[tuple[str, int]] = ()
) -> dict[str, tuple[int, ...]]:
    """The names and shapes of all variables; `tables` are the embeddings, each its kind
    and number of tokens.
    """
    width, inner = hparams["hidden_size"], hparams["filter_size"]
    keys, values = (
        hparams.get(f"attention_{part}_channels") or width for part in ("key", "value")
    )
    attention = {
        "q": (width, keys),
        "k": (width, keys),
        "v": (width, values),
        "output_transform": (values, width),
    }
    pre_norm = hparams["layer_preprocess_sequence"] == "n"
    shapes: dict[str, tuple[int, ...]] = {}
    norms = (
        ["encoder/layer_prepostprocess", "decoder/layer_prepostprocess"]
        if pre_norm
        else []
    )
    for stack, sublayers in (
        ("encoder", ("self_attention",)),
        ("decoder", ("self_attention", "encdec_attention")),
    ):
        for i in range(
            hparams.get(f"num_{stack}_layers") or hparams["num_hidden_layers"]
        ):
            layer = f"{stack}/layer_{i}"
            for name in sublayers:
                shapes |= {
                    f"{layer}/{name}/multihead_attention/{k}/kernel": v
                    for k, v in attention.items()
                }
            shapes |= {
                f"{layer}/ffn/conv1/kernel": (width, inner),
                f"{layer}/ffn/conv1/bias": (inner,),
            }
            shapes |= {
                f"{layer}/ffn/conv2/kernel": (inner, width),
                f"{layer}/ffn/conv2/bias": (width,),
            }
            kind = "layer_prepostprocess" if pre_norm else "layer_postprocess"
            norms += [f"{layer}/{name}/{kind}" for name in (*sublayers, "ffn")]
    shapes |= {
        f"{norm}/layer_norm/layer_norm_{part}": (width,)
        for norm in norms
        for part in ("scale", "bias")
    }
    if hparams["use_target_space_embedding"]:
        shapes["target_space_embedding/kernel"] = (32, width)
    shapes = {f"transformer/body/{name}": shape for name, shape in shapes.items()}
    for kind, size in tables:
        # the first shards get a row more
        rows = [size // SHARDS + (i < size % SHARDS) for i in range(SHARDS)]
        shapes |= shard_shapes(size, width, kind, rows)
    return shapes


def shard_shapes(
    size: int, width: int, kind: str, rows: list[int]
) -> dict[str, tuple[int, ...]]:
    """The names and shapes of an embedding of `size` tokens, cut into shards of so many
    rows.
    """
    return {
        f"transformer/symbol_modality_{size}_{width}/{kind}/weights_{i}": (n, width)
        for i, n in enumerate(rows)
    }


def draw(wanted: Mapping[str, tuple[int, ...]], seed: int = 1) -> dict[str, np.ndarray]:
    """Random variables of these names and shapes, none at its initial value, and
    attention far from even.
    """
    random = np.random.default_rng(seed)
    return {
        name: (
            (
                0.4 * random.normal(size=shape) + name.endswith("layer_norm_scale")
            ).astype(np.float32)
        )
        for name, shape in wanted.items()
    }


def small_model(**changes: Any) -> tuple[dict, dict[str, np.ndarray]]:
    """hparams and variables of a small model with one vocabulary of 41 tokens."""
    hparams = SMALL | changes
    return hparams, draw(shapes(hparams, [("shared", 41)]))


INPUTS = np.array([[5, 9, 3, 17, 24, 1], [28, 12, 1, 0, 0, 0]], np.int32)
# a 0 in the middle embeds to zeros, as at the end
TARGETS = np.array([[6, 2, 0, 19, 1], [3, 8, 25, 1, 0]], np.int32)


def check_logits(
    model: Any,
    variables: Mapping[str, Any],
    hparams: dict,
    sizes: tuple[int, ...] = (41,),
    space: int = 0,
) -> None:
    """A model of t2tlite's computes what tensor2tensor's variables stand for; `sizes`
    are its vocabularies'.
    """
    expected = NumpyTransformer(
        variables, hparams, (sizes[0], sizes[-1]), space
    ).logits(INPUTS, TARGETS)
    if np.std(expected) < 1:
        raise ValueError(
            "Logits must be far from zero to prove much. Received: a standard deviation"
            " below 1."
        )
    np.testing.assert_allclose(np.asarray(model(INPUTS, TARGETS)), expected, atol=1e-4)
