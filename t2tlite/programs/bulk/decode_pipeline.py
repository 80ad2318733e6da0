"""Decodes the windows of a large file by the workers of a pipeline, on one machine or many.

The lines of each window wait in a file, and a worker writes their output to another, in a folder beside the output OUT:

OUT.windows/KEY.in.json    a window: KEY is a hash of its lines and of what they are decoded with
OUT.windows/KEY.out.json   its output

The same command, run again, finds the windows that are done by their keys.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from t2tlite.config import DecodeHParams
from t2tlite.data.pipeline import Pipeline
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.bulk.decode import WindowOutput, decode_lines, windows
from t2tlite.programs.bulk.line_format import LineFormat
from t2tlite.programs.runs.load import load
from t2tlite.programs.runs.translator import Done, Origin, Translator

AGAIN = "Run the same command again."


@dataclasses.dataclass(frozen=True)
class Workers:
    """The workers of a pipeline, which see this machine's files under the same paths. Each loads the model once."""

    pipeline: Pipeline
    run: Path  # the folder of the run


@dataclasses.dataclass(frozen=True)
class Window:
    """Lines to decode."""

    file: str  # as in `Origin`
    before: int
    sentences: list[str]  # as they are in the file


def decode_windows(
    workers: Workers,
    folder: Path,
    made_with: dict[str, Any],
    model: Translator,
    sentences: Iterable[str],
    options: DecodeHParams,
    origin: Origin,
    form: LineFormat,
) -> Callable[[Iterable[str], Done], Iterator[WindowOutput]]:
    """Has the workers decode any number of sentences, and returns a function that yields what `decode_lines` would.

    The function takes the same sentences again, and `done`. The windows are in `folder`. `made_with` is what the output
    depends on in addition to the sentences. Raises as `Pipeline.run`, and ChildProcessError if the workers have written
    files that cannot be seen here.
    """
    folder = folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)

    def output(window: list[str], start: Origin) -> Path:
        key = hashlib.sha256(json.dumps([made_with, start.before, window]).encode()).hexdigest()
        return folder / f"{key[:32]}.out.json"

    waiting: dict[Path, Path] = {}  # output -> input
    for window, start in windows(sentences, options, origin):
        path = output(window, start)
        if not path.exists():
            waiting[path] = path.with_name(path.name.replace(".out.", ".in."))
            write_record(waiting[path], Window(start.file, start.before, window))
    if waiting:
        paths = workers.run.absolute(), Path(model.checkpoint).absolute()
        engine = model.engine.name, model.engine.quantization or None
        workers.pipeline.run(functools.partial(_start_decoding, *paths, *engine, options, form), list(waiting.items()))
    if missing := [path for path in waiting if not path.exists()]:
        raise ChildProcessError(
            f"The workers of a pipeline must see {folder} under the same path as this machine. Received: no "
            f"{missing[0].name}, although all have finished. Write to a file system that all share."
        )

    def decoded(sentences: Iterable[str], done: Done) -> Iterator[WindowOutput]:
        for window, start in windows(sentences, options, origin):
            found = read_record(output(window, start), WindowOutput, f"Delete it. {AGAIN}")
            done(len(window))
            yield found

    return decoded


def _start_decoding(
    run: Path, checkpoint: Path, engine: str, quantization: str | None, options: DecodeHParams, form: LineFormat
) -> Callable[[tuple[Path, Path]], None]:
    """The work of a pipeline: to decode a window. Its task is the paths of output and input."""
    model = load(run, checkpoint, engine, quantization)

    def decode(paths: tuple[Path, Path]) -> None:
        window = read_record(paths[1], Window, AGAIN)
        origin = Origin(window.file, window.before)
        (found,) = decode_lines(model, window.sentences, options, origin, form=form)
        write_record(paths[0], found)

    return decode
