"""The folder of an export: it appears complete or not at all, and replaces only another
export.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from t2tlite.files.lock import LOCK, only_process
from t2tlite.files.records import Count, write_record
from t2tlite.files.same_file import is_within
from t2tlite.run_folder import RunFolder

RECORD = "export.json"


@dataclasses.dataclass(frozen=True)
class ExportRecord:
    """What an export was made from; a folder with this record is an export."""

    format: str
    t2tlite: str  # the version that made it
    problem: str
    checkpoint: str
    step: Count
    decode_hparams: dict[str, bool | int | float | str]
    quantization: str


class ExportFolder:
    """Where an export goes; it is written in a folder beside it, `.NAME.exporting`, and
    then moved there.
    """

    def __init__(self, path: str | Path, overwrite: bool = False) -> None:
        # of a link, the folder that it leads to
        self.path = Path(path).expanduser().resolve()
        self.overwrite = overwrite
        self._work = self.path.with_name(f".{self.path.name}.exporting")

    def check(self) -> None:
        """Raises ValueError if the folder may not be replaced, and OSError if it cannot
        be written.
        """
        self._check_empty()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.path.parent).close()
        except OSError as error:
            raise OSError(
                f"--export_dir={self.path} cannot be written: {error}. Name another"
                " folder."
            ) from error

    def check_apart_from(self, run: RunFolder, checkpoint: str) -> None:
        """Raises ValueError if an export here would replace the run that it is made
        from, or that run's checkpoints or outputs.
        """
        read = run.path, Path(checkpoint).parent
        if any(is_within(folder, self.path) for folder in read):
            raise ValueError(
                "--export_dir must not hold the run that is exported. Received:"
                f" --export_dir={self.path}, with the run {run}. Name another folder."
            )
        for folder in run.folders():
            if is_within(self.path, folder):
                raise ValueError(
                    f"{folder} is for a run's own files. Received:"
                    f" --export_dir={self.path}. Name another folder, such as"
                    f" {run.path / 'export'}."
                )

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """An empty folder, which becomes the export when the block ends, and is removed
        after an exception.

        Raises as `check`, and ValueError if another process is exporting to the same
        folder.
        """
        self.check()
        with only_process(self._work, "export to a folder"):
            old, new = self._work / "old", self._work / "new"
            self._restore(old)
            self._clear()
            self._check_empty()
            try:
                new.mkdir()
                yield new
                if self.path.exists():
                    self.path.rename(old)
                new.rename(self.path)
            finally:
                self._restore(old)
                self._clear()

    def _check_empty(self) -> None:
        if not self.path.exists() or (
            self.path.is_dir() and not any(self.path.iterdir())
        ):
            return
        if not (self.path / RECORD).is_file():
            raise ValueError(
                "--export_dir must be a new folder, or with --overwrite that of"
                f" another export. Received: {self.path}, which holds no export. Name"
                " another folder."
            )
        if not self.overwrite:
            raise ValueError(
                f"--export_dir must be a new folder. Received: {self.path}, which holds"
                " an export. Name another folder, or add --overwrite to replace it."
            )

    def _restore(self, old: Path) -> None:
        """Puts the earlier export back if it was moved aside, and the new one did not
        get to its place.
        """
        if old.exists() and not self.path.exists():
            old.rename(self.path)

    def _clear(self) -> None:
        for path in self._work.iterdir():
            if path.name != LOCK:
                shutil.rmtree(path)


def write_export_record(
    folder: Path, record: ExportRecord, paragraphs: Sequence[str]
) -> None:
    """Writes export.json and README.md."""
    write_record(folder / RECORD, record)
    lines = [
        f"# {record.problem}, step {record.step:,}, as {record.format}",
        *paragraphs,
    ]
    (folder / "README.md").write_text("\n\n".join(lines) + "\n", encoding="utf-8")
