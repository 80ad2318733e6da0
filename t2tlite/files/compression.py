"""Compressed files: read if their first bytes say so, written if their names do."""

import bz2
import contextlib
import gzip
import io
import lzma
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

STANDARD_INPUT = Path("-")  # as a path to read from
BLOCK = 1 << 16  # bytes of compressed data
BZIP2 = rb"BZh[1-9](1AY&SY|\x17rE8P\x90)"  # the second of an empty file


class _Streams(io.RawIOBase):
    """Decompresses xz or bzip2 data, several streams one after the other.

    LZMAFile and BZ2File end without an error if a second stream is damaged.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], Any]) -> None:
        self._file = file
        self._start = start
        self._stream = start()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer with the next bytes; returns their number, 0 at the end."""
        unpacked = b""
        while not unpacked:
            data = b""
            if self._stream.eof:
                data = self._stream.unused_data or self._file.read(BLOCK)
                if not data:
                    return 0
                self._stream = self._start()
            elif self._stream.needs_input:
                data = self._file.read(BLOCK)
                if not data:
                    raise EOFError("it ends in the middle of a stream")
            unpacked = self._stream.decompress(data, len(buffer))
        buffer[: len(unpacked)] = unpacked
        return len(unpacked)


class Compression(NamedTuple):
    """A format of compressed data."""

    name: str
    magic: bytes  # a pattern of its first bytes
    open: Callable[..., Any]  # a file that compresses into an open one
    # decompresses one of several streams; None: `open` reads all of them
    stream: Callable[[], Any] | None = None


def _gzip_file(file: BinaryIO, mode: str) -> gzip.GzipFile:
    # without name and time, so that equal lines give equal files
    return gzip.GzipFile(filename="", mode=mode, fileobj=file, mtime=0)


# by the endings of their names
COMPRESSED = {
    ".gz": Compression("gzip", b"\x1f\x8b", _gzip_file),
    ".xz": Compression("xz", b"\xfd7zXZ\0", lzma.LZMAFile, lzma.LZMADecompressor),
    ".bz2": Compression("bzip2", BZIP2, bz2.BZ2File, bz2.BZ2Decompressor),
}


def plain_name(path: Path) -> str:
    """The name of a file without the ending of a compressed one."""
    return path.stem if path.suffix in COMPRESSED else path.name


def compressed(
    file: BinaryIO, path: Path
) -> contextlib.AbstractContextManager[BinaryIO]:
    """A file that compresses into an open one if the name of `path` ends in `.gz`,
    `.xz` or `.bz2`, otherwise the open file.
    """
    if path.suffix not in COMPRESSED:
        return contextlib.nullcontext(file)
    writer: contextlib.AbstractContextManager[BinaryIO]
    writer = COMPRESSED[path.suffix].open(file, "wb")
    return writer


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file, or STANDARD_INPUT, to read its bytes, which are decompressed if the
    first ones say so.

    Raises ValueError, also while it is read in the block, for damaged compressed data.
    """
    is_input = path == STANDARD_INPUT
    with open(0 if is_input else path, "rb", closefd=not is_input) as file:
        start = file.peek(1)
        for each in COMPRESSED.values():
            if re.match(each.magic, start):
                with _unpacked(file, each, path) as unpacked:
                    yield unpacked
                return
        yield file


@contextlib.contextmanager
def _unpacked(file: BinaryIO, kind: Compression, path: Path) -> Iterator[Any]:
    try:
        streams = _Streams(file, kind.stream) if kind.stream else kind.open(file, "rb")
        # whose lines are read faster than those of a GzipFile
        with io.BufferedReader(streams) as unpacked:
            yield unpacked
    except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # of the disk, not of the data
        raise ValueError(
            f"{kind.name} data must be complete. Received: {path}: {error}."
        ) from error
