"""Decodes or scores the lines of a text file or a pipe into a file, or to a pipe, a
terminal or a device.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from t2tlite.console import progress_bar, say
from t2tlite.decoding.source_text import Origin, TooLong
from t2tlite.files.atomic_file import full_disk_is_named, open_directly
from t2tlite.files.compression import compressed
from t2tlite.files.text_files import STANDARD_INPUT, read_lines, shown
from t2tlite.programs.bulk.jobs import DecodeJob
from t2tlite.programs.bulk.part import (
    Part,
    encode_lines,
    encoded,
    open_part,
)
from t2tlite.programs.bulk.windows import Input, Window

# Sentences that are sorted by length together: 2 % more padding than if all are
# (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
FILE_WINDOW = 2048
PROMPT_WINDOW = 256  # of a stream: somebody may wait for the output

decoding_bar = functools.partial(progress_bar, desc="decoding", unit=" sentences")


def text_input(job: DecodeJob, path: str | Path) -> Input:
    """A text file, a pipe or standard input to decode."""
    is_pipe = Path(path) == STANDARD_INPUT or not Path(path).is_file()
    reported: set[int] = set()  # a file is read twice
    lines = functools.partial(_lines, job, path, is_pipe, reported)
    return Input(Origin(shown(path)), lines, is_pipe)


def _lines(
    job: DecodeJob, path: str | Path, is_pipe: bool, reported: set[int]
) -> Iterator[str]:
    """Yields the lines of an input, blank where a job cannot decode one, which is
    reported.

    A line of a file is blank only if it is too long. Other faults, encoding and
    columns, are nearly always those of the whole file, and raise a ValueError. A stream
    has begun, so that there no fault of a line is an error.
    """
    origin = Origin(shown(path))
    fault_of_line = ValueError if is_pipe else TooLong
    for number, line in enumerate(read_lines(path, _report if is_pipe else None)):
        try:
            if line or not is_pipe:
                job.check(Window([line], origin.after(number)))
        except fault_of_line as fault:
            if number not in reported:
                _report(fault)
                reported.add(number)
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
    with open_part(target, job.key) as part:
        decode_windows(job, text_input(job, source), FILE_WINDOW, part)
        totals = part.publish()
    return job.summary(totals)


def decode_windows(job: DecodeJob, text: Input, size: int, part: Part) -> None:
    """Decodes the windows of an input that have no output yet.

    A file is read twice: first to check it, then to decode it.
    """
    total = None
    if not text.is_pipe:
        total = part.plan(job.windows(text, size))
    with decoding_bar(total=total, is_quiet=text.is_pipe) as bar:
        for key, window in part.missing(job.windows(text, size)):
            before = bar.n
            part.add(encoded(key, job.run(window, bar.update)))
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
    twice, as by `decode_windows`.
    """
    text = text_input(job, source)
    is_quiet = text.is_pipe or (target is None and not sys.stdout.isatty())
    total = None
    if not text.is_pipe:
        total = sum(1 for _ in text.lines())
    totals: Counter[str] = Counter()
    with (
        full_disk_is_named(target or "standard output"),
        _opened(target) as file,
        decoding_bar(total=total, is_quiet=is_quiet) as bar,
    ):
        for window in job.prompt_windows(text, PROMPT_WINDOW, one_by_one):
            lines, counts = job.run(window, bar.update)
            _write(file, lines)
            totals.update(counts)
            bar.n = totals["sentences"]  # blank lines too
    return job.summary(totals)


@contextlib.contextmanager
def _opened(target: str | Path | None) -> Iterator[BinaryIO | None]:
    """The open `target`, or standard output; None if that takes text alone, as in a
    notebook.
    """
    if target is None:
        yield getattr(sys.stdout, "buffer", None)
    else:
        with open_directly(target) as file, compressed(file, Path(target)) as out:
            yield out


def _write(file: BinaryIO | None, lines: list[str]) -> None:
    data = encode_lines(lines)  # UTF-8 also if the terminal's locale is another
    if file is None:
        print(data.decode(), end="", flush=True)
    else:
        file.write(data)
        file.flush()
