"""Lines of text files: where they end, what is refused, and that files appear whole."""

import bz2
import gzip
import io
import itertools
import lzma
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from t2tlite.files import text_files

COMPRESS = {
    ".txt": bytes,
    ".gz": gzip.compress,
    ".xz": lzma.compress,
    ".bz2": bz2.compress,
}


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"a", ["a"]),
        (b"a\nb", ["a", "b"]),
        (b"a\nb\n", ["a", "b"]),
        (b"a\n\nb\n\n", ["a", "", "b", ""]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"\r\n", [""]),
        (b"a\rb\n", ["a\rb"]),
        (b"a\r\r\n", ["a\r"]),
        (b"\xef\xbb\xbfa\nb\n", ["a", "b"]),
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        # as `cat` joins files
        (b"a\n\xef\xbb\xbfb\n", ["a", "b"]),
        (b"a\n\xef\xbb\xbf\nb\n", ["a", "", "b"]),
        (b"a\n\xef\xbb\xbf", ["a"]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa\n", ["a"]),
        (b"a\xef\xbb\xbfb\n", ["a\ufeffb"]),
        (b"a\r", ["a"]),
        (b"BZh1 is a name\n", ["BZh1 is a name"]),
        (
            "a\u2028b\u2029c\x85d\x0ce\x0bf\n".encode(),
            ["a\u2028b\u2029c\x85d\x0ce\x0bf"],
        ),
        (b"a\x1cg\n", ["a\x1cg"]),
        ("Ä ß 漢字 😀 \x00\n".encode(), ["Ä ß 漢字 😀 \x00"]),
        (b" two  spaces \t\n", [" two  spaces \t"]),
    ],
)
@pytest.mark.parametrize("suffix", [".txt", ".txt.gz", ".txt.xz", ".txt.bz2"])
def test_lines_end_at_newlines_alone(
    tmp_path: Path, content: bytes, lines: list[str], suffix: str
) -> None:
    path = tmp_path / f"text{suffix}"
    path.write_bytes(COMPRESS[path.suffix](content))
    assert list(text_files.read_lines(path)) == lines


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_several_members_are_one_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"text{ending}"
    compress = COMPRESS[ending]
    path.write_bytes(compress(b"a\nb") + compress(b"c\nd\n"))
    assert list(text_files.read_lines(path)) == ["a", "bc", "d"]


@pytest.mark.parametrize(
    ("content", "line", "byte", "column"),
    [
        (b"\xff\n", 1, "ff", 0),
        (b"good\nna\xefve\nbad \xff too\n", 2, "ef", 2),
        (b"\xef\xbb\xbfa\n\n\nb\xc3", 4, "c3", 1),
        (b"\xef\xbb\xbfa\xffb\n", 1, "ff", 1),
        (b"a\nsurrogate \xed\xa0\x80\n", 2, "ed", 10),
    ],
)
def test_what_is_not_utf8_is_named_by_file_and_line(
    tmp_path: Path, content: bytes, line: int, byte: str, column: int
) -> None:
    path = tmp_path / "latin.txt"
    path.write_bytes(content)
    message = (
        rf"latin\.txt, line {line}: text must be UTF-8\. Received: byte 0x{byte} after"
        rf" {column} bytes"
    )
    with pytest.raises(ValueError, match=message):
        list(text_files.read_lines(path))


def _zip(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("text", content)
    return buffer.getvalue()


def _tar(content: bytes) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("text")
        entry.size = len(content)
        archive.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


TEXT = "one line of text\nand another\n"
# what `printf 'a\n' | zstd` writes
ZSTD = bytes.fromhex("28b52ffd0458110000610a55c8cc1e")
LINES = r"x must be UTF-8 with LF at the ends of lines\. Received: "
ARCHIVE = LINES + r"UTF-16 or an archive\. Unpack it, or use iconv"
NOT_UTF8 = r"x, line 1: text must be UTF-8\. Received: byte .* Use iconv, or unpack it"
CR_ALONE = LINES + r"text with CR and no LF\. .* tr '\\r' '\\n'"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (_zip(b"a long line of text, and without zeros\n"), ARCHIVE),
        (ZSTD, NOT_UTF8),
        (_tar(b"a\n"), ARCHIVE),
        (gzip.compress(_tar(b"a\n")), ARCHIVE),
        (TEXT.encode("utf-16"), NOT_UTF8 + "|" + ARCHIVE),
        (TEXT.encode("utf-16-le"), ARCHIVE),
        (TEXT.encode("utf-16-be"), ARCHIVE),
        (b"a\rb\rc\r", CR_ALONE),
        (gzip.compress(b"a\rb\rc"), CR_ALONE),
    ],
    ids=itertools.count(),
)
def test_what_is_not_text_is_refused(
    tmp_path: Path, content: bytes, message: str
) -> None:
    (tmp_path / "x").write_bytes(content)
    with pytest.raises(ValueError, match=message):
        list(text_files.read_lines(tmp_path / "x"))


