"""What the library says to the user: lines on standard error, written beside progress bars and never into them."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Prints a line to standard error without breaking a progress bar that is shown there."""
    from tqdm import tqdm  # takes a tenth of the time of --help

    tqdm.write(line, file=sys.stderr)
