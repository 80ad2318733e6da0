"""Decodes the windows of a large file by the workers of a pipeline, on one machine or
many.

The lines of each window wait in a folder, where a worker writes their output beside
them (`part.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.files.atomic_file import atomic_file, replaceable
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.decode_file import FILE_WINDOW, text_input
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat
from t2tlite.programs.bulk.part import encoded, open_part
from t2tlite.programs.bulk.windows import Window
from t2tlite.programs.runs.load import load


def decode_by_workers(
    job: DecodeJob, run: Path, pipeline: Pipeline, source: str, target: str | Path
) -> str:
    """Decodes a file as `decode_file` does, but by a pipeline's workers; the seconds of
    the summary are those of all workers together.

    The workers see the folder `run` and that of `target` under the same paths as this
    machine. Raises ChildProcessError if an output is missing afterwards.
    """
    text, path = text_input(job, source), replaceable(target)
    if path is None or text.is_pipe:
        raise ValueError(
            f"A pipeline reads a file and writes one. Received: {source} and {target}."
        )
    with open_part(path, job.key) as part:
        pieces = []
        try:
            for window in part.missing(job.windows(text, FILE_WINDOW)):
                part.pieces.mkdir(exist_ok=True)
                pieces.append(part.pieces.absolute() / f"{job.key(window)}.json")
                write_record(pieces[-1], window)
            part.report_stale()
            if pieces:
                model = _model(job, run)
                start = functools.partial(
                    _start_decoding, model, job.options, job.line_format
                )
                pipeline.run(start, pieces)
        finally:
            part.take_up_pieces()
        if part.is_incomplete:
            raise ChildProcessError(
                f"The workers of a pipeline must see {part.pieces} under the same path"
                " as this machine. Received: no output of some lines, although all"
                " have finished. Write to a file system that all share."
            )
        totals = part.publish(job.lines)
    return job.summary(totals, whose=" of all workers together")


def _model(job: DecodeJob, run: Path) -> tuple[Path, Path, str, str | None]:
    """The arguments of `load` for the model of a job, in any process."""
    engine = job.model.engine
    checkpoint = Path(job.model.checkpoint).absolute()
    return run.absolute(), checkpoint, engine.name, engine.quantization or None


def _start_decoding(
    model: tuple[Path, Path, str, str | None],
    options: DecodeHParams,
    line_format: LineFormat,
) -> Callable[[Path], None]:
    """What a worker does: it decodes windows, each given as a file of its lines."""
    job = DecodeJob(load(*model), options, line_format)
    return functools.partial(_decode_piece, job)


def _decode_piece(job: DecodeJob, piece: Path) -> None:
    window = read_record(piece, Window, "The same command writes it again.")
    with atomic_file(piece.with_suffix(".part")) as file:
        file.write(encoded(job.key(window), job.run(window)))
