"""Decodes the windows of a large file by the workers of a pipeline, on one machine or
many.

The lines of each window wait in a file, and a worker writes their output to another, in
a folder beside OUT:

OUT.windows/KEY.in.json    a window: KEY is a hash of its lines and of what they are
                           decoded with
OUT.windows/KEY.out.json   its output

The same command, run again, finds the windows that are done by their keys.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

from t2tlite.config import DecodeHParams
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.decoding.text_decoder import Done
from t2tlite.files.atomic_file import replaceable
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.decode_file import FILE_WINDOW, write_windows
from t2tlite.programs.bulk.jobs import (
    DecodeJob,
    LineFormat,
    Provenance,
    Window,
    WindowOutput,
    text_input,
)
from t2tlite.programs.bulk.outputs import resumable_output
from t2tlite.programs.runs.load import load

AGAIN = "Run the same command again."
WINDOW_FILE = re.compile(
    r"[0-9a-f]{32}\.(in|out)\.json|\.[0-9a-f]{32}\.(in|out)\.json\.[0-9a-f]{8}\.tmp"
)


def decode_by_workers(
    job: DecodeJob, run: Path, pipeline: Pipeline, source: str, target: str | Path
) -> str:
    """Decodes a file as `decode_file` does, but by a pipeline's workers, all lines
    before any is written.

    The workers see the folder `run` and that of `target` under the same paths as this
    machine.
    """
    text, path = text_input(source), replaceable(target)
    if path is None or text.is_pipe:
        raise ValueError(
            f"A pipeline reads a file and writes one. Received: {source} and {target}."
        )
    total = text.check(job)
    with resumable_output(path, job.provenance()) as output:
        windows = job.cut(*output.skip_done(text), FILE_WINDOW)
        folder = WindowFolder(Path(f"{path}.windows"), job.provenance())
        try:
            folder.decode(windows, job, run, pipeline)
        finally:
            output.record_seconds()
        windows = job.cut(*output.skip_done(text), FILE_WINDOW)
        write_windows(windows, folder.read, output, total)
        output.publish()
    folder.remove()
    return job.summary(output.record.counts, output.record.seconds)


class WindowFolder:
    """OUT.windows, which is created; ValueError if it has other files than windows."""

    def __init__(self, path: Path, provenance: Provenance) -> None:
        self.path = path.absolute()
        self._provenance = provenance
        self.path.mkdir(parents=True, exist_ok=True)
        others = [
            file.name
            for file in self.path.iterdir()
            if not WINDOW_FILE.fullmatch(file.name)
        ]
        if others:
            raise ValueError(
                f"{path} must have nothing but the windows of {path.stem}. Received:"
                f" {min(others)}, perhaps yours. Move it, or name another output."
            )

    def decode(
        self, windows: Iterable[Window], job: DecodeJob, run: Path, pipeline: Pipeline
    ) -> None:
        """Has the workers decode the windows that are not decoded yet.

        Raises ChildProcessError if an output is missing afterwards.
        """
        tasks: list[tuple[Path, Path]] = []  # the input and the output of windows
        for window in windows:
            source, output = self._file(window, "in"), self._file(window, "out")
            if not output.exists():
                write_record(source, window)
                tasks.append((source, output))
        if tasks:
            engine = job.model.engine
            paths = run.absolute(), Path(job.model.checkpoint).absolute()
            model = *paths, engine.name, engine.quantization or None
            pipeline.run(
                functools.partial(_start_decoding, model, job.options, job.line_format),
                tasks,
            )
        missing = [output.name for _, output in tasks if not output.exists()]
        if missing:
            raise ChildProcessError(
                f"The workers of a pipeline must see {self.path} under the same path as"
                f" this machine. Received: no {missing[0]}, although all have finished."
                " Write to a file system that all share."
            )

    def read(self, window: Window, done: Done) -> WindowOutput:
        """The output of a window that is decoded; `done` is called with its number of
        lines.
        """
        done(len(window.lines))
        return read_record(
            self._file(window, "out"), WindowOutput, f"Delete it. {AGAIN}"
        )

    def remove(self) -> None:
        """Removes the windows, and the folder unless something else is in it by now."""
        for file in self.path.iterdir():
            if WINDOW_FILE.fullmatch(file.name):
                file.unlink()
        with contextlib.suppress(OSError):
            self.path.rmdir()

    def _file(self, window: Window, kind: str) -> Path:
        key = hashlib.sha256(
            json.dumps([self._provenance, window.origin.before, window.lines]).encode()
        ).hexdigest()
        return self.path / f"{key[:32]}.{kind}.json"


def _start_decoding(
    model: tuple[Path, Path, str, str | None],
    options: DecodeHParams,
    line_format: LineFormat,
) -> Callable[[tuple[Path, Path]], None]:
    """What a worker does: it decodes windows, each given as the paths of input and
    output.
    """
    return functools.partial(
        _decode_window, DecodeJob(load(*model), options, line_format)
    )


def _decode_window(job: DecodeJob, paths: tuple[Path, Path]) -> None:
    write_record(paths[1], job.run(read_record(paths[0], Window, AGAIN)))
