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
from t2tlite.files.compression import COMPRESSED, compressed, opened, plain_name

# receives the error of a line that is then blank
Report = Callable[[ValueError], object]

STANDARD_INPUT = Path("-")  # as a path to read from

# the first bytes of files that are often mistaken for text -> what they are, and what
# to do
GZIP_MAGIC = b"\x1f\x8b"
BZIP2_MAGIC = b"BZh"  # then a digit and BZIP2_BLOCK: text may begin with it, too
BZIP2_BLOCK = b"1AY&SY"
FORMATS = {
    GZIP_MAGIC: ("gzip data", ".gz"),
    b"\xfd7zXZ\x00": ("xz data", ".xz"),
    BZIP2_MAGIC: ("bzip2 data", ".bz2"),
    b"PK\x03\x04": ("a zip archive", "Unpack it with unzip."),
    b"\x28\xb5\x2f\xfd": ("zstd data", "Decompress it with zstd -d."),
    b"7z\xbc\xaf\x27\x1c": ("a 7z archive", "Unpack it with 7z x."),
    b"\x04\x22\x4d\x18": ("lz4 data", "Decompress it with lz4 -d."),
    b"\xff\xfe\x00\x00": ("UTF-32", "Convert it with iconv -f UTF-32 -t UTF-8."),
    b"\x00\x00\xfe\xff": ("UTF-32", "Convert it with iconv -f UTF-32 -t UTF-8."),
    b"\xff\xfe": ("UTF-16", "Convert it with iconv -f UTF-16 -t UTF-8."),
    b"\xfe\xff": ("UTF-16", "Convert it with iconv -f UTF-16 -t UTF-8."),
    b"%PDF-": ("a PDF document", "Export its text as a file."),
}
# endings of files without a sentence on each line -> what to do
DOCUMENT = "Save its text as a file with a sentence on each line."
MEMORY = f"{DOCUMENT} To train on its pairs, give them as TMX: t2t-datagen --train_tmx."
NOT_LINES = {
    **dict.fromkeys((".tmx", ".xliff", ".xlf", ".sdlxliff", ".mqxliff", ".po"), MEMORY),
    **dict.fromkeys((".docx", ".odt", ".rtf", ".xlsx", ".ods", ".pptx"), DOCUMENT),
    **dict.fromkeys((".epub", ".html", ".htm", ".xml", ".json", ".jsonl"), DOCUMENT),
}
# how a file of markup begins
MARKUP = re.compile(r"\s*<(\?xml|!doctype|srcset|refset|tstset|tmx|xliff)\b", re.I)
NUMBER = re.compile(r"[+-]?[\d.,:/-]*\d")  # a column of ids, scores or dates
TAR_MAGIC = b"ustar"
TAR_MAGIC_AT = 257
MIN_UTF_16 = 4  # characters of the shortest line that can be recognised as UTF-16
CARRIAGE_RETURN = b"\r"


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


def compressed_or_not(path: Path) -> Path:
    """The path of a file, or that of its compressed form if only this is there:
    `train.trees.gz` for `train.trees`.
    """
    for ending in ("", *COMPRESSED):
        candidate = path.with_name(f"{path.name}{ending}")
        if candidate.is_file():
            return candidate
    return path


