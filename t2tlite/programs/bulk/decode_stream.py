"""Decodes or scores lines to a pipe, a terminal or a device: each output is written as soon as it is done."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

from tqdm import tqdm

from t2tlite.files.read_ahead import ReadAhead
from t2tlite.programs.bulk.file_job import BAR, FileJob, interrupt_at_sigterm
from t2tlite.programs.bulk.inputs import TextInput
from t2tlite.programs.bulk.outputs import StreamOutput
from t2tlite.programs.bulk.windows import WindowOptions

PROMPT_WINDOW = 256  # sentences: somebody may wait for the output


def decode_stream(job: FileJob, source: str | Path, target: str | Path | None = None, one_by_one: bool = False) -> str:
    """Decodes or scores lines to standard output, or to the device or pipe `target`; there is nothing to resume.

    Lines that have arrived through a pipe are decoded without waiting for others; `one_by_one` decodes each as a batch
    of its own, even under tensor2tensor's rules. Returns and raises as `decode_file`.
    """
    text = TextInput(source)
    total, quiet = text.check(job), text.is_in_pipe(to_standard_output=target is None)
    counts: Counter[str] = Counter()
    started = time.monotonic()
    with interrupt_at_sigterm(), StreamOutput(target) as output:
        lines, options = text.lines(), WindowOptions(PROMPT_WINDOW, one_by_one=one_by_one)
        if not text.is_file:
            lines = ahead = ReadAhead(lines)
            options = options._replace(is_ready=ahead.ready)
        with tqdm(total=total, disable=quiet or text.is_standard_input or None, **BAR) as bar:
            for window in job.windows(lines, text.origin, options, bar.update):
                output.write(job.lines(window))
                counts += job.counts(window)
                bar.n = counts["sentences"]  # blank lines too
    return "" if quiet else job.summary(counts, time.monotonic() - started)
