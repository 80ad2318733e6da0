"""Decodes or scores the lines of a text file or a pipe into a file, or to a pipe, a
terminal or a device.
"""

from __future__ import annotations

import contextlib
import functools
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from tqdm import tqdm

from t2tlite.decoding.text_decoder import Done
from t2tlite.files.atomic_file import full_disk_is_named, open_directly
from t2tlite.files.read_ahead import ReadAhead
from t2tlite.files.text_files import compressed
from t2tlite.programs.bulk.jobs import DecodeJob, Window, WindowOutput, text_input
from t2tlite.programs.bulk.outputs import (
    ResumableOutput,
    encode_lines,
    interrupt_at_sigterm,
    resumable_output,
)

# Sentences that are sorted by length together: 2 % more padding than if all are
# (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
FILE_WINDOW = 2048
PROMPT_WINDOW = 256  # of a stream: somebody may wait for the output

progress_bar = functools.partial(
    tqdm, unit="sentence", desc="decoding", dynamic_ncols=True, leave=False
)


def decode_file(job: DecodeJob, source: str | Path, target: Path) -> str:
    """Decodes or scores a text file or a pipe into the file `target`, not a symbolic
    link; resumes; gives a summary.

    Raises ValueError for a bad line, of a file before anything is decoded, or as
    `resumable_output`.
    """
    text = text_input(source)
    total = text.check(job)
    with resumable_output(target, job.provenance()) as output:
        windows = job.cut(*output.skip_done(text), FILE_WINDOW)
        write_windows(windows, job.run, output, total, text.is_standard_input or None)
        output.publish()
    return job.summary(output.record.counts, output.record.seconds)


def decode_stream(
    job: DecodeJob,
    source: str | Path,
    target: str | Path | None = None,
    one_by_one: bool = False,
) -> str:
    """Decodes or scores lines to standard output, or to the device or pipe `target`,
    each as soon as it is done.

    Lines that have arrived through a pipe are decoded without waiting for others;
    `one_by_one` decodes each by itself even under tensor2tensor's rules.
    """
    text = text_input(source)
    total = text.check(job)
    lines, is_ready = text.lines(), lambda: True
    if text.is_pipe:
        lines = ahead = ReadAhead(lines)
        is_ready = ahead.ready
    counts: Counter[str] = Counter()
    started = time.monotonic()
    is_quiet = text.is_standard_input or (target is None and not sys.stdout.isatty())
    with (
        full_disk_is_named(target or "standard output"),
        interrupt_at_sigterm(),
        _opened(target) as file,
        progress_bar(total=total, disable=is_quiet or None) as bar,
    ):
        for window in job.cut(lines, text.origin, PROMPT_WINDOW, is_ready, one_by_one):
            output = job.run(window, bar.update)
            _write(file, output.lines)
            counts.update(output.counts)
            bar.n = counts["sentences"]  # blank lines too
    return job.summary(counts, time.monotonic() - started)


def write_windows(
    windows: Iterable[Window],
    run: Callable[[Window, Done], WindowOutput],
    output: ResumableOutput,
    total: int | None,
    is_quiet: bool | None = None,
) -> None:
    """Writes the output of each window as `run` returns it; without a progress bar if
    `is_quiet`.
    """
    with progress_bar(
        total=total, initial=output.record.lines, disable=is_quiet
    ) as bar:
        for window in windows:
            output.write(window, run(window, bar.update))
            bar.n = output.record.lines  # blank lines too


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
