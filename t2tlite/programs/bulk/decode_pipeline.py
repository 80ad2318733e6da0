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

from t2tlite.config import DecodeHParams
from t2tlite.data.pipeline import Pipeline
from t2tlite.decoding.source_text import Origin
from t2tlite.files.atomic_file import replaceable
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.decode_file import FILE_WINDOW, progress_bar
from t2tlite.programs.bulk.jobs import DecodeJob, interrupt_at_sigterm, text_input
from t2tlite.programs.bulk.line_format import LineFormat
from t2tlite.programs.bulk.outputs import resumable_output
from t2tlite.programs.runs.load import load

AGAIN = "Run the same command again."
WINDOW_FILE = re.compile(r"[0-9a-f]{32}\.(in|out)\.json|\.[0-9a-f]{32}\.(in|out)\.json\.[0-9a-f]{8}\.tmp")


@dataclasses.dataclass(frozen=True)
class WindowInput:
    """KEY.in.json: lines to decode."""

    file: str  # as in `Origin`
    before: int
    lines: list[str]  # as they are in the file


@dataclasses.dataclass(frozen=True)
class WindowOutput:
    """KEY.out.json: what is written for a window, and its counts for the summary."""

    lines: list[str]
    counts: dict[str, int]


def decode_by_workers(job: DecodeJob, run: Path, pipeline: Pipeline, source: str, target: str | Path) -> str:
    """Decodes a file as `decode_file` does, but by a pipeline's workers, all lines before any is written.

    The workers see the folder `run` and that of `target` under the same paths as this machine. Raises as
    `decode_file`, `Pipeline.run` and `WindowFolder`.
    """
    text, path = text_input(source), replaceable(target)
    if path is None or text.is_pipe:
        raise ValueError(f"A pipeline reads a file and writes one. Received: {source} and {target}.")
    total = text.check(job)
    with interrupt_at_sigterm(), resumable_output(path, job.provenance()) as output:
        lines = output.skip_done(text)
        done = output.record.lines
        folder = WindowFolder(Path(f"{path}.windows"), job)
        try:
            folder.decode(run, pipeline, itertools.islice(text.lines(), done, None), text.origin.after(done))
        finally:
            output.record_seconds()
        with progress_bar(total=total, initial=done, disable=None) as bar:
            for window, file in folder.cut(lines, text.origin.after(done)):
                decoded = read_record(file, WindowOutput, f"Delete it. {AGAIN}")
                output.write(decoded.lines, decoded.counts)
                bar.update(len(window.lines))
        output.publish()
    folder.remove()
    return job.summary(output.record.counts, output.record.seconds)


class WindowFolder:
    """OUT.windows, which is created; ValueError if it has other files than windows."""

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

    def cut(self, lines: Iterable[str], origin: Origin) -> Iterator[tuple[WindowInput, Path]]:
        """The windows of lines, each with the file of its output."""
        for window, start in self._job.cut(lines, origin, FILE_WINDOW):
            key = hashlib.sha256(json.dumps([self._provenance, start.before, window]).encode()).hexdigest()
            yield WindowInput(start.file, start.before, window), self.path / f"{key[:32]}.out.json"

    def decode(self, run: Path, pipeline: Pipeline, lines: Iterable[str], origin: Origin) -> None:
        """Has the workers decode the windows that are not decoded yet; ChildProcessError if none are seen here then."""
        tasks: list[tuple[Path, Path]] = []  # the input and the output of windows
        for window, output in self.cut(lines, origin):
            if not output.exists():
                tasks.append((output.with_name(output.name.replace(".out.", ".in.")), output))
                write_record(tasks[-1][0], window)
        if tasks:
            job, engine = self._job, self._job.model.engine
            paths = run.absolute(), Path(job.model.checkpoint).absolute()
            model = *paths, engine.name, engine.quantization or None
            pipeline.run(functools.partial(_start_decoding, model, job.options, job.line_format), tasks)
        missing = [output.name for _, output in tasks if not output.exists()]
        if missing:
            raise ChildProcessError(
                f"The workers of a pipeline must see {self.path} under the same path as this machine. "
                f"Received: no {missing[0]}, although all have finished. Write to a file system that all share."
            )

    def remove(self) -> None:
        """Removes the windows, and the folder unless something else is in it by now."""
        for file in self.path.iterdir():
            if WINDOW_FILE.fullmatch(file.name):
                file.unlink()
        with contextlib.suppress(OSError):
            self.path.rmdir()


def _start_decoding(
    model: tuple[Path, Path, str, str | None], options: DecodeHParams, line_format: LineFormat
) -> Callable[[tuple[Path, Path]], None]:
    """What a worker does: it decodes windows, each given as the paths of input and output."""
    return functools.partial(_decode_window, DecodeJob(load(*model), options, line_format))


def _decode_window(job: DecodeJob, paths: tuple[Path, Path]) -> None:
    waiting = read_record(paths[0], WindowInput, AGAIN)
    window = job.decode(waiting.lines, Origin(waiting.file, waiting.before))
    write_record(paths[1], WindowOutput(job.lines(window), dict(job.counts(window))))
