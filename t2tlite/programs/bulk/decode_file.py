"""Decodes or scores a text file of any size into a file, which a killed process can resume (`outputs.py`)."""

from __future__ import annotations

from pathlib import Path

from tqdm import tqdm

from t2tlite.programs.bulk.file_job import BAR, FileJob, interrupt_at_sigterm
from t2tlite.programs.bulk.inputs import TextInput
from t2tlite.programs.bulk.outputs import ResumableOutput
from t2tlite.programs.bulk.windows import WindowOptions

# Sentences that are sorted by length together, or as many as batch_size if that is more: 2 % more padding than if all
# are (lengths as in WMT), while batches of 8,192 tokens would have 20 % more.
FILE_WINDOW = 2048


def decode_file(job: FileJob, source: str | Path, target: Path) -> str:
    """Decodes or scores a text file, one sentence a line, into the file `target`, which is not a symbolic link.

    Returns how fast it was and what was done to make the outputs, or "" in a pipe. A pipe is read once: its lines are
    checked when their turn comes, those of a file before anything is decoded. Raises ValueError for a line that is too
    long or not UTF-8, or if another process writes the same output, and OSError if it cannot be written.
    """
    text = TextInput(source)
    total, quiet = text.check(job), text.is_in_pipe(to_standard_output=False)
    with interrupt_at_sigterm(), ResumableOutput(target, job.provenance()) as output:
        lines = output.skip_done(text.lines(), text.lines_again)
        origin, options = text.origin.after(lines.count), WindowOptions(FILE_WINDOW)
        disabled = quiet or text.is_standard_input or None
        with tqdm(total=total, initial=lines.count, disable=disabled, **BAR) as bar:
            for window in job.windows(lines, origin, options, bar.update):
                output.write(job.lines(window), job.counts(window))
                bar.n = lines.count  # blank lines too
        output.publish()
    return "" if quiet else job.summary(output.progress.counts, output.progress.seconds)
