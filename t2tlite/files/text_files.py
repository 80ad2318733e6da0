"""Text files, one sentence a line: read line by line, and written atomically.

A line ends at "\\n" and nowhere else. `str.splitlines` breaks lines at U+2028, U+0085
or form feeds, text mode at lone carriage returns: one of these would pair every later
line of a parallel corpus with a wrong one.
"""

from __future__ import annotations

import codecs
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from t2tlite.files import sgm
from t2tlite.files.atomic_file import atomic_file, check_name, check_writable
from t2tlite.files.compression import (
    STANDARD_INPUT,
    compressed,
    opened,
    plain_name,
)

# receives the error of a line that is then blank
Report = Callable[[ValueError], object]

# the first bytes of files that are often mistaken for text
OTHER_DATA = {
    b"PK\x03\x04": "a zip archive",
    b"\x28\xb5\x2f\xfd": "zstd data",
    b"7z\xbc\xaf\x27\x1c": "a 7z archive",
    b"\x04\x22\x4d\x18": "lz4 data",
    b"\xff\xfe\x00\x00": "UTF-32",
    b"\x00\x00\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
    b"%PDF-": "a PDF document",
}
TAR_MAGIC = b"ustar"
TAR_MAGIC_AT = 257
# endings of files without a sentence on each line
NOT_LINES = re.compile(
    r"\.(tmx|xliff|xlf|sdlxliff|mqxliff|po|docx|odt|rtf|xlsx|ods|pptx|epub|html?|xml"
    r"|jsonl?)$",
    re.I,
)
# how a file of markup begins
MARKUP = re.compile(r"\s*<(\?xml|!doctype|srcset|refset|tstset|tmx|xliff)\b", re.I)


def check_file(path: str | Path) -> Path:
    """The path, after checking that it is a file or STANDARD_INPUT. Raises
    FileNotFoundError if it is not, and ValueError as `check_name`.
    """
    path = Path(path)
    if path == STANDARD_INPUT:
        return path
    check_name(path)
    if path.is_dir() or not path.exists():
        raise FileNotFoundError(
            f"A text file is required. Received: {path}, which"
            f" {'is a folder' if path.is_dir() else 'does not exist'}. Relative names"
            f" start from the current folder, {Path.cwd()}."
        )
    return path


