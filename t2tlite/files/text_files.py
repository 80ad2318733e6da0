"""Text files, one sentence a line: read line by line, and written atomically.

A line ends at "\\n" and nowhere else. `str.splitlines` breaks lines at U+2028, U+0085
or form feeds, text mode at lone carriage returns: one of these would pair every later
line of a parallel corpus with a wrong one.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from t2tlite.files.atomic_file import atomic_file, check_writable

GZIP_MAGIC = b"\x1f\x8b"
STANDARD_INPUT = Path("-")  # as a path to read from


def check_file(path: str | Path) -> Path:
    """The path, after checking that it is a file or STANDARD_INPUT. Raises
    FileNotFoundError if it is not.
    """
    path = Path(path)
    if path == STANDARD_INPUT:
        return path
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(
            f"A text file is required. Received: {path}, which"
            f" {'is a folder' if path.is_dir() else 'does not exist'}. Relative names"
            f" start from the current folder, {Path.cwd()}."
        )
    return path


def read_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, gzip if its name ends in `.gz`, without their
    line ends ("\\n" or "\\r\\n").

    STANDARD_INPUT can be read only once. A byte order mark at the start is skipped. A
    last line without a line end counts. Raises FileNotFoundError at once; while
    reading, ValueError for damaged gzip data, or with the number of a line that is not
    UTF-8.
    """
    return _lines(check_file(path))


def read_parallel(
    source_paths: Sequence[str | Path], target_paths: Sequence[str | Path]
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) line by line from pairs of files, one pair after the
    other.

    Raises as `read_lines` does, and ValueError: at once if the numbers of files differ,
    and at the end of the shorter file if one file of a pair has more lines than the
    other.
    """
    if len(source_paths) != len(target_paths):
        sources, targets = (
            ", ".join(map(str, paths)) or "none"
            for paths in (source_paths, target_paths)
        )
        raise ValueError(
            "There must be as many source files as target files. Received:"
            f" {len(source_paths)} source ({sources}) and {len(target_paths)} target"
            f" ({targets})."
        )
    pairs = zip(
        map(check_file, source_paths), map(check_file, target_paths), strict=True
    )
    return itertools.chain.from_iterable(itertools.starmap(_parallel, list(pairs)))


def check_line_counts(
    counts: Mapping[str, int], advice: str, unit: str = "lines"
) -> None:
    """Raises ValueError with `advice` unless all files, by name, have the same number
    of lines above 0.
    """
    if len(set(counts.values())) > 1 or 0 in counts.values():
        received = ", ".join(f"{name} with {count}" for name, count in counts.items())
        raise ValueError(
            f"Files must have equally many {unit}, and not be empty. Received:"
            f" {received}. {advice}"
        )


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Writes lines to a file atomically, each followed by "\\n", and creates missing
    folders.

    A file whose name ends in `.gz` is compressed. Links and devices are written as by
    `atomic_file`. Raises OSError if `path` cannot be written; and ValueError, without
    writing, for a line that contains a line break.
    """
    path = Path(path)
    check_writable(path)
    with atomic_file(path) as file, compressed(file, path) as output:
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(
                    f"{path}, line {number}: a line must not contain a line break."
                    f" Received: {line!r}. Replace the break with a space."
                )
            output.write(f"{line}\n".encode())


def compressed(
    file: BinaryIO, path: Path
) -> contextlib.AbstractContextManager[BinaryIO]:
    """The open file, or if the name of `path` ends in `.gz` a file that compresses into
    it.
    """
    if path.suffix != ".gz":
        return contextlib.nullcontext(file)
    # without name and time, so that equal lines give equal files
    return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[return-value]


def _lines(path: Path) -> Iterator[str]:
    for number, line in enumerate(_byte_lines(path), start=1):
        try:
            # the latter skips a byte order mark
            text = line.decode("utf-8" if number > 1 else "utf-8-sig")
        except UnicodeDecodeError as error:
            if number == 1 and line.startswith(GZIP_MAGIC):
                advice = "Let its name end in .gz."
                raise ValueError(
                    f"Text must be UTF-8. Received: {path}, which is gzip data."
                    f" {advice}"
                ) from None
            raise ValueError(
                f"{shown(path)}, line {number}: text must be UTF-8. Received: byte"
                f" 0x{error.object[error.start]:02x} after {error.start} bytes of the"
                " line. Convert the file with iconv, or correct the line."
            ) from None
        if text:  # empty only if the file is a byte order mark and nothing else
            yield text.removesuffix("\n").removesuffix("\r")


def shown(path: str | Path) -> str:
    """The name of an input file in messages."""
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


def _byte_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their line ends, decompressed."""
    if path == STANDARD_INPUT:
        with open(0, "rb", closefd=False) as file:
            yield from file
        return
    with open(path, "rb") as file:
        if path.suffix != ".gz":
            yield from file
            return
        if not file.peek(1):
            raise ValueError(
                f"A .gz file must be gzip data. Received: {path}, which is empty."
                " Download it again."
            )
        try:
            with gzip.GzipFile(fileobj=file) as unpacked:
                # faster than the lines of a GzipFile
                yield from io.BufferedReader(unpacked)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise ValueError(
                f"A .gz file must be complete gzip data. Received: {path}: {error}. "
                "Download it again, or remove .gz from the name if it is plain text."
            ) from error


def _parallel(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    sources, targets = _lines(source_path), _lines(target_path)
    for count, (source, target) in enumerate(itertools.zip_longest(sources, targets)):
        if source is None or target is None:
            source_count = count + (source is not None) + sum(1 for _ in sources)
            target_count = count + (target is not None) + sum(1 for _ in targets)
            counts = {f"{source_path}": source_count, f"{target_path}": target_count}
            # raises
            check_line_counts(
                counts, "Check that they belong together and that both are complete."
            )
        yield source, target
