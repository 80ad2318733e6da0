"""Decodes or scores the lines of a text file or a pipe into a file, or to a pipe, a
terminal or a device; here, or by the workers of a pipeline.
"""

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from t2tlite.config import DecodeHParams
from t2tlite.console import progress_bar, say
from t2tlite.data.beam_pipeline import MakeFile, Pipeline
from t2tlite.decoding.text_decoder import Origin, TooLong
from t2tlite.files import atomic_file, compression, text_files
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat
from t2tlite.programs.bulk.part import (
    Part,
    Window,
    cut,
    encoded,
    open_part,
    read_first,
)
from t2tlite.programs.runs.load import load

# Sentences that are sorted by length together: 2 % more padding than if all are
# (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
FILE_WINDOW = 2048
PROMPT_WINDOW = 256  # of a stream: somebody may wait for the output


def _windows(
    job: DecodeJob, path: str | Path, size: int, prompt: bool = False
) -> Iterator[Window]:
    """The windows of a text file, a pipe or standard input."""
    origin = Origin(text_files.shown(path))
    return cut(_lines(job, path, origin), origin, size, prompt)


def _is_pipe(path: str | Path) -> bool:
    return Path(path) == compression.STANDARD_INPUT or not Path(path).is_file()


def _lines(job: DecodeJob, path: str | Path, origin: Origin) -> Iterator[str]:
    """Yields the lines of an input, blank where a job cannot decode one, which is
    reported.

    A line of a file is blank only if it is too long. Other faults, encoding and
    columns, are nearly always those of the whole file, and raise a ValueError. A stream
    has begun, so that there no fault of a line is an error.
    """
    is_pipe = _is_pipe(path)
    fault_of_line = ValueError if is_pipe else TooLong
    for number, line in enumerate(
        text_files.read_lines(path, _report if is_pipe else None)
    ):
        try:
            if line or not is_pipe:
                job.check(Window([line], origin.after(number)))
        except fault_of_line as fault:
            _report(fault)
            line = ""
        yield line


def _report(fault: ValueError) -> None:
    say(f"{fault} It counts as blank.")


def decode_file(job: DecodeJob, source: str | Path, target: Path) -> str:
    """Decodes or scores a text file or a pipe into the file `target`, not a symbolic
    link; resumes; returns a summary.

    Raises ValueError for a bad line of a file, before anything is decoded, or as
    `open_part`.
    """
    windows = _windows(job, source, job.window_size(FILE_WINDOW))
    with open_part(target, job.key) as part:
        decode_windows(job, windows, part, _is_pipe(source))
        return job.summary(part.publish(job.lines))


def decode_windows(
    job: DecodeJob, windows: Iterable[Window], part: Part, is_quiet: bool = False
) -> None:
    """Reads all windows of an input, then decodes those that have no output yet. A
    progress bar shows their lines, unless `is_quiet`.
    """
    with (
        read_first(part.missing(windows), part.path.parent) as (total, missing),
        progress_bar(
            desc="decoding", total=total, unit=" sentences", is_quiet=is_quiet
        ) as bar,
    ):
        for window in missing:
            before = bar.n
            part.add(window, job.run(window, bar.update))
            bar.n = before + len(window.lines)  # blank lines too


def decode_stream(
    job: DecodeJob,
    source: str | Path,
    target: str | Path | None = None,
    one_by_one: bool = False,
) -> str:
    """Decodes or scores lines to standard output, or to the device or pipe `target`,
    each as soon as it is done; returns a summary.

    Lines that have arrived through a pipe are decoded without waiting for others;
    `one_by_one` decodes each by itself even under tensor2tensor's rules. A file is read
    to its end first.
    """
    is_pipe = _is_pipe(source)
    size = job.window_size(PROMPT_WINDOW)
    if one_by_one and job.depends_on_batch:
        size = 1
    prompt = is_pipe and not job.depends_on_batch
    windows = _windows(job, source, size, prompt)
    totals: Counter[str] = Counter()
    with contextlib.ExitStack() as stack:
        if not is_pipe:
            _, windows = stack.enter_context(read_first(windows))
        stack.enter_context(atomic_file.full_disk_is_named(target or "standard output"))
        file = stack.enter_context(_opened(target))
        for window in windows:
            output = job.run(window)
            _write(file, job.lines(output, totals["sentences"]))
            totals.update(output.counts)
    return job.summary(totals)


@contextlib.contextmanager
def _opened(target: str | Path | None) -> Iterator[BinaryIO | None]:
    """The open `target`, or standard output; None if that takes text alone, as in a
    notebook.
    """
    if target is None:
        yield getattr(sys.stdout, "buffer", None)
    else:
        with (
            atomic_file.open_directly(target) as file,
            compression.compressed(file, Path(target)) as out,
        ):
            yield out


def _write(file: BinaryIO | None, lines: Iterable[str]) -> None:
    text = "".join([f"{line}\n" for line in lines])
    if file is None:
        print(text, end="", flush=True)
    else:
        file.write(text.encode())  # UTF-8 also if the terminal's locale is another
        file.flush()


def decode_by_workers(
    job: DecodeJob, run: Path, pipeline: Pipeline, source: str, target: str | Path
) -> str:
    """Decodes a file as `decode_file` does, but by a pipeline's workers; the seconds of
    the summary are those of all workers together.

    A worker writes the output of a window to a file in the folder OUT.pieces. The
    workers see the folder `run` and that of `target` under the same paths as this
    machine. Raises as `Pipeline.make_files`.
    """
    path = atomic_file.replaceable(target)
    if path is None:
        raise ValueError(f"A pipeline writes a file. Received: {target}.")
    checkpoint = Path(job.model.checkpoint).absolute()
    engine = job.model.engine
    model = run.absolute(), checkpoint, engine.name, engine.quantization or None
    start = functools.partial(_start_decoding, model, job.options, job.line_format)
    with open_part(path, job.key) as part:
        windows = _windows(job, source, job.window_size(FILE_WINDOW))
        try:
            missing = part.missing(windows)
            tasks = ((part.piece(window), window) for window in missing)
            pipeline.make_files(start, tasks)
        finally:
            part.take_up_pieces()
        return job.summary(part.publish(job.lines))


def _start_decoding(
    model: tuple[Path, Path, str, str | None],
    options: DecodeHParams,
    line_format: LineFormat,
) -> MakeFile:
    """What a worker does, with the model of these arguments of `load`."""
    job = DecodeJob(load(*model), options, line_format)
    return functools.partial(_decode_piece, job)


def _decode_piece(job: DecodeJob, path: Path, window: Window) -> None:
    with atomic_file.atomic_file(path) as file:
        file.write(encoded(job.key(window), job.run(window)))
