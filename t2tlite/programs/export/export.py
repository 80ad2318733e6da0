"""Exports the model of a run for other programs: one path for every format.

A format (`formats.py`) refuses what it cannot express, writes, and verifies; this file
has what all share. An export is complete, verified and moved to its place, or leaves
nothing behind.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import tensorflow as tf

import t2tlite
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.programs.export.compare import keras_model
from t2tlite.programs.export.export_folder import (
    ExportFolder,
    ExportRecord,
    write_export_record,
)
from t2tlite.programs.export.formats import Settings, find_format
from t2tlite.programs.export.sample_sentences import sample_sentences


def export_model(
    model: TextDecoder,
    folder: ExportFolder,
    format_name: str,
    settings: Settings,
    report: Callable[[str], None] = lambda line: None,
) -> str:
    """Writes, verifies and puts in place an export; returns what was verified to equal
    the run's output.

    `report` is called with what is being done, which may take a minute. Raises
    ValueError for what the format cannot express, or if the output differs from
    the model's, ImportError for a missing package, and as `ExportFolder.writing`.
    """
    format_ = find_format(format_name)
    keras_model(model)  # raises for another engine
    format_.check(model, settings)
    record = ExportRecord(
        format=format_name,
        t2tlite=t2tlite.__version__,
        problem=model.manifest.name,
        checkpoint=model.checkpoint,
        step=model.step,
        decode_hparams=dataclasses.asdict(settings.decoding),
        quantization=settings.quantization,
    )
    sentences, origin = sample_sentences(model)
    with folder.writing() as unfinished:
        try:
            report(f"Writing the model as {format_name} ...")
            paragraphs = format_.write(model, unfinished, settings)
            write_export_record(unfinished, record, paragraphs)
        except (OSError, tf.errors.OpError) as error:
            reason = str(error).rpartition("}} ")[2]  # TensorFlow names its op first
            raise OSError(
                f"--export_dir={folder.path} cannot be written: {reason}. Make room"
                " there, or name another folder."
            ) from error
        report(f"Decoding {len(sentences)} sentences with the export and the run ...")
        compared = format_.verify(model, unfinished, settings, sentences)
    return f"{compared} of {len(sentences)} sentences {origin}"
