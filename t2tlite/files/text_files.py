"""Text files, one sentence a line: read line by line, and written atomically.

A line ends at "\\n" and nowhere else. `str.splitlines` breaks lines at U+2028, U+0085
or form feeds, text mode at lone carriage returns: one of these would pair every later
line of a parallel corpus with a wrong one.
"""

import codecs
import html
import itertools
import os
import queue
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from t2tlite.files.atomic_file import atomic_file, check_name, check_writable
from t2tlite.files.compression import (
    STANDARD_INPUT,
    compressed,
    opened,
    plain_name,
)

# receives the error of a line that is then blank
Report = Callable[[ValueError], object]

# endings of files without a sentence on each line
NOT_LINES = re.compile(r"\.(tmx|xliff|xlf|po|rtf|html?|xml|jsonl?)$", re.I)

SGM_ENDINGS = (".sgm", ".sgml")
SEGMENT = re.compile(r"<seg\b[^>]*>(.*?)</seg>", re.IGNORECASE)
SEGMENT_TAG = re.compile(r"</?seg\b", re.IGNORECASE)
# Python refuses numbers of thousands of digits
ENTITY = re.compile(r"&(?:#\d{1,1000}|#[xX][0-9a-fA-F]+|amp|lt|gt|quot|apos|nbsp);")
AHEAD = 10_000  # lines read ahead at most
# of a zip file, and the byte order marks of UTF-16
OTHER_STARTS = (b"PK\3\4", b"\xff\xfe", b"\xfe\xff")


def check_file(path: str | Path) -> Path:
    """The path, in which `~` is the home folder, after checking that it is a file or
    STANDARD_INPUT. Raises FileNotFoundError if it is not, and ValueError as
    `check_name`.
    """
    path = Path(os.path.expanduser(path))
    if path == STANDARD_INPUT:
        return path
    check_name(path)
    if path.is_dir() or not path.exists():
        fault = "is a folder" if path.is_dir() else "does not exist"
        raise FileNotFoundError(
            f"A text file is required. Received: {path}, which {fault}."
        )
    return path


