"""Where results go: JSON files in docs/performance, and blocks of a document between
two marks.

<!-- NAME -->
what a program has written, replaced each time
<!-- NAME end -->
"""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import program
from tabulate import tabulate

from t2tlite.files.atomic_file import write_text
from t2tlite.files.records import read_record, write_record
from t2tlite.programs.table3.table import shown_versions

DOCS = program.FOLDER.parent / "docs"
COLOURS = ("#3f80c0", "#d4682c", "#4d9a58", "#8a63b8")
INK = "#010101"
INKED = (
    "text.color",
    "axes.edgecolor",
    "axes.labelcolor",
    "xtick.color",
    "ytick.color",
    "grid.color",
)
STYLE = {  # of matplotlib
    **dict.fromkeys(INKED, INK),
    **dict.fromkeys(("axes.spines.top", "axes.spines.right", "legend.frameon"), False),
    "font.family": "DejaVu Sans",
    "font.size": 8,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "grid.alpha": 0.14,
    "axes.formatter.limits": (-3, 6),
    "svg.fonttype": "none",  # text as text
}


def machine() -> str:
    """Returns the machine and the versions, in a line."""
    models = re.findall(
        r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    cpu = (
        f"{models[0] if models else platform.machine()} with"
        f" {' '.join(program.cpu_features())}"
    )
    return f"{program.CORES} cores of {cpu}; {shown_versions()}"


def read_results(docs: Path, name: str) -> dict[str, Any]:
    """Reads performance/NAME.json; an empty dict if there is no such file."""
    try:
        return read_record(
            docs / "performance" / f"{name}.json", dict[str, Any], "Delete it."
        )
    except FileNotFoundError:
        return {}


def write_results(docs: Path, name: str, results: dict[str, Any]) -> None:
    """Writes performance/NAME.json."""
    write_record(docs / "performance" / f"{name}.json", results)


def replace_block(path: Path, name: str, text: str) -> None:
    """Replaces the text between the marks of a block of a document. Raises ValueError
    if the document has no such block.
    """
    first, last = f"<!-- {name} -->\n", f"<!-- {name} end -->"
    before, start, rest = path.read_text(encoding="utf-8").partition(first)
    _, end, after = rest.partition(last)
    if not (start and end):
        raise ValueError(
            f"{path} must have a block between {first.strip()} and {last}. Add the two"
            " lines."
        )
    write_text(path, f"{before}{start}{text.strip()}\n{end}{after}")


def number(value: float) -> str:
    """Formats a measured value with at least three digits: 0.123, 12.3, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Formats a table for terminals and Markdown."""
    alignment = ["left"] + ["right"] * (len(columns) - 1)
    return tabulate(
        rows, columns, tablefmt="pipe", colalign=alignment, disable_numparse=True
    )
