"""What tests of t2t-decoder's output share: a file and a split, each decoded in three
windows; interruptions.
"""

import json
import shutil
from pathlib import Path

from tiny_run import last_of_each

from t2tlite.bin import t2t_decoder

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
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    """The files of a folder, with times left out of the records."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {
        name: (
            {**json.loads(content), "seconds": None}
            if name.endswith(".json")
            else content
        )
        for name, content in files.items()
    }


class Case:
    """t2t-decoder for a file or a split, which is decoded in three windows."""

    def __init__(
        self,
        run: Path,
        folder: Path,
        target: Path,
        windows: list[int],
        flags: list[str],
    ) -> None:
        self.run, self.folder, self.target, self.windows, self.flags = (
            run,
            folder,
            target,
            windows,
            flags,
        )

    def __call__(self, *more: str, target: Path | None = None) -> int:
        output = [f"--decode_to_file={target}"] if target else []
        return t2t_decoder.main(
            last_of_each(f"--output_dir={self.run}", *self.flags, *output, *more)
        )

    @property
    def part(self) -> Path:
        """The unfinished output."""
        return Path(f"{self.target}.part")

    def whole(self, *more: str) -> dict:
        """The files that are written without an interruption; they are then removed."""
        assert self(*more) == 0
        files = contents(self.folder)
        shutil.rmtree(self.folder)
        return files


def interrupted(run, calls, window, *arguments, **options):
    """Whether a command ends as after Ctrl-C, which comes before a window."""
    calls.stop = {window: interrupt}
    return run(*arguments, **options) == 130
