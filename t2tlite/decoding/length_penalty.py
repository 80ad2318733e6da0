"""The length penalty of Wu et al. (2016), by which beam search compares hypotheses of
different lengths.
"""

from __future__ import annotations

from typing import TypeVar

Number = TypeVar("Number")  # float, or a float tensor


def length_penalty(length: Number, alpha: float | Number) -> Number:
    """((5 + length) / 6)^alpha (equation 14); `length` in tokens, EOS included; a
    tensor is of floats.
    """
    return ((5.0 + length) / 6.0) ** alpha  # type: ignore[operator]
