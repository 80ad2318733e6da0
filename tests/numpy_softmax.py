"""The softmax and its logarithm in NumPy, at double precision."""

import numpy as np


def log_softmax(logits: np.ndarray) -> np.ndarray:
    """[..., V] -> float64 [..., V]."""
    shifted = np.asarray(logits, np.float64) - np.max(logits, axis=-1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=-1, keepdims=True))


def softmax(logits: np.ndarray) -> np.ndarray:
    """[..., V] -> float64 [..., V]."""
    return np.exp(log_softmax(logits))
