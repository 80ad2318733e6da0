"""What is to be exported, and the interface of a format.

`ExportPlan.check` raises for everything that is known before the model is loaded: what
the format cannot express, and a folder that must not be replaced.
"""

from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import check_name
from t2tlite.files.own_files import own
from t2tlite.files.same_file import is_within
from t2tlite.programs.export.verification import (
    OpenedExport,
    check_equal,
    opened_run,
)
from t2tlite.run_folder import RunFolder

Facts = Mapping[str, object]  # what readme.md.jinja needs beside the record
RECORD = "export.json"  # a folder with this record is an export


@dataclasses.dataclass(frozen=True)
class ExportPlan:
    """A run's model, and how and where it is to be exported."""

    run: RunFolder
    checkpoint: str
    format: ExportFormat
    decoding: DecodeHParams  # the export's, if it includes the search
    export_dir: str | Path
    overwrite: bool

    @property
    def folder(self) -> Path:
        """The folder of the export; of a link, the one that it leads to."""
        return Path(self.export_dir).expanduser().resolve()

    @property
    def work(self) -> Path:
        """The folder beside it in which the export is written."""
        return own(self.folder.with_name(f".{self.folder.name}.exporting"))

    def check(self) -> None:
        """Creates the folder's parent.

        Raises ValueError if the format cannot express the model or an option, or the
        folder must not be replaced, and OSError if its parent cannot be made.
        """
        check_name(self.folder)
        self.format.check(self)
        self.check_replaceable()
        self.folder.parent.mkdir(parents=True, exist_ok=True)

    def check_replaceable(self) -> None:
        """Raises ValueError unless the folder is new, empty, or an export that may be
        overwritten; and is apart from the run.
        """
        folder = self.folder
        inputs = self.run.path, Path(self.checkpoint).parent
        holds_run = any(is_within(path, folder) for path in inputs)
        if holds_run or any(is_within(folder, path) for path in self.run.folders()):
            raise ValueError(
                "export_dir must be apart from the run's own files. Received:"
                f" {folder}. Name another folder, such as {self.run.path / 'export'}."
            )
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return
        is_export = (folder / RECORD).is_file()
        if not (is_export and self.overwrite):
            held = "an export" if is_export else "something else"
            raise ValueError(
                "export_dir must be a new folder, or with overwrite that of another"
                f" export. Received: {folder}, which holds {held}. Name another folder."
            )
        own(Path(self.export_dir).expanduser())  # its export would be replaced


@dataclasses.dataclass(frozen=True)
class ExportFormat(abc.ABC):
    """A format of exports: writes any model that it can express, and reads it back.

    A subclass is a frozen dataclass, whose fields are the options of the format.
    """

    name: ClassVar[str]
    supported: ClassVar[frozenset[str]]  # fields of DecodeHParams

    def check(self, plan: ExportPlan) -> None:
        """Raises ValueError that names what the format cannot express, or the package
        that it needs.
        """
        check_supported(f"format={self.name}", self.supported, plan.decoding)

    @abc.abstractmethod
    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> Facts:
        """Writes the export into an empty folder."""

    @abc.abstractmethod
    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> OpenedExport:
        """Reads back what was written."""

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        decoding: DecodeHParams,
        sentences: list[str],
    ) -> str:
        """Compares the output of what was written with the model's.

        Returns what was compared. Raises ValueError if it differs.
        """
        export = self.open(model, folder, decoding)
        check_equal(opened_run(model, decoding), export, sentences)
        return "n-best lists and log-probabilities"
