"""Loads a run with an engine, TensorFlow or CTranslate2, and imports only that one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.decoding.token_decoder import CTRANSLATE2, TENSORFLOW
from t2tlite.programs.runs.translator import Translator
from t2tlite.quiet import quiet_stderr

ENGINES = (TENSORFLOW, CTRANSLATE2)


def check_engine_options(engine: str, options: DecodeHParams) -> None:
    """Raises ValueError naming an option that the engine does not have."""
    if engine == CTRANSLATE2:
        from t2tlite.programs.runs.ctranslate2_decoder import check_options

        check_options(options)


def load_with_engine(
    run: str | Path,
    checkpoint_path: str | Path | None = None,
    engine: str = TENSORFLOW,
    quantization: str | None = None,
    report: Callable[[str], object] = lambda sentence: None,
) -> Translator:
    """The trained model in a run directory, ready to decode with an engine; other arguments as in `load.load`.

    `quantization` is how CTranslate2 stores the weights, by default float32. `report` is called with messages for the
    user. Raises as `load.load` or `ctranslate2_run.load_converted`, and ValueError if there is no such engine.
    """
    if engine not in ENGINES:
        raise ValueError(f"engine must be one of {', '.join(ENGINES)}. Received: {engine!r}.")
    if engine == CTRANSLATE2:
        from t2tlite.programs.runs.ctranslate2_run import load_converted

        return load_converted(run, checkpoint_path, quantization, report)
    if quantization is not None:
        raise ValueError(
            f"quantization goes with engine={CTRANSLATE2}; TensorFlow computes with the weights as they were trained. "
            f"Received: quantization={quantization} with engine={engine}."
        )
    with quiet_stderr():
        from t2tlite.programs.runs import load

    return load.load(run, checkpoint_path)
