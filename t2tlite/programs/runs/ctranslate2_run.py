"""Loads a run for decoding with CTranslate2: the model is converted once and kept in the run directory.

RUN/ctranslate2/QUANTIZATION/   a model directory of CTranslate2; its t2tlite.json says what it was made from

A directory made from another checkpoint, or by another version of t2tlite, is replaced. TensorFlow is imported only to
read the checkpoint, not if the directory is up to date.
"""

from __future__ import annotations

import dataclasses
import functools
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import t2tlite
from t2tlite.config import HParams
from t2tlite.files.checkpoint_paths import checkpoint_identity, find_checkpoint
from t2tlite.files.lock import only_process
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.export.ctranslate2_model import convert
from t2tlite.programs.runs.ctranslate2_decoder import FLOAT32, CTranslate2Engine, check_computable, check_expressible
from t2tlite.programs.runs.run_facts import model_facts
from t2tlite.programs.runs.translator import Translator
from t2tlite.quiet import quiet_stderr
from t2tlite.run_folder import RunFolder
from t2tlite.training.cost import count_parameters
from t2tlite.types import Seq2SeqModel, Tensor
from t2tlite.vocabularies.text_encoder import TextEncoder

STAMP = "t2tlite.json"


@dataclasses.dataclass(frozen=True)
class Stamp:
    """What a model directory was made from."""

    t2tlite: str  # the version that made it
    checkpoint: str  # its `checkpoint_identity`


def load_converted(
    run: str | Path,
    checkpoint_path: str | Path | None = None,
    quantization: str | None = None,
    report: Callable[[str], object] = lambda sentence: None,
) -> Translator:
    """The trained model in a run directory, ready to decode with CTranslate2, by default in float32.

    Its `model` is the TensorFlow model, which is loaded only if something other than decoding or scoring needs it.
    `report` is called with a sentence before the model is converted. Raises as `load.load`; ValueError if CTranslate2
    is not installed, cannot compute the model, or there is no such quantization; OSError if the run cannot be written.
    """
    quantization = FLOAT32 if quantization is None else quantization
    check_computable(quantization)
    folder = RunFolder(run)
    hparams, manifest = folder.hparams(), folder.manifest()
    check_expressible(hparams)
    checkpoint = find_checkpoint(folder.path, checkpoint_path)
    encoders = folder.encoders()
    parameters = count_parameters(hparams, [encoder.vocab_size for encoder in encoders])
    model = _ModelOnDemand(hparams.max_positions, parameters, folder.path, checkpoint)
    stamp = Stamp(t2tlite.__version__, checkpoint_identity(checkpoint))
    path = folder.ctranslate2_folder / quantization
    open_engine = functools.partial(CTranslate2Engine, path, encoders, hparams.max_positions, quantization)

    engine = open_engine() if _stamp_of(path) == stamp else None
    if engine is None or _stamp_of(path) != stamp:  # another process may have replaced it meanwhile
        try:
            with only_process(folder.ctranslate2_folder, "convert a run's model", wait=True):
                if _stamp_of(path) != stamp:
                    report(f"Converting {checkpoint} for CTranslate2 ({quantization}), once: it is kept in {path}.")
                    _convert(hparams, encoders, parameters, checkpoint, path, stamp)
                engine = open_engine()
        except OSError as error:
            raise OSError(
                f"The converted model is kept in {path}, which must be writable. Received: {error}. Make it writable, "
                "or decode with the engine tensorflow."
            ) from error
    facts = model_facts(folder, checkpoint)
    return Translator(cast(Seq2SeqModel, model), encoders, manifest, checkpoint=checkpoint, engine=engine, facts=facts)


def _stamp_of(path: Path) -> Stamp | None:
    """The stamp of a model directory, or None if there is none or it is damaged."""
    try:
        return read_record(path / STAMP, Stamp, "")
    except (OSError, ValueError):
        return None


def _convert(
    hparams: HParams, encoders: Sequence[TextEncoder], parameters: int, checkpoint: str, path: Path, stamp: Stamp
) -> None:
    """Makes or replaces a model directory, which nothing else is writing."""
    with quiet_stderr():
        from t2tlite.training.checkpoints import read_weights
    weights = read_weights(checkpoint, parameters)
    unfinished = path.with_name(f".{path.name}.converting")
    try:
        shutil.rmtree(unfinished, ignore_errors=True)  # of a process that was killed
        unfinished.mkdir()
        convert(hparams, weights, encoders, unfinished, path.name)
        write_record(unfinished / STAMP, stamp)
        shutil.rmtree(path, ignore_errors=True)
        unfinished.rename(path)
    except KeyError as error:
        raise ValueError(f"Checkpoint {checkpoint} is of another model: it has no {error}. Use another.") from error
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


class _ModelOnDemand:
    """A run's Keras model, loaded when it is first needed; its limits and size are known before."""

    def __init__(self, max_positions: int | None, parameters: int, run: Path, checkpoint: str) -> None:
        self.max_positions = max_positions
        self._parameters = parameters
        self._load = run, checkpoint

    def count_params(self) -> int:
        return self._parameters

    def __call__(self, *args: Tensor, **kwargs: Tensor) -> Tensor:
        return self._model(*args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # looked up by Python on any object
            raise AttributeError(name)
        return getattr(self._model, name)

    @functools.cached_property
    def _model(self) -> Seq2SeqModel:
        with quiet_stderr():
            from t2tlite.programs.runs.load import load
        return load(*self._load).model