def read_lines(path: str | Path, report: Report | None = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be compressed, without their line
    ends ("\\n" or "\\r\\n"); of an `.sgm` file, its segments.

    STANDARD_INPUT can be read only once. A byte order mark at the start of a line is
    skipped: in a file joined from several, each may begin with one. A last line
    without a line end counts. Raises while reading: FileNotFoundError; and ValueError
    for damaged compressed data, for a format that is not text, for text whose lines end
    in "\\r" alone, or with the number of a line that is not UTF-8. With `report`, that
    is called with this last error, and the line is blank.
    """
    name = plain_name(Path(path))
    if name.lower().endswith(SGM_ENDINGS):
        yield from read_segments(path)
        return
    if NOT_LINES.search(name):
        raise ValueError(f"{path} must have a sentence on each line; see --train_tmx.")
    yield from _text_lines(path, report)


def read_segments(path: str | Path) -> Iterator[str]:
    """Yields the texts of the `<seg>` elements of a file with any name, with entities
    replaced.

    These files are not well-formed XML (bare `&`), so each line is searched for
    elements. Raises as `read_lines`, and ValueError with the line of an element that
    does not end on it, and if there are none.
    """
    count = 0
    for number, line in enumerate(_text_lines(path), start=1):
        texts = SEGMENT.findall(line)
        if len(SEGMENT_TAG.findall(line)) != 2 * len(texts):
            place = f"{shown(path)}, line {number}"
            raise ValueError(f"{place}: each <seg> must end on its line.")
        count += len(texts)
        yield from map(unescape, texts)
    check_line_counts({shown(path): count}, "Is it complete?", "<seg> elements")


def unescape(text: str) -> str:
    """Replaces entities such as `&quot;` and `&#45;`, and strips the text, which stays
    one line.

    `html.unescape` would also replace `&lt` without a semicolon.
    """
    text = ENTITY.sub(lambda entity: html.unescape(entity[0]), text)
    return text.replace("\n", " ").strip()


def read_parallel(
    source_paths: Sequence[str | Path],
    target_paths: Sequence[str | Path],
    read: Callable[[str | Path], Iterator[str]] = read_lines,
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) line by line from pairs of files, one pair after the
    other; `read` reads a file.

    Raises as `read` does, and ValueError at the end of the shorter file if one
    file of a pair has more lines than the other, and for empty files.
    """
    for paths in zip(source_paths, target_paths, strict=True):
        counts = [0, 0]
        for source, target in itertools.zip_longest(*map(read, paths)):
            counts[0] += source is not None
            counts[1] += target is not None
            if source is not None and target is not None:
                yield source, target
        by_name = dict(zip(map(str, paths), counts, strict=True))
        check_line_counts(by_name, "Check that they are complete.")


def read_columns(
    path: str | Path, separator: str = "\t", prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) from a file with a separator between them on each line.
    Quotes have no meaning, and blank lines do not count.

    Raises as `read_lines` does, and ValueError with the number of a line that lacks
    prefix or separator or has a further tab, and for an empty file.
    """
    number = 0
    for number, line in enumerate(read_lines(path), start=1):
        source, has_target, target = line.removeprefix(prefix).partition(separator)
        is_right = has_target and line.startswith(prefix) and "\t" not in target
        if line and not is_right:
            form = f"{prefix}SOURCE{separator}TARGET"
            raise ValueError(
                f"{shown(path)}, line {number}: {form!r} is required. Received:"
                f" {line[:80]!r}. Cut other columns off."
            )
        if line:
            yield source, target
    check_line_counts({shown(path): number}, "Check that it is complete.")


def check_line_counts(
    counts: Mapping[str, int], advice: str, unit: str = "lines"
) -> None:
    """Raises ValueError with `advice` unless all files have the same number of lines,
    at least 1. `counts` are by the names of the files.
    """
    if len(set(counts.values())) > 1 or 0 in counts.values():
        received = ", ".join(f"{name} with {count}" for name, count in counts.items())
        raise ValueError(
            f"Files must have equally many {unit}, at least 1. Received: {received}."
            f" {advice}"
        )


def write_lines(path: str | Path, lines: Iterable[str]) -> None:
    """Writes lines to a file atomically, each followed by "\\n", and creates missing
    folders.

    A file whose name ends in `.gz`, `.xz` or `.bz2` is compressed. Links and devices
    are written as by `atomic_file`. Raises OSError if `path` cannot be written.
    """
    path = Path(path)
    check_writable(path)
    with atomic_file(path) as file, compressed(file, path) as output:
        for line in lines:
            output.write(f"{line}\n".encode())


def _text_lines(path: str | Path, report: Report | None = None) -> Iterator[str]:
    with opened(check_file(path)) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                _check_start(line, path)
            while line.startswith(codecs.BOM_UTF8):
                line = line.removeprefix(codecs.BOM_UTF8)
                if not line:  # the file ends in a byte order mark, not in a line
                    return
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                fault = ValueError(
                    f"{shown(path)}, line {number}: text must be UTF-8. Received: byte"
                    f" 0x{line[error.start]:02x} after {error.start} bytes. Use iconv,"
                    " or unpack it."
                )
                if report is None:
                    raise fault from None
                report(fault)
                text = ""
            yield text.removesuffix("\n").removesuffix("\r")


def _check_start(line: bytes, path: str | Path) -> None:
    """Raises ValueError if the first line shows that a file is not text with lines."""
    kind = ""
    if line.startswith(OTHER_STARTS) or line.count(0) * 3 > len(line):
        kind = "UTF-16 or an archive"
    elif b"\r" in line[:-1] and not line.endswith(b"\n"):
        kind = "text with CR and no LF"
    if kind:
        raise ValueError(
            f"{shown(path)} must be UTF-8 with LF at the ends of lines. Received:"
            f" {kind}. Unpack it, or use iconv or tr '\\r' '\\n'."
        )


def shown(path: str | Path) -> str:
    """The name of an input file in messages."""
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


class ReadAhead(Iterator[Any]):
    """The items of an iterator, which a thread reads; an exception of the iterator is
    raised in its place.
    """

    def __init__(self, items: Iterator[Any]) -> None:
        # items, each with None; then the exception that ended them
        self._queue: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(AHEAD)
        threading.Thread(target=self._read, args=(items,), daemon=True).start()

    def __next__(self) -> Any:
        item, end = self._queue.get()
        if end is not None:
            self._queue.put((item, end))  # further calls find the end again
            raise end
        return item

    def ready(self) -> bool:
        """Whether the next item, or the end, is available without waiting."""
        return not self._queue.empty()

    def _read(self, items: Iterator[Any]) -> None:
        end: BaseException = StopIteration()
        try:
            for item in items:
                self._queue.put((item, None))
        except BaseException as error:
            end = error
        self._queue.put((None, end))
