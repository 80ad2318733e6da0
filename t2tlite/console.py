"""What the library says to the user: lines on standard error, written beside progress bars and never into them."""

from __future__ import annotations

import sys
from typing import Any


def say(line: str) -> None:
    """Prints a line to standard error without breaking a progress bar that is shown there."""
    from tqdm import tqdm  # takes a tenth of the time of --help

    tqdm.write(line, file=sys.stderr)


def progress_bar(iterable: Any = None, *, desc: str, **options: Any) -> Any:
    """A tqdm bar on standard error; if that is not a terminal, one line at the beginning and no bar."""
    from tqdm import tqdm

    terminal = sys.stderr.isatty()
    if not terminal:
        say(f"{desc} ...")
    return tqdm(iterable, desc=desc, dynamic_ncols=True, disable=not terminal, **options)


def counted(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless it is 1: `1 pair`, `2,000 pairs`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
