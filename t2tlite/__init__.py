"""Attention Is All You Need on today's TensorFlow, with tensor2tensor's way of working.

    import t2tlite
    model = t2tlite.load("RUN")
    model.translate(["A man rides a bicycle."])      # -> ["Ein Mann fährt Fahrrad."]

Importing this package is light: TensorFlow is imported when `load` is called.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from t2tlite.runs import Translator

__version__ = "0.1.0"
__all__ = ["load", "__version__"]


def load(run: Any, *args: Any, **kwargs: Any) -> Translator:
    """The trained model of a run folder, ready to translate; see `t2tlite.runs.load`."""
    from t2tlite import runs

    return runs.load(run, *args, **kwargs)
