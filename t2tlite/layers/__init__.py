"""The paper's layers, for models of your own.

Each is a Keras layer whose shapes its docstring gives, and which a saved model contains
by its configuration. docs/python.md has an example.
"""

from t2tlite.layers.attention import (
    MultiHeadAttention,
    attention_weights,
    causal_mask,
    padding_mask,
)
from t2tlite.layers.embedding import Embedding, Positions
from t2tlite.layers.restricted_attention import RestrictedAttention
from t2tlite.layers.sublayer import (
    Dense,
    Dropout,
    FeedForward,
    LayerNormalization,
    Residual,
)

__all__ = [
    "Dense",
    "Dropout",
    "Embedding",
    "FeedForward",
    "LayerNormalization",
    "MultiHeadAttention",
    "Positions",
    "Residual",
    "RestrictedAttention",
    "attention_weights",
    "causal_mask",
    "padding_mask",
]
