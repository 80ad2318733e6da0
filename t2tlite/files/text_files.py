"""Text files, one sentence a line: read in constant memory, written all or nothing.

A line ends at "\\n" and nowhere else. `str.splitlines` and text mode also break lines at U+2028, U+0085, form feeds or
lone carriage returns, which web text is full of; one such break and every later line of a parallel corpus is
paired with the wrong translation.
"""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from t2tlite.files.atomic_file import atomic_file

BLOCK_BYTES = 1 << 18  # lines are decoded in blocks of about this size, which is what makes reading fast
GZIP_MAGIC = b"\x1f\x8b"
BYTE_ORDER_MARK = "\ufeff"


def check_file(path: str | Path) -> Path:
    """The path, when there is a file.

    Raises:
        FileNotFoundError: nothing is there, or a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"A text file is required. Received: {path}, which is a folder. Name a file in it.")
    if not path.exists():
        raise FileNotFoundError(
            f"A text file is required. Received: {path}, which does not exist. "
            f"Relative names start from the current folder, {Path.cwd()}."
        )
    return path


def read_lines(path: str | Path) -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their line ends ("\\n" or "\\r\\n").

    A byte order mark at the start is left out. A last line without a line end counts, an empty rest after the last
    line end does not.

    Args:
        path: plain text, or gzip where the name ends in `.gz`.

    Raises:
        FileNotFoundError: at once, when there is no such file.
        ValueError: while reading: a line is not UTF-8 (the message names file and line), or gzip data is broken.
    """
    return _lines(check_file(path))


def read_parallel(source_paths: Sequence[str | Path], target_paths: Sequence[str | Path]) -> Iterator[tuple[str, str]]:
    """Yields (source, target) line by line from pairs of files, in order.

    Args:
        source_paths: source files, read one after the other.
        target_paths: as many target files; line n of each is the translation of line n of its source file.

    Raises:
        FileNotFoundError: at once, when one of the files is missing.
        ValueError: at once, when the numbers of files differ; while reading, when one file of a pair is longer than the
            other (after the lines that both have), and all that `read_lines` raises.
    """
    if len(source_paths) != len(target_paths):
        raise ValueError(
            "There must be as many source files as target files. "
            f"Received: {len(source_paths)} source ({_names(source_paths)}) and "
            f"{len(target_paths)} target ({_names(target_paths)})."
        )
    pairs = [
        (check_file(source), check_file(target)) for source, target in zip(source_paths, target_paths, strict=True)
    ]
    return itertools.chain.from_iterable(_parallel(source, target) for source, target in pairs)


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Writes lines to a file, each followed by "\\n"; the file appears complete or not at all.

    The lines go to a temporary file in the same folder, which takes the name at the end. Folders that are missing are
    made. A name that ends in `.gz` is compressed. Something other than a regular file, such as /dev/stdout, is written
    to directly.

    Raises:
        ValueError: a line holds a line break, which would shift all lines after it; nothing is written then.
        FileNotFoundError: `path` is a folder.
    """
    path = Path(path)
    if path.is_dir():
        raise FileNotFoundError(f"A file to write is required. Received: {path}, which is a folder. Add a file name.")
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            _write(file, path, lines)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    with atomic_file(path) as file:
        _write(file, path, lines)


def _lines(path: Path) -> Iterator[str]:
    first_line = 1  # number of the block's first line
    for block in _blocks(path):
        try:
            text = block.decode("utf-8")
        except UnicodeDecodeError as error:
            raise _not_utf8(path, first_line, block, error) from None
        if first_line == 1:
            text = text.removeprefix(BYTE_ORDER_MARK)
            if not text:  # a byte order mark and nothing else
                continue
        lines = text.removesuffix("\n").split("\n")
        if "\r" in text:
            lines = [line.removesuffix("\r") for line in lines]
        yield from lines
        first_line += len(lines)


def _blocks(path: Path) -> Iterator[bytes]:
    """Yields a file's bytes, unpacked, in blocks of whole lines."""
    with contextlib.ExitStack() as stack:
        file: BinaryIO = stack.enter_context(open(path, "rb"))
        if path.suffix == ".gz":
            if not file.peek(1):  # type: ignore[attr-defined]  # `open` returns a BufferedReader
                raise ValueError(f"A .gz file must hold gzip data. Received: {path}, which is empty. Fetch it again.")
            unpacked = stack.enter_context(gzip.GzipFile(fileobj=file))
            file = stack.enter_context(io.BufferedReader(unpacked, BLOCK_BYTES))  # GzipFile.readlines is slow
        while True:
            try:
                lines = file.readlines(BLOCK_BYTES)
            except (EOFError, gzip.BadGzipFile, zlib.error) as error:
                raise ValueError(
                    f"A .gz file must hold complete gzip data. Received: {path}: {error}. "
                    "Fetch it again, or take .gz off the name if it is plain text."
                ) from error
            if not lines:
                return
            yield b"".join(lines)


def _not_utf8(path: Path, first_line: int, block: bytes, error: UnicodeDecodeError) -> ValueError:
    if first_line == 1 and block.startswith(GZIP_MAGIC):
        return ValueError(f"Text must be UTF-8. Received: {path}, which is gzip data. Let its name end in .gz.")
    line = first_line + block.count(b"\n", 0, error.start)
    column = error.start - (block.rfind(b"\n", 0, error.start) + 1)
    return ValueError(
        f"{path}, line {line}: text must be UTF-8. Received: byte 0x{block[error.start]:02x} after {column} bytes of "
        "the line. Convert the file with iconv, or correct the line."
    )


def _parallel(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    sources, targets = _lines(source_path), _lines(target_path)
    for count, (source, target) in enumerate(itertools.zip_longest(sources, targets)):
        if source is None or target is None:
            source_count = count + (source is not None) + sum(1 for _ in sources)
            target_count = count + (target is not None) + sum(1 for _ in targets)
            raise ValueError(
                "A source file and its target file must have equally many lines. "
                f"Received: {source_path} with {source_count} lines and {target_path} with {target_count} lines. "
                "Check that they belong together and that neither was cut off."
            )
        yield source, target


def _write(file: BinaryIO, path: Path, lines: Iterable[str]) -> None:
    with contextlib.ExitStack() as stack:
        output: BinaryIO = file
        if path.suffix == ".gz":  # no name and no time inside, so that equal lines make equal files
            output = stack.enter_context(gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0))  # type: ignore[assignment]
        text = io.TextIOWrapper(output, encoding="utf-8", newline="\n")
        stack.callback(text.detach)  # or the wrapper would close the file that it was given
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(
                    f"{path}, line {number}: a line must not hold a line break. Received: {line!r}. "
                    "Replace the break with a space."
                )
            text.write(line)
            text.write("\n")


def _names(paths: Sequence[str | Path]) -> str:
    return ", ".join(map(str, paths)) or "none"
