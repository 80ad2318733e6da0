"""Compressed files: read if their first bytes say so, written if their names do."""

import bz2
import contextlib
import functools
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
UNPACKED = 1 << 20  # at most, at once: a block may become gigabytes
GZIP_HEADER = 31  # what zlib calls gzip's format


class Compression(NamedTuple):
    """A format of compressed data."""

    name: str
    magic: bytes  # a pattern of its first bytes
    writer: Callable[..., Any]  # makes a file that compresses into an open one
    decompressor: Callable[[], Any]  # of one stream


class _Streams(io.RawIOBase):
    """Decompresses data, several streams one after the other.

    LZMAFile and BZ2File end without an error if a second stream is damaged.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], Any]) -> None:
        self._file = file
        self._start = start
        self._stream = start()
        self._unpacked = io.BytesIO()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer with the next bytes; returns their number, 0 at the end."""
        while not (count := self._unpacked.readinto(buffer)):
            stream = self._stream
            # what is beyond the bound waits in zlib's tail, or in the stream
            data = getattr(stream, "unconsumed_tail", b"") or stream.unused_data
            if not data and (stream.eof or getattr(stream, "needs_input", True)):
                data = self._file.read(BLOCK)
                if not data and stream.eof:
                    return 0
                if not data:
                    raise EOFError("it ends in the middle of a stream")
            if stream.eof:
                self._stream = self._start()
            self._unpacked = io.BytesIO(self._stream.decompress(data, UNPACKED))
        return count


# by the endings of their names
COMPRESSED = {
    ".gz": Compression(
        "gzip",
        rb"\x1f\x8b",
        # without name and time, so that equal lines give equal files
        lambda file: gzip.GzipFile("", "wb", fileobj=file, mtime=0),
        functools.partial(zlib.decompressobj, GZIP_HEADER),
    ),
    ".xz": Compression(
        "xz",
        rb"\xfd7zXZ\0",
        functools.partial(lzma.LZMAFile, mode="wb"),
        lzma.LZMADecompressor,
    ),
    ".bz2": Compression(
        "bzip2",
        rb"BZh[1-9](1AY&SY|\x17rE8P\x90)",  # the second of an empty file
        functools.partial(bz2.BZ2File, mode="wb"),
        bz2.BZ2Decompressor,
    ),
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
    kind = COMPRESSED.get(path.suffix)
    return kind.writer(file) if kind else contextlib.nullcontext(file)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file, or STANDARD_INPUT, to read its bytes, which are decompressed if the
    first ones say so.

    Raises ValueError, also while it is read in the block, for damaged compressed data.
    """
    is_input = path == STANDARD_INPUT
    with open(0 if is_input else path, "rb", closefd=not is_input) as file:
        start = file.peek(1)
        for kind in COMPRESSED.values():
            if not re.match(kind.magic, start):
                continue
            try:
                yield io.BufferedReader(_Streams(file, kind.decompressor))
            except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
                if isinstance(error, OSError) and error.errno is not None:
                    raise  # of the disk, not of the data
                raise ValueError(
                    f"{kind.name} data must be complete. Received: {path}: {error}."
                ) from error
            return
        yield file
