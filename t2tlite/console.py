"""What the library says to the user: lines on standard error, never written into
progress bars.
"""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tqdm import tqdm


def say(line: str) -> None:
    """Prints a line to standard error, above a progress bar that is shown there."""
    from tqdm import tqdm  # importing it takes a tenth of the time of --help

    tqdm.write(line, file=sys.stderr)


def log(line: str) -> None:
    """Prints a line as `say` does, if standard error can be written."""
    with contextlib.suppress(OSError):
        say(line)


@functools.cache
def say_once(line: str) -> None:
    """Prints a line as `say` does, but only once in a process. Files are read several
    times, and each time the same notes arise.
    """
    say(line)


def progress_bar(
    iterable: Iterable[object] | None = None,
    *,
    desc: str,
    total: int | None = None,
    unit: str = "it",
    is_quiet: bool = False,
) -> tqdm:
    """Makes a tqdm bar on standard error. If that is not a terminal, prints one line
    instead. With `is_quiet` neither is shown.
    """
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    if not (terminal or is_quiet):
        say(f"{desc} ...")
    return tqdm(
        iterable,
        desc,
        total,
        disable=is_quiet or not terminal,
        dynamic_ncols=True,
        unit=unit,
        unit_scale=True,
        mininterval=0.5,
    )


def counted(number: int, noun: str) -> str:
    """Returns a number with its noun: `1 pair`, `2,000 pairs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def markdown_table(
    columns: Sequence[str],
    lines: Iterable[Sequence[str]],
    labels: int,
) -> str:
    """A table in Markdown whose first `labels` columns are text, and the others
    numbers.
    """
    rule = ["---"] * labels + ["---:"] * (len(columns) - labels)
    rows = []
    for cells in (columns, rule, *lines):
        rows.append(f"| {' | '.join(cells)} |\n")
    return "".join(rows)
