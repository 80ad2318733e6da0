"""Decodes the windows of a large file by the workers of a pipeline, on one machine or many.

The lines of each window wait in a file, and a worker writes their output to another, in a folder beside OUT:

OUT.windows/KEY.in.json    a window: KEY is a hash of its lines and of what they are decoded with
OUT.windows/KEY.out.json   its output

The same command, run again, finds the windows that are done by their keys.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from tqdm import tqdm

from t2tlite.config import DecodeHParams
from t2tlite.data.pipeline import Pipeline
from t2tlite.decoding.source_text import Origin
from t2tlite.files.atomic_file import replaceable
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.decode_file import FILE_WINDOW
from t2tlite.programs.bulk.file_job import BAR, DecodeJob, interrupt_at_sigterm
from t2tlite.programs.bulk.inputs import TextInput
from t2tlite.programs.bulk.line_format import LineFormat
from t2tlite.programs.bulk.outputs import ResumableOutput
from t2tlite.programs.bulk.windows import WindowOptions, cut_windows
from t2tlite.programs.runs.load import load

AGAIN = "Run the same command again."
WINDOW_FILE = re.compile(r"[0-9a-f]{32}\.(in|out)\.json|\.[0-9a-f]{32}\.(in|out)\.json\.[0-9a-f]{8}\.tmp")


@dataclasses.dataclass(frozen=True)
class Workers:
    """The workers of a pipeline, which see this machine's files under the same paths."""

    pipeline: Pipeline
    run: Path  # the folder of the run


@dataclasses.dataclass(frozen=True)
class WindowInput:
    """KEY.in.json: lines to decode."""

    file: str  # as in `Origin`
    before: int
    lines: list[str]  # as they are in the file


@dataclasses.dataclass(frozen=True)
class WindowLines:
    """KEY.out.json: what is written for a window, and its counts for the summary."""

    lines: list[str]
    counts: dict[str, int]


def decode_by_workers(job: DecodeJob, workers: Workers, source: str | Path, target: str | Path) -> str:
    """Decodes a file as `decode_file` does, but by workers, all lines before any is written.

    Raises as `decode_file` and `Pipeline.run`; ValueError if there is a folder OUT.windows with other files than
    windows; and ChildProcessError if the workers have written files that cannot be seen here.
    """
    text, path = TextInput(source), replaceable(target)
    if path is None or not text.is_file:
        raise ValueError(f"A pipeline reads a file and writes one. Received: {text.path} and {target}.")
    total = text.check(job)
    with interrupt_at_sigterm(), ResumableOutput(path, job.provenance()) as output:
        lines = output.skip_done(text.lines(), text.lines_again)
        origin = text.origin.after(lines.count)
        folder = WindowFolder(Path(f"{path}.windows"), job)
        try:
            folder.decode(workers, itertools.islice(text.lines(), lines.count, None), origin)
        finally:
            output.record_seconds()
        with tqdm(total=total, initial=lines.count, disable=None, **BAR) as bar:
            for window, start in folder.cut(lines, origin):
                decoded = folder.read(window, start)
                output.write(decoded.lines, decoded.counts)
                bar.update(len(window))
        output.publish()
    folder.remove()
    return job.summary(output.progress.counts, output.progress.seconds)


class WindowFolder:
    """OUT.windows, which is created."""

    def __init__(self, path: Path, job: DecodeJob) -> None:
        self.path = path.absolute()
        self._job = job
        self._provenance = job.provenance()
        self.path.mkdir(parents=True, exist_ok=True)
        others = [file.name for file in self.path.iterdir() if not WINDOW_FILE.fullmatch(file.name)]
        if others:
            raise ValueError(
                f"{path} must have nothing but the windows of {path.stem}. Received: {min(others)}, perhaps yours. "
                "Move it, or name another output."
            )

    def decode(self, workers: Workers, lines: Iterable[str], origin: Origin) -> None:
        """Has the workers decode the windows that are not decoded yet."""
        model, job = self._job.model, self._job
        waiting: dict[Path, Path] = {}  # output -> input
        for window, start in self.cut(lines, origin):
            path = self._output(window, start)
            if not path.exists():
                waiting[path] = path.with_name(path.name.replace(".out.", ".in."))
                write_record(waiting[path], WindowInput(start.file, start.before, window))
        if waiting:
            paths = workers.run.absolute(), Path(model.checkpoint).absolute()
            engine = model.engine.name, model.engine.quantization or None
            start_worker = functools.partial(_start_decoding, *paths, *engine, job.options, job.line_format)
            workers.pipeline.run(start_worker, list(waiting.items()))
        missing = [path.name for path in waiting if not path.exists()]
        if missing:
            raise ChildProcessError(
                f"The workers of a pipeline must see {self.path} under the same path as this machine. Received: no "
                f"{missing[0]}, although all have finished. Write to a file system that all share."
            )

    def cut(self, lines: Iterable[str], origin: Origin) -> Iterator[tuple[list[str], Origin]]:
        """The windows of lines, each with its origin."""
        return cut_windows(lines, self._job.options, origin, WindowOptions(FILE_WINDOW))

    def read(self, window: list[str], origin: Origin) -> WindowLines:
        """The output of a window that is decoded."""
        return read_record(self._output(window, origin), WindowLines, f"Delete it. {AGAIN}")

    def remove(self) -> None:
        """Removes the windows, and the folder unless something else is in it by now."""
        for file in self.path.iterdir():
            if WINDOW_FILE.fullmatch(file.name):
                file.unlink()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _output(self, window: list[str], origin: Origin) -> Path:
        key = hashlib.sha256(json.dumps([self._provenance, origin.before, window]).encode()).hexdigest()
        return self.path / f"{key[:32]}.out.json"


def _start_decoding(
    run: Path,
    checkpoint: Path,
    engine: str,
    quantization: str | None,
    options: DecodeHParams,
    line_format: LineFormat,
) -> Callable[[tuple[Path, Path]], None]:
    """What a worker does: it decodes windows, each given as the paths of output and input."""
    job = DecodeJob(load(run, checkpoint, engine, quantization), options, line_format)
    return functools.partial(_decode_window, job)


def _decode_window(job: DecodeJob, paths: tuple[Path, Path]) -> None:
    waiting = read_record(paths[1], WindowInput, AGAIN)
    all_in_one = WindowOptions(len(waiting.lines))
    (window,) = job.windows(waiting.lines, Origin(waiting.file, waiting.before), all_in_one)
    write_record(paths[0], WindowLines(job.lines(window), dict(job.counts(window))))
