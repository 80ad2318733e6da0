"""Compressed files: which names say so, and reading and writing them."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, cast

# the endings of compressed files, which are read and written -> the format's name
COMPRESSED = {".gz": "gzip", ".xz": "xz", ".bz2": "bzip2"}
# of one stream of data
Decompressor = lzma.LZMADecompressor | bz2.BZ2Decompressor
DECOMPRESSORS: dict[str, Callable[[], Decompressor]] = {
    ".xz": lzma.LZMADecompressor,
    ".bz2": bz2.BZ2Decompressor,
}
BLOCK = 1 << 16  # bytes of compressed data
XZ_PADDING = b"\0"  # may be between streams


def is_compressed(path: Path) -> bool:
    """Whether the name of a file says that it is compressed."""
    return path.suffix in COMPRESSED


def plain_name(path: Path) -> str:
    """The name of a file without the ending of a compressed one."""
    return path.stem if is_compressed(path) else path.name


def compressed(
    file: BinaryIO, path: Path
) -> contextlib.AbstractContextManager[BinaryIO]:
    """A file that compresses into an open one if the name of `path` ends in `.gz`,
    `.xz` or `.bz2`, otherwise the open file.
    """
    if path.suffix == ".gz":
        # without name and time, so that equal lines give equal files
        return gzip.GzipFile(filename="", mode="wb", fileobj=file, mtime=0)  # type: ignore[return-value]
    if path.suffix == ".xz":
        return lzma.LZMAFile(file, "wb")  # type: ignore[return-value]
    if path.suffix == ".bz2":
        return bz2.BZ2File(file, "wb")  # type: ignore[return-value]
    return contextlib.nullcontext(file)


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """Opens a file to read its bytes, decompressed if its name says so.

    Raises ValueError, also while it is read in the block, for damaged compressed data.
    """
    with open(path, "rb") as file:
        if not is_compressed(path):
            yield file
            return
        kind = COMPRESSED[path.suffix]
        if not file.peek(1):
            raise ValueError(
                f"A {path.suffix} file must be {kind} data. Received: {path}, which is"
                " empty. Download it again."
            )
        try:
            with _decompressed(file, path.suffix) as unpacked:
                # whose lines are read faster than those of a GzipFile
                yield cast(BinaryIO, io.BufferedReader(unpacked))
        except (EOFError, OSError, zlib.error, lzma.LZMAError) as error:
            if isinstance(error, OSError) and error.errno is not None:
                raise  # of the disk, not of the data
            raise ValueError(
                f"A {path.suffix} file must be complete {kind} data. Received: {path}:"
                f" {error}. Download it again, or remove {path.suffix} from the name"
                " if it is plain text."
            ) from error


def _decompressed(file: BinaryIO, ending: str) -> io.RawIOBase | gzip.GzipFile:
    """A file that decompresses an open one, whose name has this ending."""
    if ending == ".gz":
        return gzip.GzipFile(fileobj=file)
    return _Decompressed(file, DECOMPRESSORS[ending])


class _Decompressed(io.RawIOBase):
    """Decompresses xz or bzip2 data, several streams one after the other.

    LZMAFile and BZ2File end without an error if a second stream is damaged.
    """

    def __init__(self, file: BinaryIO, start: Callable[[], Decompressor]) -> None:
        self._file = file
        self._start = start
        self._stream = start()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fills the buffer with the next bytes; returns their number, 0 at the end."""
        while True:
            data = b""
            if self._stream.eof:
                data = self._next_stream()
                if not data:
                    return 0
                self._stream = self._start()
            elif self._stream.needs_input:
                data = self._file.read(BLOCK)
                if not data:
                    raise EOFError("it ends in the middle of a stream")
            unpacked = self._stream.decompress(data, len(buffer))
            if unpacked:
                buffer[: len(unpacked)] = unpacked
                return len(unpacked)

    def _next_stream(self) -> bytes:
        """The start of the stream after the present one, or nothing at the end."""
        data = self._stream.unused_data.lstrip(XZ_PADDING)
        while not data:
            block = self._file.read(BLOCK)
            if not block:
                break
            data = block.lstrip(XZ_PADDING)
        return data