def read_lines(path: str | Path, report: Report | None = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file, which may be compressed, without their line
    ends ("\\n" or "\\r\\n").

    STANDARD_INPUT can be read only once. A byte order mark at the start of a line is
    skipped: in a file joined from several, each may begin with one. A last line
    without a line end counts. Raises FileNotFoundError at once; while reading,
    ValueError for damaged compressed data, for a format that is not text, for text
    whose lines end in "\\r" alone, or with the number of a line that is not UTF-8.
    With `report`, that is called with this last error, and the line is blank.

    The lines of an `.sgm` file are its segments, see sgm.py. Raises ValueError at once
    for other formats with markup, by the name.
    """
    return _lines(check_file(path), report)


def read_parallel(
    source_paths: Sequence[str | Path], target_paths: Sequence[str | Path]
) -> Iterator[tuple[str, str]]:
    """Yields (source, target) line by line from pairs of files, one pair after the
    other.

    Raises as `read_lines` does, and ValueError: at once if the numbers of files differ,
    at the end of the shorter file if one file of a pair has more lines than the other,
    and for empty files.
    """
    if len(source_paths) != len(target_paths):
        sources = ", ".join(map(str, source_paths)) or "none"
        targets = ", ".join(map(str, target_paths)) or "none"
        raise ValueError(
            "There must be as many source files as target files. Received:"
            f" {len(source_paths)} source ({sources}) and {len(target_paths)} target"
            f" ({targets})."
        )
    pairs = []
    for source, target in zip(source_paths, target_paths, strict=True):
        pairs.append((check_file(source), check_file(target)))
    return itertools.chain.from_iterable(itertools.starmap(_parallel, pairs))


def read_tsv(path: str | Path) -> Iterator[tuple[str, str]]:
    """Yields (source, target) from a file with a tab between them on each line. Quotes
    have no meaning.

    Raises as `read_lines` does, and ValueError with the number of a line that has not
    one tab, and for an empty file.
    """
    return _tsv(check_file(path))


def check_line_counts(
    counts: Mapping[str, int], advice: str, unit: str = "lines"
) -> None:
    """Raises ValueError with `advice` unless all files have the same number of lines,
    at least 1. `counts` are by the names of the files.
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

    A file whose name ends in `.gz`, `.xz` or `.bz2` is compressed. Links and devices
    are written as by `atomic_file`. Raises OSError if `path` cannot be written; and
    ValueError, without writing, for a line that contains a line break.
    """
    path = Path(path)
    check_writable(path)
    with atomic_file(path) as file, compressed(file, path) as output:
        for number, line in enumerate(lines, start=1):
            if "\n" in line:
                raise ValueError(
                    f"{path}, line {number}: a line must not contain a line break."
                    f" Received: {line!r}."
                )
            output.write(f"{line}\n".encode())


def read_segments(path: str | Path) -> list[str]:
    """The texts of the `<seg>` elements of a file with any name; raises as `read_lines`
    and `sgm.segments`.
    """
    return list(sgm.segments(_text_lines(check_file(path)), shown(path)))


def _lines(path: Path, report: Report | None = None) -> Iterator[str]:
    """The lines of a file with one sentence each, or the segments of an .sgm file."""
    name = plain_name(path)
    if NOT_LINES.search(name):
        raise _not_lines(shown(path))
    if name.lower().endswith(sgm.SGM_ENDINGS):
        return sgm.segments(_text_lines(path), shown(path))
    return _without_markup(path, report)


def _without_markup(path: Path, report: Report | None) -> Iterator[str]:
    lines = _text_lines(path, report)
    for first in lines:
        if MARKUP.match(first):
            raise _not_lines(f"{shown(path)}, which begins with {first[:40]!r}")
        yield first
        break
    yield from lines


def _not_lines(received: str) -> ValueError:
    return ValueError(
        f"Text must have a sentence on each line. Received: {received}. Save its text"
        " in that way; or its pairs as .tmx, for t2t-datagen --train_tmx."
    )


def _text_lines(path: Path, report: Report | None = None) -> Iterator[str]:
    with opened(path) as file:
        for number, line in enumerate(file, start=1):
            if number == 1:
                _check_start(line, path)
            while line.startswith(codecs.BOM_UTF8):
                line = line.removeprefix(codecs.BOM_UTF8)
            try:
                text = line.decode()
            except UnicodeDecodeError as error:
                fault = ValueError(
                    f"{shown(path)}, line {number}: text must be UTF-8. Received: byte"
                    f" 0x{error.object[error.start]:02x} after {error.start} bytes of"
                    " the line. Convert the file with iconv, or correct the line."
                )
                if report is None:
                    raise fault from None
                report(fault)
                text = "\n"
            if text:  # empty only if the file ends in a byte order mark, not in a line
                yield text.removesuffix("\n").removesuffix("\r")


def _check_start(line: bytes, path: Path) -> None:
    """Raises ValueError if the first line shows that a file is not text with lines."""
    kind = None
    if line[TAR_MAGIC_AT:].startswith(TAR_MAGIC):
        kind = "a tar archive"
    elif line.count(0) * 3 > len(line):
        kind = "UTF-16"
    for magic, name in OTHER_DATA.items():
        if line.startswith(magic):
            kind = name
            break
    if kind:
        raise ValueError(
            f"Text must be UTF-8. Received: {shown(path)}, which is {kind}. Unpack it,"
            " or convert it: iconv -f UTF-16 -t UTF-8 OLD > NEW."
        )
    returns = line[:-1].count(b"\r")
    if returns and not line.endswith(b"\n"):
        raise ValueError(
            f"A line must end with LF or CR LF. Received: {shown(path)}, which has"
            f" {returns:,} CR and no LF. Convert it: tr '\\r' '\\n' < OLD > NEW."
        )


def shown(path: str | Path) -> str:
    """The name of an input file in messages."""
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


def _parallel(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    source_count = 0
    target_count = 0
    pairs = itertools.zip_longest(_lines(source_path), _lines(target_path))
    for source, target in pairs:
        source_count += source is not None
        target_count += target is not None
        if source is not None and target is not None:
            yield source, target
    counts = {str(source_path): source_count, str(target_path): target_count}
    check_line_counts(counts, "Check that they belong together and are complete.")


def _tsv(path: Path) -> Iterator[tuple[str, str]]:
    number = 0
    for number, line in enumerate(_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            raise ValueError(
                f"{path}, line {number}: a line must have two columns, source and"
                f" target, with a tab between them. Received: {len(columns)},"
                f" {line[:80]!r}. cut -f1,2 OLD > NEW keeps the first two."
            )
        yield columns[0], columns[1]
    check_line_counts({str(path): number}, "Check that it is complete.")
