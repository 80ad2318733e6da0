"""Decodes the windows of a large file by the workers of a pipeline, on one machine or
many.

The lines of each window wait in the folder of windows, where a worker writes their
output beside them (`window_folder.py`).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.files.atomic_file import replaceable
from t2tlite.programs.bulk.decode_file import FILE_WINDOW, text_input
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat
from t2tlite.programs.bulk.window_folder import (
    open_windows,
    read_input,
    write_input,
    write_output,
)
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
    with open_windows(path, job.key) as folder:
        folder.plan(job.windows(text, FILE_WINDOW))
        outputs = []
        for output, window in folder.missing(job.windows(text, FILE_WINDOW)):
            write_input(output, window)
            outputs.append(output.absolute())
        if outputs:
            start = functools.partial(
                _start_decoding, _model(job, run), job.options, job.line_format
            )
            try:
                pipeline.run(start, outputs)
            finally:
                folder.remove_leftovers()
        for output in outputs:
            if not output.exists():
                raise ChildProcessError(
                    f"The workers of a pipeline must see {folder.path} under the same"
                    f" path as this machine. Received: no {output.name}, although all"
                    " have finished. Write to a file system that all share."
                )
        totals = folder.publish()
    return job.summary(totals, seconds_of=" of all workers together")


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
    """What a worker does: it decodes windows, each given as the path of its output."""
    job = DecodeJob(load(*model), options, line_format)
    return functools.partial(_decode_window, job)


def _decode_window(job: DecodeJob, output: Path) -> None:
    write_output(output, job.run(read_input(output)))
