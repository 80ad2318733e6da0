"""An engine: a program that computes with the weights of a model, and what it supports.

There are two: TensorFlow (`decoder.py`), and CTranslate2
(`programs/export/ctranslate2_decoder.py`).
"""

# B batch, S source length, T target length

from __future__ import annotations

import dataclasses
from typing import Protocol

from t2tlite.config import DecodeHParams
from t2tlite.decoding.token_decoder import TokenDecoder
from t2tlite.types import AttentionWeights, Tensor

TENSORFLOW, CTRANSLATE2 = "tensorflow", "ctranslate2"  # names of engines
ENGINES = TENSORFLOW, CTRANSLATE2

# What an engine may support in addition to fields of DecodeHParams.
PREFIXES, ALIGNMENTS = "prefixes", "alignments"
EVERYTHING = frozenset(
    {*(field.name for field in dataclasses.fields(DecodeHParams)), PREFIXES, ALIGNMENTS}
)


class Engine(Protocol):
    """A program that decodes with the weights of a model."""

    @property
    def name(self) -> str:
        """TENSORFLOW or CTRANSLATE2."""

    @property
    def supported(self) -> frozenset[str]:
        """The fields of DecodeHParams that may differ from their defaults, PREFIXES and
        ALIGNMENTS.
        """

    @property
    def quantization(self) -> str:
        """How the weights are stored; "" for TensorFlow, which stores them as they were
        trained.
        """

    @property
    def max_positions(self) -> int | None:
        """The number of positions that the model can represent, or None if there is no
        limit.
        """

    @property
    def parameters(self) -> int:
        """The number of the model's weights."""

    def decoder(self, options: DecodeHParams) -> TokenDecoder:
        """The decoder with these options, which the engine must support
        (`check_supported`).
        """

    def attention(self, inputs: Tensor, targets: Tensor) -> AttentionWeights:
        """The attention weights for int32 [B, S] and [B, T]."""


def check_supported(
    who: str, supported: frozenset[str], options: DecodeHParams, *features: str
) -> None:
    """Raises ValueError for an option that is not at its default, or a feature, that is
    not supported.

    `who` is the engine or the format of an export, for the message; the features are
    PREFIXES or ALIGNMENTS.
    """
    changes = options.diff(type(options)())
    missing = [
        f"{name}={value}"
        for name, (value, _) in changes.items()
        if name not in supported
    ]
    missing += [feature for feature in features if feature not in supported]
    if missing:
        raise ValueError(
            f"{who} supports {', '.join(sorted(supported))}. Received:"
            f" {', '.join(missing)}. Leave out what it does not support, or decode with"
            f" the engine {TENSORFLOW}."
        )
