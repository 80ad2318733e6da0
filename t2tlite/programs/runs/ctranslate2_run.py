"""Opens a run for decoding with CTranslate2: the model is converted once and kept in
the run directory.

RUN/ctranslate2/QUANTIZATION/   a model directory of CTranslate2; its t2tlite.json says
                                what it was made from, and has its files' checksums

A directory made from another checkpoint, or by another version of t2tlite, is replaced.
TensorFlow is imported only then, to read the checkpoint.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import t2tlite
from t2tlite.config import HParams
from t2tlite.files.atomic_file import check_sha256, file_sha256
from t2tlite.files.atomic_folder import atomic_folder
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.files.lock import only_process
from t2tlite.files.own_files import own
from t2tlite.files.records import Name, read_record, write_record
from t2tlite.programs.export.ctranslate2_engine import (
    FLOAT32,
    CTranslate2Engine,
    check_computable,
    check_expressible,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.quiet import quiet_stderr
from t2tlite.run_folder import RunFolder
from t2tlite.training.cost import count_parameters
from t2tlite.types import Seq2SeqModel
from t2tlite.vocabularies.text_encoder import TextEncoder

if TYPE_CHECKING:
    import ctranslate2

STAMP = "t2tlite.json"


@dataclasses.dataclass(frozen=True)
class Stamp:
    """What a model directory was made from, and its content."""

    t2tlite: str  # the version that made it
    checkpoint: str  # its `checkpoint_identity`
    files: dict[Name, str]  # SHA-256 by name

    def is_of(self, checkpoint: str) -> bool:
        return (self.t2tlite, self.checkpoint) == (t2tlite.__version__, checkpoint)


def open_converted(
    folder: RunFolder,
    checkpoint: str,
    quantization: str | None,
    report: Callable[[str], object],
    threads: int = 1,
) -> CTranslate2Engine:
    """The engine that decodes with a run's model, converted to CTranslate2, by default
    in float32.

    The Keras model is loaded only for its attention; `report` is called before the
    model is converted. `threads` is how many decode at a time. Raises ValueError if
    CTranslate2 cannot compute the model here or the converted one is damaged, and
    OSError if the run cannot be written.
    """
    quantization = quantization or FLOAT32
    check_computable(quantization)
    hparams = folder.hparams()
    check_expressible(hparams)
    encoders = folder.encoders()
    parameters = count_parameters(hparams, [encoder.vocab_size for encoder in encoders])
    identity = checkpoint_identity(checkpoint)
    path = own(folder.ctranslate2_folder / quantization)

    translator = None
    stamp = _stamp_of(path, identity)
    if stamp:
        try:
            translator = _open(path, stamp, quantization, threads)
        except (OSError, ValueError):
            if _stamp_of(path, identity) == stamp:
                raise
    # another process may have replaced it meanwhile
    if translator is None or _stamp_of(path, identity) != stamp:
        work = "convert a run's model"
        try:
            with only_process(folder.ctranslate2_folder, work, wait=True):
                if not _stamp_of(path, identity):
                    report(
                        f"Converting {checkpoint} for CTranslate2 ({quantization}),"
                        f" once: it is kept in {path}."
                    )
                    _convert(hparams, encoders, parameters, checkpoint, path)
                translator = open_translator(path, quantization, threads)
        except OSError as error:
            raise OSError(
                f"The converted model is kept in {path}, which must be writable."
                f" Received: {error}. Make it writable, or decode with the engine"
                " tensorflow."
            ) from error
    engine = CTranslate2Engine(
        translator,
        encoders,
        quantization,
        hparams.max_positions,
        parameters,
        functools.partial(_restored_model, folder, checkpoint),
    )
    engine.threads = translator.num_translators  # 1 on a GPU
    return engine


def _stamp_of(path: Path, checkpoint: str) -> Stamp | None:
    """The stamp of a model directory; None if it is damaged, of another checkpoint or
    another version, or there is none.
    """
    try:
        stamp = read_record(path / STAMP, Stamp, "")
    except (OSError, ValueError):
        return None
    return stamp if stamp.is_of(checkpoint) else None


def _open(
    path: Path, stamp: Stamp, quantization: str, threads: int
) -> ctranslate2.Translator:
    """Loads a model directory, after checking its files."""
    for name, sha256 in stamp.files.items():
        check_sha256(path / name, sha256, f"Delete {path} to have it made again.")
    return open_translator(path, quantization, threads)


def _convert(
    hparams: HParams,
    encoders: Sequence[TextEncoder],
    parameters: int,
    checkpoint: str,
    path: Path,
) -> None:
    """Makes or replaces a model directory, which nothing else is writing."""
    with quiet_stderr():
        from t2tlite.training.checkpoints import read_weights
    weights = read_weights(checkpoint, parameters)
    work = path.with_name(f".{path.name}.converting")
    with atomic_folder(path, work) as unfinished:
        convert(hparams, weights, encoders, unfinished, path.name)
        files = {file.name: file_sha256(file) for file in unfinished.iterdir()}
        stamp = Stamp(t2tlite.__version__, checkpoint_identity(checkpoint), files)
        write_record(unfinished / STAMP, stamp)


def _restored_model(folder: RunFolder, checkpoint: str) -> Seq2SeqModel:
    with quiet_stderr():
        from t2tlite.programs.runs.keras_run import restored_model
    return restored_model(folder, checkpoint)
