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


def machine() -> str:
    """The machine and the versions that results are of, in a line."""
    models = re.findall(
        r"^model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text(), re.MULTILINE
    )
    cpu = (
        f"{models[0] if models else platform.machine()} with"
        f" {' '.join(program.cpu_features())}"
    )
    return f"{program.CORES} cores of {cpu}; {shown_versions()}"


def read_results(docs: Path, name: str) -> dict[str, Any]:
    """The content of performance/NAME.json, or an empty dict if there is no such
    file.
    """
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
    """Replaces what is between the marks of a block of a document; ValueError if it has
    no such block.
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
    """A measured value with three digits or more: 0.123, 12.3, 1,234."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table to read on a terminal and in Markdown."""
    alignment = ["left"] + ["right"] * (len(columns) - 1)
    return tabulate(
        rows, columns, tablefmt="pipe", colalign=alignment, disable_numparse=True
    )