def read_lines(path: str | Path, report: Report | None = None) -> Iterator[str]:
    """Yields the lines of a UTF-8 file without their line ends ("\\n" or "\\r\\n"). A
    file whose name ends in `.gz`, `.xz` or `.bz2` is decompressed.

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
                    f" Received: {line!r}. Replace the break with a space."
                )
            output.write(f"{line}\n".encode())


def read_segments(path: str | Path) -> list[str]:
    """The texts of the `<seg>` elements of a file with any name; raises as `read_lines`
    and `sgm.segments`.
    """
    return list(sgm.segments(_text_lines(check_file(path)), shown(path)))


def _lines(path: Path, report: Report | None = None) -> Iterator[str]:
    """The lines of a file with one sentence each, or the segments of an .sgm file."""
    ending = Path(plain_name(path).lower()).suffix
    if ending in NOT_LINES:
        raise _not_lines(shown(path), NOT_LINES[ending])
    if ending in sgm.ENDINGS:
        return sgm.segments(_text_lines(path), shown(path))
    return _without_markup(path, report)


def _without_markup(path: Path, report: Report | None) -> Iterator[str]:
    lines = _text_lines(path, report)
    for first in lines:
        if MARKUP.match(first):
            advice = "Let its name end in .tmx or .sgm if it is of these formats."
            received = f"{shown(path)}, which begins with {first[:40]!r}"
            raise _not_lines(received, advice)
        yield first
        break
    yield from lines


def _not_lines(received: str, advice: str) -> ValueError:
    return ValueError(
        f"Text must have a sentence on each line. Received: {received}. {advice}"
    )


def _text_lines(path: Path, report: Report | None = None) -> Iterator[str]:
    for number, line in enumerate(_byte_lines(path), start=1):
        if number == 1:
            _check_start(line, path)
        while line.startswith(codecs.BOM_UTF8):
            line = line.removeprefix(codecs.BOM_UTF8)
        try:
            text = line.decode()
        except UnicodeDecodeError as error:
            fault = ValueError(
                f"{shown(path)}, line {number}: text must be UTF-8. Received: byte"
                f" 0x{error.object[error.start]:02x} after {error.start} bytes of the"
                " line. Convert the file with iconv, or correct the line."
            )
            if report is None:
                raise fault from None
            report(fault)
            text = "\n"
        if text:  # empty only if the file ends in a byte order mark, not in a line
            yield text.removesuffix("\n").removesuffix("\r")


def _check_start(line: bytes, path: Path) -> None:
    """Raises ValueError if the first line shows that a file is not text with lines."""
    name = shown(path)
    for magic, (kind, advice) in FORMATS.items():
        if not line.startswith(magic):
            continue
        if magic == BZIP2_MAGIC and line[4:10] != BZIP2_BLOCK:
            continue
        if advice in COMPRESSED:
            advice = _decompress(path, advice)
        raise ValueError(
            f"Text must be UTF-8. Received: {name}, which is {kind}. {advice}"
        )
    if line[TAR_MAGIC_AT:].startswith(TAR_MAGIC):
        raise ValueError(
            f"Text must be UTF-8. Received: {name}, which is a tar archive. Unpack it"
            " with tar -xf, and name a file that was in it."
        )
    if _is_utf_16(line):
        raise ValueError(
            f"Text must be UTF-8. Received: {name}, in which every other byte is 0, as"
            " in UTF-16. Convert it with iconv -f UTF-16LE -t UTF-8, or UTF-16BE."
        )
    if not line.endswith(b"\n") and CARRIAGE_RETURN in line[:-1]:
        raise _no_line_ends(path, line.count(CARRIAGE_RETURN), "no LF")


def _no_line_ends(path: Path, count: int, lines: str) -> ValueError:
    return ValueError(
        f"A line must end with LF or CR LF. Received: {shown(path)}, which has"
        f" {count:,} CR and {lines}. Convert it: tr '\\r' '\\n' < OLD > NEW."
    )


def _is_utf_16(line: bytes) -> bool:
    """Whether most of every other byte is 0, as in UTF-16 without a byte order mark."""
    zeros = line[::2].count(0), line[1::2].count(0)
    pairs = len(line) // 2
    return pairs >= MIN_UTF_16 and min(zeros) == 0 and max(zeros) * 4 > pairs * 3


def _decompress(path: Path, ending: str) -> str:
    """Advice on compressed data whose file name does not say so."""
    if path == STANDARD_INPUT:
        return f"Decompress it first, with {COMPRESSED[ending]} -dc."
    if path.suffix in COMPRESSED:
        return "It is compressed twice, or its name has the wrong ending."
    return f"Let its name end in {ending}."


def shown(path: str | Path) -> str:
    """The name of an input file in messages."""
    return "standard input" if Path(path) == STANDARD_INPUT else str(path)


def _byte_lines(path: Path) -> Iterator[bytes]:
    """The lines of a file with their line ends, decompressed."""
    if path == STANDARD_INPUT:
        with open(0, "rb", closefd=False) as file:
            yield from file
        return
    with opened(path) as file:
        yield from file


def _parallel(source_path: Path, target_path: Path) -> Iterator[tuple[str, str]]:
    sources, targets = _lines(source_path), _lines(target_path)
    advice = "Check that they belong together and that both are complete."
    count = 0
    for source, target in itertools.zip_longest(sources, targets):
        if source is None or target is None:
            source_count = count + (source is not None) + sum(1 for _ in sources)
            target_count = count + (target is not None) + sum(1 for _ in targets)
            counts = {f"{source_path}": source_count, f"{target_path}": target_count}
            check_line_counts(counts, advice)  # raises
        yield source, target
        count += 1
    if count == 0:
        counts = {f"{source_path}": 0, f"{target_path}": 0}
        check_line_counts(counts, advice)  # raises
    if count == 1:
        _check_only_line(source, source_path)
        _check_only_line(target, target_path)


def _tsv(path: Path) -> Iterator[tuple[str, str]]:
    number = 0
    for number, line in enumerate(_lines(path), start=1):
        columns = line.split("\t")
        if len(columns) != 2:
            advice = "Separate source and target by one tab."
            if len(columns) > 2:
                advice = f"Keep the two of text: {_cut(columns)} OLD > NEW."
            raise ValueError(
                f"{path}, line {number}: a line must have two columns, source and"
                f" target. Received: {len(columns)}, {line[:80]!r}. {advice}"
            )
        yield columns[0], columns[1]
    if not number:
        check_line_counts({f"{path}": 0}, "Check that it is complete.")  # raises


def _cut(columns: Sequence[str]) -> str:
    """The command that keeps the columns of text: those that are not numbers, if there
    are two of them.
    """
    texts = []
    for number, column in enumerate(columns, start=1):
        if column and not NUMBER.fullmatch(column):
            texts.append(str(number))
    if len(texts) == 2:
        return f"cut -f{','.join(texts)}"
    return "cut -fA,B, with their numbers,"


def _check_only_line(line: str, path: Path) -> None:
    """Raises ValueError if the only line of a file seems to be many."""
    if "\r" in line:
        raise _no_line_ends(path, line.count("\r"), "1 LF")