@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_compressed_data_under_another_name(tmp_path: Path, ending: str) -> None:
    for name in ("x.txt", "x.gz"):
        (tmp_path / name).write_bytes(COMPRESS[ending](b"a\n"))
        assert list(text_files.read_lines(tmp_path / name)) == ["a"]
    (tmp_path / "x.gz").write_bytes(b"a\n")  # not compressed
    assert list(text_files.read_lines(tmp_path / "x.gz")) == ["a"]
    (tmp_path / "x.txt").write_bytes(COMPRESS[ending](gzip.compress(b"a\n")))
    with pytest.raises(ValueError, match=r"x\.txt, line 1: text must be UTF-8"):
        list(text_files.read_lines(tmp_path / "x.txt"))


def _broken(ending: str) -> dict[str, bytes]:
    compress = COMPRESS[ending]
    whole = compress(os.urandom(3000).hex().encode())
    flipped = bytearray(whole)
    flipped[-6] ^= 0xFF  # in the checksum
    scrambled = bytearray(whole)
    scrambled[10:60] = b"\xff" * 50
    return {
        "cut off": whole[: len(whole) // 2],
        "only a header": whole[:10],
        "wrong checksum": bytes(flipped),
        "scrambled": bytes(scrambled),
        "rubbish after the end": whole + b"rubbish",
        "second stream cut off": whole + whole[:-20],
    }


@pytest.mark.parametrize("kind", _broken(".gz"))
@pytest.mark.parametrize("ending", [".gz", ".xz", ".bz2"])
def test_broken_data_names_the_file(tmp_path: Path, ending: str, kind: str) -> None:
    path = tmp_path / f"broken{ending}"
    path.write_bytes(_broken(ending)[kind])
    message = rf" data must be complete\. Received: .*broken\{ending}: "
    with pytest.raises(ValueError, match=message):
        list(text_files.read_lines(path))


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    for name, fault in (("nothing", "does not exist"), ("", "is a folder")):
        with pytest.raises(FileNotFoundError, match=rf"{name}, which {fault}"):
            next(text_files.read_lines(tmp_path / name))


@pytest.mark.parametrize("ending", COMPRESS)
def test_memory_does_not_grow_with_the_file(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"big{ending}"
    # 19 MB; compressed, less than one block is read
    content = (b"some words on a line, again and again" * 10 + b"\n") * 50_000
    path.write_bytes(COMPRESS[ending](content))
    script = (
        "import sys, tracemalloc; from t2tlite.files import text_files;"
        " tracemalloc.start()\nfor _ in text_files.read_lines(sys.argv[1]):"
        " break\ncount = sum(1 for _ in"
        " text_files.read_lines(sys.argv[1]))\nprint(count,"
        " tracemalloc.get_traced_memory()[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(path)],
        check=True,
        capture_output=True,
        text=True,
    )
    count, peak = map(int, done.stdout.split())
    assert count == 50_000
    assert peak < 12 << 20  # xz has a dictionary of 8 MiB


def _write(path: Path, *lines: str) -> Path:
    path.write_bytes("".join(f"{line}\n" for line in lines).encode())
    return path


def test_parallel_files_are_read_in_order(tmp_path: Path) -> None:
    first = (
        _write(tmp_path / "1.en", "a", "", "c\u2028d"),
        _write(tmp_path / "1.de", "A", "B", "C"),
    )
    second = _write(tmp_path / "2.en", "x"), _write(tmp_path / "2.de", "X")
    third = tmp_path / "3.en.gz", _write(tmp_path / "3.de", "E")
    third[0].write_bytes(gzip.compress(b"e\r\n"))
    sources, targets = zip(first, second, third, strict=True)
    pairs = [("a", "A"), ("", "B"), ("c\u2028d", "C"), ("x", "X"), ("e", "E")]
    assert list(text_files.read_parallel(sources, targets)) == pairs
    assert list(text_files.read_parallel([], [])) == []


@pytest.mark.parametrize(
    ("source_count", "target_count"), [(3, 5), (5, 3), (0, 1), (1, 0), (0, 0)]
)
def test_files_of_unequal_length_are_counted_to_their_ends(
    tmp_path: Path, source_count: int, target_count: int
) -> None:
    source = _write(tmp_path / "x.en", *["s"] * source_count)
    target = _write(tmp_path / "x.de", *["t"] * target_count)
    good = _write(tmp_path / "good", "g")
    pairs = text_files.read_parallel([good, source], [good, target])
    message = rf"Received: .*x\.en with {source_count}, .*x\.de with {target_count}\."
    read: list[tuple[str, str]] = []
    with pytest.raises(ValueError, match=message):
        read.extend(pairs)
    assert read == [("g", "g")] + [("s", "t")] * min(source_count, target_count)


@pytest.mark.parametrize(
    "name", ["out.txt", "out.gz", "out.xz", "out.bz2", "new/folder/out.txt"]
)
def test_written_lines_read_back(tmp_path: Path, name: str) -> None:
    lines = ["", "Grüße", "a\u2028b\x85c", "a\rb", " spaces ", ""]
    path = tmp_path / name
    text_files.write_lines(path, iter(lines))
    assert list(text_files.read_lines(path)) == lines
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


def test_interrupted_writing_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old\n")

    def stop():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        text_files.write_lines(path, stop())
    assert path.read_text() == "old\n"
    assert list(tmp_path.iterdir()) == [path]
