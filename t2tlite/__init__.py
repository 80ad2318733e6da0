"""Attention Is All You Need on today's TensorFlow, with tensor2tensor's way of working.

    import t2tlite
    model = t2tlite.load("RUN")
    model.translate("A man rides a bicycle.")        # -> "Ein Mann fährt Fahrrad."

Importing this package is light: TensorFlow is imported when `load` is called. Import it
before tensorflow, so that its settings for this machine (`machine.py`) take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.machine import apply_settings

if TYPE_CHECKING:
    from t2tlite.programs.runs.translator import Translator

apply_settings()  # before TensorFlow loads

__version__ = "1.0.0rc1"
__all__ = ["load", "__version__"]


def load(
    run: str | Path | Sequence[str | Path],
    checkpoint_path: str | Path | int | None = None,
    engine: str = "tensorflow",
    quantization: str | None = None,
) -> Translator:
    """The trained model in a run folder, ready to translate; or several runs as an
    ensemble, which averages their probabilities in one search.

    Args:
        run: the run folder, which t2t-trainer made; or a list of runs of one problem
            and vocabulary.
        checkpoint_path: newest (the default), best, averaged, a step, or the path of a
            checkpoint.
        engine: what computes, tensorflow or ctranslate2 (pip install
            't2tlite[ctranslate2]'), which is faster on CPUs; the model is converted
            once, into the run folder.
        quantization: how CTranslate2 stores the weights: float32 (the default), int8,
            ...

    Raises:
        FileNotFoundError: there is no run, vocabulary or checkpoint.
        TypeError: `run` or `checkpoint_path` is not a path.
        ValueError: a file of it is damaged, the engine or quantization is unknown,
            CTranslate2 is not installed or cannot compute the model, or the runs of an
            ensemble differ in problem or vocabulary.
    """
    from t2tlite.programs.runs import load as runs

    return runs.load(run, checkpoint_path, engine, quantization)
