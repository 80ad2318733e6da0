"""What tests of bulk decoding share: a file and a split, each decoded in three windows;
interruptions.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

SENTENCES = [
    "red cat sees dog",
    "",
    "fish likes mouse",
    "black horse bites bird today",
    "dog hears dog often",
    "cat",
]
LINES = [SENTENCES[i % 6] for i in range(11)]


def interrupt():
    raise KeyboardInterrupt


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def names(folder):
    """The files of a folder and its subfolders."""
    files = filter(Path.is_file, folder.rglob("*"))
    return sorted(str(path.relative_to(folder)) for path in files)


def contents(folder):
    """The files of a folder, with times left out of the records."""
    files = {}
    for name in names(folder):
        files[name] = (folder / name).read_bytes()
        if name.endswith(".json"):
            files[name] = {**json.loads(files[name]), "seconds": None}
    return files


class Case:
    """A file or a split, which is decoded in three windows.

    `decode` is called with the job and the target.
    """

    def __init__(
        self,
        decode: Callable,
        open_job: Callable,
        target: Path,
        windows: list[int],
        calls: SimpleNamespace,
    ) -> None:
        self.decode = decode
        self.open_job = open_job
        self.target = target
        self.folder = target.parent
        self.windows = windows
        self.calls = calls

    def __call__(
        self, changes: str = "", target: Path | None = None, **job: object
    ) -> str | None:
        target = target or self.target
        target.parent.mkdir(parents=True, exist_ok=True)
        return self.decode(self.open_job(changes, **job), target)

    def interrupted(self, window, *arguments, **options) -> None:
        """Decodes until a window is begun or, with "score", scoring."""
        self.calls.stop = {window: interrupt}
        with pytest.raises(KeyboardInterrupt):
            self(*arguments, **options)

    def whole(self, *arguments, **options) -> dict:
        """The files that are written without an interruption; they are then removed."""
        self(*arguments, **options)
        files = contents(self.folder)
        shutil.rmtree(self.folder)
        self.calls.windows.clear()
        return files

    def windows_done(self) -> int:
        """The number of windows in OUT.part, whose first line is a header."""
        return Path(f"{self.target}.part").read_bytes().count(b"\n") - 1
