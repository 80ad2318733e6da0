"""Whether two paths lead to the same file, so that no command writes over a file that
it reads.
"""

import os
import stat
from collections.abc import Iterable
from pathlib import Path

STANDARD_INPUT_NUMBER = 0
STANDARD_OUTPUT_NUMBER = 1

# a name in messages, such as "--decode_to_file=out.de", with the path or the number of
# an open file
NamedFile = tuple[str, str | Path | int]


def check_not_overwritten(
    outputs: Iterable[NamedFile], inputs: Iterable[NamedFile]
) -> None:
    """Raises ValueError if an output is the same file as an input or another output.

    Files are compared, not paths: links, other spellings of a path and redirected
    standard input are recognised. Devices and pipes may be read and written.
    """
    files = {_identity(path): name for name, path in inputs}
    files.pop(None, None)
    for name, path in outputs:
        identity = _identity(path)
        if identity in files:
            raise ValueError(
                "A command must not write over a file that it uses. Received:"
                f" {name}, the same file as {files[identity]}."
            )
        if identity:
            files[identity] = name


def is_within(path: Path, folder: Path) -> bool:
    """Whether a path, existing or not, is a folder or inside it, links followed."""
    path = Path(os.path.realpath(path))
    return any(is_same_folder(parent, folder) for parent in (path, *path.parents))


def is_same_folder(first: Path, second: Path) -> bool:
    """Whether two paths lead to one folder, which need not exist."""
    return _identity(first) == _identity(second)


def _identity(path: str | Path | int) -> object:
    """What paths to one file have in common: device and inode, or the real path of a
    file that does not exist; None of a device or a pipe.
    """
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return os.path.realpath(str(path))
    if stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode):
        return status.st_dev, status.st_ino
    return None
