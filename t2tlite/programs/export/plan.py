"""What is to be exported, and the interface of a format.

`ExportPlan.check` raises for everything that is known before the model is loaded: what
the format cannot express, and a folder that must not be replaced or cannot be written.
"""

from __future__ import annotations

import abc
import dataclasses
import tempfile
from pathlib import Path
from typing import ClassVar

from t2tlite.config import DecodeHParams, HParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import check_name
from t2tlite.files.own_files import own
from t2tlite.files.same_file import is_within
from t2tlite.programs.export.verification import (
    BLANK,
    LOG_PROB_TOLERANCE,
    OpenedExport,
    check_export,
    check_hypotheses,
    count_equal,
    opened_run,
)
from t2tlite.run_folder import RunFolder

RECORD = "export.json"  # a folder with this record is an export


@dataclasses.dataclass(frozen=True)
class ExportPlan:
    """A run's model, and how and where it is to be exported."""

    run: RunFolder
    checkpoint: str
    hparams: HParams
    manifest: RunManifest
    format: ExportFormat
    decoding: DecodeHParams  # the export's defaults, if it includes the search
    quantization: str  # of the weights; "" leaves them as they are
    languages: str  # such as en-de; "" for those that the run records
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
        folder must not be replaced, and OSError if it cannot be written.
        """
        check_name(self.folder)
        self.format.check(self)
        self._check_apart_from_run()
        self.check_replaceable()
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            tempfile.TemporaryFile(dir=self.folder.parent).close()
        except OSError as error:
            raise OSError(
                f"export_dir={self.folder} cannot be written: {error}. Name another"
                " folder."
            ) from error

    def check_replaceable(self) -> None:
        """Raises ValueError unless the folder is new, empty, or an export that may be
        overwritten, not a link to one.
        """
        folder = self.folder
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return
        if not (folder / RECORD).is_file():
            raise ValueError(
                "export_dir must be a new folder, or with overwrite that of"
                f" another export. Received: {folder}, which holds no export. Name"
                " another folder."
            )
        if not self.overwrite:
            raise ValueError(
                f"export_dir must be a new folder. Received: {folder}, which holds"
                " an export. Name another folder, or set overwrite to replace it."
            )
        own(Path(self.export_dir).expanduser())  # its export would be replaced

    def _check_apart_from_run(self) -> None:
        """Raises ValueError if the export would replace the run, or that run's
        checkpoints or outputs.
        """
        for source in (self.run.path, Path(self.checkpoint).parent):
            if is_within(source, self.folder):
                raise ValueError(
                    "export_dir must not hold the run that is exported. Received:"
                    f" export_dir={self.folder}, with the run {self.run}. Name"
                    " another folder."
                )
        for folder in self.run.folders():
            if is_within(self.folder, folder):
                raise ValueError(
                    f"{folder} is for a run's own files. Received:"
                    f" export_dir={self.folder}. Name another folder, such as"
                    f" {self.run.path / 'export'}."
                )


class ExportFormat(abc.ABC):
    """A format of exports: writes any model that it can express, and reads it back."""

    name: ClassVar[str]
    quantizes: ClassVar[bool] = False  # whether it stores weights in other types
    names_languages: ClassVar[bool] = False  # whether it records language codes

    def check(self, plan: ExportPlan) -> None:
        """Raises ValueError that names what the format cannot express, or the package
        that it needs.
        """
        if plan.quantization and not self.quantizes:
            raise ValueError(
                "quantization goes with format=ctranslate2 or argos. Received:"
                f" quantization={plan.quantization} with format={self.name}, which"
                " keeps the weights as they are. Leave it out."
            )
        if plan.languages and not self.names_languages:
            raise ValueError(
                "languages goes with format=argos. Received:"
                f" languages={plan.languages} with format={self.name}, which does not"
                " record them. Leave it out."
            )

    @abc.abstractmethod
    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        """Writes the export into an empty folder; returns the README's text on its
        content and use.
        """

    @abc.abstractmethod
    def open(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> OpenedExport:
        """Reads back what was written."""

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        plan: ExportPlan,
        sentences: list[str],
    ) -> str:
        """Compares the output of what was written with the model's.

        Returns what was compared. Raises ValueError if it differs.
        """
        run = opened_run(model, plan.decoding)
        export = self.open(model, folder, plan)
        check_export(run, export, sentences)
        blank = list(filter(model.source_encoder.is_blank, BLANK))
        check_hypotheses(blank, run.decode(blank), export.decode(blank))
        return "n-best lists and log-probabilities"

    def verify_translations(
        self,
        model: TextDecoder,
        folder: Path,
        plan: ExportPlan,
        sentences: list[str],
        exact: bool,
    ) -> str:
        """`verify` of a format whose program rounds and searches in its own way.

        If `exact`, greedy translations must equal the model's, and log-probabilities
        must be within LOG_PROB_TOLERANCE. Otherwise, and for beam search, equal
        translations are counted.
        """
        equal = []
        for beam_size in (1, plan.decoding.beam_size):
            options = dataclasses.replace(plan.decoding, beam_size=beam_size)
            run = opened_run(model, options)
            export = self.open(
                model, folder, dataclasses.replace(plan, decoding=options)
            )
            if exact and beam_size == 1:
                check_export(run, export, sentences, LOG_PROB_TOLERANCE)
                equal.append(len(sentences))
            else:
                equal.append(count_equal(run, export, sentences))
        return f"{equal[0]} greedy and {equal[1]} beam-search translations"
