"""Multi-head attention in NumPy, at double precision, as section 3.2 has it."""

import math

import keras
import numpy as np
from numpy_softmax import softmax

from t2tlite.layers.attention import MultiHeadAttention

# B batch, T length of the queries, S length of the keys

HIDDEN, HEADS, KEYS, VALUES = 8, 2, 6, 10  # keys and values of all heads together


def normal(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng((seed, *shape)).normal(size=shape).astype(np.float32)


def randomise(layer: keras.layers.Layer, seed: int = 1) -> None:
    """Gives every weight values of its own, those that start at zero or one too."""
    for i, variable in enumerate(layer.weights):
        variable.assign(normal(*variable.shape, seed=seed + i))


def numpy_attention(
    layer: MultiHeadAttention, x: np.ndarray, memory: np.ndarray, allowed: np.ndarray
) -> np.ndarray:
    """One head and one query at a time; `allowed` is bool [B, T, S]."""
    w_query, w_key, w_value, w_output = (
        np.asarray(part.kernel, np.float64)
        for part in (layer.query, layer.key, layer.value, layer.output_transform)
    )
    key_size, value_size = KEYS // HEADS, VALUES // HEADS
    output = np.zeros((*x.shape[:2], HIDDEN))
    for b in range(len(x)):
        for t in range(x.shape[1]):
            heads = []
            for h in range(HEADS):
                key_part = slice(h * key_size, (h + 1) * key_size)
                value_part = slice(h * value_size, (h + 1) * value_size)
                query = x[b, t].astype(np.float64) @ w_query[:, key_part]
                seen = memory[b, allowed[b, t]].astype(np.float64)
                weights = softmax(
                    seen @ w_key[:, key_part] @ query / math.sqrt(key_size)
                )
                heads.append(weights @ (seen @ w_value[:, value_part]))
            output[b, t] = np.concatenate(heads) @ w_output
    return output
