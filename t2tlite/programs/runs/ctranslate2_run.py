"""Opens a run for decoding with CTranslate2: the model is converted once and kept in
the run directory.

RUN/ctranslate2/QUANTIZATION-HASH/   a model directory of CTranslate2; its t2tlite.json
                                     has its files' checksums

The hash is that of the checkpoint and of t2tlite's version. A directory of others is
removed when a model is converted. TensorFlow is imported only then, to read the
checkpoint.
"""

import dataclasses
import hashlib
from pathlib import Path

import t2tlite
from t2tlite.console import say
from t2tlite.files.atomic_file import atomic_folder, check_sha256, file_sha256
from t2tlite.files.checkpoint_paths import checkpoint_identity
from t2tlite.files.own_files import only_process, remove
from t2tlite.files.records import Name, read_record, write_record
from t2tlite.machine import quiet_stderr
from t2tlite.programs.export.ctranslate2_engine import (
    FLOAT32,
    CTranslate2Engine,
    check_computable,
    check_expressible,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.run_folder import RunFolder
from t2tlite.training.cost import count_parameters
from t2tlite.types import Seq2SeqModel

CHECKSUMS = "t2tlite.json"


@dataclasses.dataclass(frozen=True)
class Checksums:
    """The content of a model directory."""

    files: dict[Name, str]  # SHA-256 by name


def open_converted(
    folder: RunFolder, checkpoint: str, quantization: str | None, threads: int = 1
) -> CTranslate2Engine:
    """The engine that decodes with a run's model, converted to CTranslate2, by default
    in float32.

    The Keras model is loaded only for its attention. `threads` is how many decode at a
    time. Raises ValueError if CTranslate2 cannot compute the model here or the
    converted one is damaged, and OSError if the run cannot be written.
    """
    quantization = quantization or FLOAT32
    check_computable(quantization)
    hparams = folder.hparams()
    check_expressible(hparams)
    encoders = folder.encoders()
    parameters = count_parameters(hparams, [encoder.vocab_size for encoder in encoders])
    made_from = f"{t2tlite.__version__} {checkpoint_identity(checkpoint)}"
    digest = hashlib.sha256(made_from.encode()).hexdigest()[:8]
    path = folder.own(f"ctranslate2/{quantization}-{digest}")
    if not path.is_dir():
        _convert(folder, checkpoint, parameters, path)
    advice = f"Delete {path} to have it made again."
    checksums = read_record(path / CHECKSUMS, Checksums, advice)
    for name, sha256 in checksums.files.items():
        check_sha256(path / name, sha256, advice)
    translator = open_translator(path, quantization, threads)

    def keras_model() -> Seq2SeqModel:
        with quiet_stderr():
            from t2tlite.programs.runs.keras_run import restored_model
        return restored_model(folder, checkpoint)

    engine = CTranslate2Engine(
        translator,
        encoders,
        quantization,
        hparams.max_positions,
        parameters,
        keras_model,
    )
    engine.threads = translator.num_translators  # 1 on a GPU
    return engine


def _convert(folder: RunFolder, checkpoint: str, parameters: int, path: Path) -> None:
    """Makes a model directory, and removes those of its quantization that were made
    from something else.
    """
    converted = path.parent
    quantization = path.name.partition("-")[0]
    with only_process(converted, "convert a run's model", wait=True):
        if path.is_dir():  # another process has made it meanwhile
            return
        say(
            f"Converting {checkpoint} for CTranslate2 ({quantization}), once: it is"
            f" kept in {path}."
        )
        with quiet_stderr():
            from t2tlite.training.checkpoints import read_weights
        weights = read_weights(checkpoint, parameters)
        with atomic_folder(path, converted / ".converting") as unfinished:
            hparams = folder.hparams()
            convert(hparams, weights, folder.encoders(), unfinished, quantization)
            files = {file.name: file_sha256(file) for file in unfinished.iterdir()}
            write_record(unfinished / CHECKSUMS, Checksums(files))
        for other in converted.iterdir():
            if other != path and other.name.partition("-")[0] == quantization:
                remove(other)
