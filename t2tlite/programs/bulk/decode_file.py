"""Decodes or scores a text file of any size: output in order as it is produced, which a killed process can resume.

`partial_output.py` says what is written where.
"""

from __future__ import annotations

import functools
import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from t2tlite.config import DecodeHParams
from t2tlite.files.atomic_file import replaceable
from t2tlite.files.read_ahead import ReadAhead
from t2tlite.files.text_files import STANDARD_INPUT, read_lines, read_pairs, shown
from t2tlite.programs.bulk.decode import FULL, PROMPT_WINDOW, Pace, WindowOutput, decode_lines, score_lines, summary
from t2tlite.programs.bulk.decode_pipeline import Workers, decode_windows
from t2tlite.programs.bulk.line_format import PLAIN, LineFormat
from t2tlite.programs.bulk.partial_output import DirectOutput, PartialOutput
from t2tlite.programs.bulk.window_loop import CountedLines, interrupt_at_sigterm, made_with, remaining, write_windows
from t2tlite.programs.runs.translator import Origin, Translator


def decode_file(
    model: Translator,
    source: str | Path,
    target: str | Path | None,
    options: DecodeHParams,
    workers: Workers | None = None,
    form: LineFormat = PLAIN,
    alone: bool = False,
) -> str:
    """Decodes a text file, one sentence a line, into the file `target`, or to standard output if it is None.

    Returns how fast it was and what was done to make the outputs, or "" where standard input or output is used and is
    not a terminal: a program in a pipe says nothing. A pipe is read once: its lines are checked when their turn comes,
    those of a file before anything is decoded. What goes to a pipe or a terminal is written as soon as it is done:
    lines that have arrived are decoded without waiting for others. `alone` decodes each by itself also under rules by
    which translations depend on what is decoded together. Raises ValueError for a line that is too long or not UTF-8,
    or if another process writes the same output, and OSError if it cannot be written.

    With `workers` these decode, all lines before any is written; `source` and `target` are then files. Raises as
    `decode_windows` in addition.
    """
    work = _Work("decode", read_lines, functools.partial(form.check, model), decode_lines)
    return _run(model, work, Path(source), target, options, form, workers, alone)


def score_file(
    model: Translator, source: str | Path, target: str | Path | None, options: DecodeHParams, form: LineFormat = PLAIN
) -> str:
    """Writes log_prob and score of the targets in a file of lines "source TAB target"; as `decode_file`."""
    work = _Work("score", read_pairs, model.check_pair_lengths, score_lines)
    return _run(model, work, Path(source), target, options, form)


class _Work(NamedTuple):
    """What is done with a file."""

    name: str
    read: Callable[[Path], Iterator[Any]]
    check: Callable[[Iterator[Any], Origin], None]
    lines: Callable[..., Iterator[WindowOutput]]


def _run(
    model: Translator,
    work: _Work,
    source: Path,
    target: str | Path | None,
    options: DecodeHParams,
    form: LineFormat,
    workers: Workers | None = None,
    alone: bool = False,
) -> str:
    is_file = source != STANDARD_INPUT and source.is_file()  # a pipe can be read only once
    origin = Origin(shown(source))
    checked: CountedLines[Any] = CountedLines(work.read(source) if is_file else iter(()))
    work.check(checked, origin)
    key = made_with(work.name, model, options, form)
    path = replaceable(target) if target else None
    output = PartialOutput(path, key) if path else DirectOutput(target, key)

    def again() -> Iterator[Any]:
        if not is_file:
            raise ValueError(f"{source} does not begin with the lines that {target}.part is of. Delete that file.")
        return work.read(source)

    with interrupt_at_sigterm(), output:
        items, pace = work.read(source), FULL
        if path is None:
            pace = Pace(PROMPT_WINDOW, alone=alone)
            if not is_file:
                items = ahead = ReadAhead(items)
                pace = pace._replace(ready=ahead.ready)
        lines = remaining(output, items, again)
        origin = origin.after(lines.count)
        folder = Path(f"{path}.windows")
        decode = functools.partial(work.lines, model, lines, options, origin, form=form, pace=pace)
        if workers is not None:
            if not (is_file and path):
                raise ValueError(f"A pipeline reads a file and writes one. Received: {source} and {target}.")
            rest = itertools.islice(work.read(source), lines.count, None)
            decode = functools.partial(decode_windows(workers, folder, key, model, rest, options, origin, form), lines)
        quiet = not all(stream.isatty() for stream in _streams(source, target))
        total = checked.count if is_file else None
        write_windows(output, lines, decode, total, disable=True if quiet or source == STANDARD_INPUT else None)
    if workers is not None:
        shutil.rmtree(folder)
    progress = output.progress
    return "" if quiet else summary(model, progress.counts, options, progress.seconds)


def _streams(source: Path, target: str | Path | None) -> list[TextIO]:
    """The standard streams that are read and written."""
    return [*([sys.stdin] if source == STANDARD_INPUT else []), *([sys.stdout] if target is None else [])]
