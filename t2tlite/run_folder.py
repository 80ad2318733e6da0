"""The run directory: every file in it, its name and its format.

RUN/hparams.json       the model and its training
RUN/manifest.json      the manifest of the data, the direction, and where the data was
RUN/vocab.*            the vocabulary, or source's and target's
RUN/flags.txt          the last command line that trained it, a file for --flagfile
RUN/environment.json   the versions and the device that last trained it
RUN/training.json      seed, replicas and global batch of its training
RUN/evaluations.json   the metrics of each evaluation on dev during training
RUN/cost.json          time and floating-point operations of training so far
RUN/model.ckpt-N.*     checkpoints: the newest of the run
RUN/best/              the best checkpoint on dev, and its metrics in best.json
RUN/averaged/          the output of t2t-avg-checkpoints
RUN/decodes/           outputs of splits, see below
RUN/attention/         the output of t2t-attention
RUN/ctranslate2/       the model in CTranslate2's format
RUN/xla/               programs that XLA compiled for training
RUN/report.*           the output of t2t-report
RUN/events.*           TensorBoard

The output of a split is RUN/decodes/NAME.txt, line by line with its sources, NAME.src,
and references, NAME.ref (trees, NAME.gold); NAME.json has the scores. While it is
decoded, the file NAME.txt.part holds what is done (programs/bulk/part.py). NAME
is SPLIT.STEP, followed by what is not the default: the checkpoint's folder (with a hash
if that is outside), the number of runs in an ensemble with a hash of the others'
checkpoints, options and engine, such as
test.9000.averaged.beam_size=8,alpha=1.0,engine=ctranslate2,quantization=int8, or
test.9000.ensemble3-6f1a92c0.
"""

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from t2tlite.config import HParams
from t2tlite.data.manifest import MANIFEST, RunManifest, holds_data
from t2tlite.files.atomic_file import (
    check_name,
    copy_file,
    text_sha256,
    write_text,
)
from t2tlite.files.checkpoint_paths import (
    AVERAGED,
    BEST,
    SAVING,
    checkpoint_at,
    list_checkpoints,
    step_of,
)
from t2tlite.files.own_files import own
from t2tlite.files.records import read_record, write_record
from t2tlite.files.text_files import read_lines
from t2tlite.run_records import (
    CostFile,
    DecodeRecord,
    DevEvaluation,
    EvaluationsFile,
    Identity,
    RunCost,
    RunFile,
)
from t2tlite.vocabularies.encoders import TextEncoder, open_encoders

# the files of a run itself, in its folder, best and averaged; outputs differ in name
OWN_FILE = re.compile(
    r"(hparams|manifest|environment|training|evaluations|cost|best)\.json"
    r"|flags\.txt|vocab\..*|model\.ckpt-.*"
)
F = TypeVar("F", bound=RunFile)
COPY_AGAIN = "Copy it again from where the run was trained."
REWRITTEN = "Delete it; training writes it again."


class RunFolder:
    """A run directory. Methods that read a file raise a ValueError if the file is
    damaged; a path is refused as by `check_name`.

    With `writes` false, on workers other than the chief, methods that write do nothing.
    """

    def __init__(self, path: str | Path, *, writes: bool = True) -> None:
        self.writes = writes
        check_name(path)
        self.path = path = Path(path).expanduser()
        self._hparams = path / "hparams.json"

    def __str__(self) -> str:
        return str(self.path)

    def own(self, name: str) -> Path:
        """A file or folder that t2tlite makes in the run, by its path from there.
        Raises ValueError if that leads through a link.
        """
        path = self.path
        for part in name.split("/"):
            path = own(path / part)
        return path

    @property
    def best_folder(self) -> Path:
        return self.own(BEST)

    @property
    def averaged_folder(self) -> Path:
        return self.own(AVERAGED)

    def decoded_file(self, name: str, ending: str = "txt") -> Path:
        """A file of a decoding: its outputs, or by another ending its sources,
        references or record.
        """
        return self.own(f"decodes/{name}.{ending}")

    # the model and its data

    def exists(self) -> bool:
        return self._hparams.is_file()

    def hparams(self) -> HParams:
        """The hparams of the run; FileNotFoundError if the directory holds no run."""
        if not self.exists():
            raise FileNotFoundError(
                "The run must be a folder that t2t-trainer made."
                f" Received: {self}, which has no hparams.json."
            )
        if b'"symbol_modality_num_shards"' in self._hparams.read_bytes():
            raise ValueError(
                f"{self} is a run of tensor2tensor. Import it: t2t-import"
                f" --t2t_checkpoint={self} ..."
            )
        # before hparams.json had a version, it was written without one
        kind = dict[str, Any]
        values = read_record(self._hparams, kind, COPY_AGAIN, unversioned=True)
        try:
            return HParams(**values)
        except ValueError as error:
            raise ValueError(f"{self._hparams} is damaged: {error}") from error

    def manifest(self) -> RunManifest:
        """The manifest of the run; FileNotFoundError if there is none."""
        if not self.has_manifest():
            raise FileNotFoundError(f"A run needs its {MANIFEST}. {self} has none.")
        return read_record(self.path / MANIFEST, RunManifest, COPY_AGAIN)

    def has_manifest(self) -> bool:
        return (self.path / MANIFEST).is_file()

    def identity(self) -> Identity:
        """What the run is a run of, without the seed; a run without a manifest may have
        any data.
        """
        manifest = self.manifest() if self.has_manifest() else None
        return Identity.of(manifest, self.hparams())

    def encoders(self) -> tuple[TextEncoder, TextEncoder]:
        """The vocabularies of source and target; raises FileNotFoundError or ValueError
        as `open_encoders`.
        """
        vocabularies = self.manifest().vocabularies
        return open_encoders(self.path, *vocabularies, advice=COPY_AGAIN)

    def vocabulary_flag(self) -> str:
        """The flag of t2t-datagen that makes data with the run's vocabulary."""
        entries = self.manifest().vocabulary_entries()
        files = [str(self.path / entry.file) for entry in entries]
        return f"--vocab_file={','.join(files)}"

    def own_files(self) -> list[Path]:
        """The files that make up the run: what commands read of it, except outputs."""
        files: list[Path] = []
        for folder in (self.path, self.best_folder, self.averaged_folder):
            files += folder.glob("*")
        return [file for file in files if OWN_FILE.fullmatch(file.name)]

    def folders(self) -> list[Path]:
        """The folders in a run that t2tlite makes and replaces."""
        names = (BEST, AVERAGED, SAVING, "decodes", "attention", "ctranslate2", "xla")
        return [self.own(name) for name in names]

    def create(
        self, hparams: HParams, manifest: RunManifest, vocabularies: Sequence[Path]
    ) -> None:
        """Writes everything that decoding needs except a checkpoint.

        `vocabularies` are the files to copy, in the order of
        `manifest.vocabulary_entries()`. Raises OSError if a file cannot be written.
        """
        if not self.writes:
            return
        self.path.mkdir(parents=True, exist_ok=True)
        entries = manifest.vocabulary_entries()
        for entry, source in zip(entries, vocabularies, strict=True):
            copy_file(source, self.path / entry.file)
        write_record(self.path / MANIFEST, manifest)
        write_record(self._hparams, hparams)

    def check_path(self) -> None:
        """Raises ValueError if the path is a file, or a folder that holds data itself
        or in a folder of its own; or if best or averaged is a link.
        """
        self.folders()  # raises
        if self.exists() or not self.path.exists():
            return
        fault = "" if self.path.is_dir() else "is a file"
        for folder in (self.path, *self.path.glob("*")):
            if folder.is_dir() and holds_data(folder):
                fault = "holds data"
        if fault:
            raise ValueError(
                "--output_dir must be a folder of its own. Received:"
                f" {self}, which {fault}."
            )

    # how it was trained

    def write_flags(self, command: Sequence[str]) -> None:
        """Records the command line for --flagfile: the program as a comment, then a
        flag on each line.
        """
        lines = "".join(f"{' '.join(word.splitlines())}\n" for word in command)
        if self.writes:
            write_text(self.own("flags.txt"), f"# {lines}")

    def command(self) -> list[str]:
        """The command line that trained the run last; empty if it is not recorded."""
        path = self.path / "flags.txt"
        if not path.is_file():
            return []
        text = path.read_text(encoding="utf-8", errors="replace")
        return text.removeprefix("# ").splitlines()

    def flags(self) -> dict[str, str]:
        """The flags of that command line: {"hparams_set": "transformer_base", ...}."""
        lines = "\n".join(self.command())
        return dict(re.findall(r"^--(\w+)=?(.*)", lines, re.MULTILINE))

    def read(self, kind: type[F]) -> F | None:
        """The record of a kind that has a `file`; None if the run does not have it."""
        try:
            return read_record(self.path / kind.file, kind, REWRITTEN)
        except FileNotFoundError:
            return None

    def write(self, record: RunFile) -> None:
        """Writes a record of a kind that has a `file`."""
        if self.writes:
            write_record(self.own(record.file), record)

    def evaluations(self) -> list[DevEvaluation]:
        """The recorded evaluations on dev, oldest first; empty if there are none."""
        record = self.read(EvaluationsFile)
        return list(record.evaluations) if record else []

    def costs(self) -> list[RunCost]:
        """The cost of training at each checkpoint, oldest first; empty if nothing was
        counted.
        """
        record = self.read(CostFile)
        return list(record.costs) if record else []

    def best(self) -> DevEvaluation | None:
        """The evaluation of the best checkpoint on dev, or None."""
        return self.read(DevEvaluation)

    def checkpoints(self) -> list[str]:
        """The newest checkpoints of the run, oldest first."""
        return list_checkpoints(self.path)

    # its outputs

    def write_decode_record(self, record: DecodeRecord) -> None:
        write_record(self.decoded_file(record.name, "json"), record)

    def decode_record(self, name: str) -> DecodeRecord | None:
        """The record of a decoding; None if there is none."""
        path = self.decoded_file(name, "json")
        try:
            record = read_record(path, DecodeRecord, "Decode the split again.")
        except FileNotFoundError:
            return None
        return dataclasses.replace(record, name=name)

    def decode_name(
        self,
        split: str,
        checkpoint: str,
        changes: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> str:
        """The name of the record of a decoding with a checkpoint and options that are
        not the default, such as "beam_size=8". `others` are the checkpoints of the
        other runs of an ensemble.

        The name of a checkpoint outside the run has its folder and a hash of the path,
        since each run has a folder `best`.
        """
        name = f"{split}.{step_of(checkpoint)}"
        folder = Path(checkpoint).parent.resolve()
        run = self.path.resolve()
        if folder != run:
            name += f".{folder.name}"
        if run not in (folder, folder.parent):
            name += f"-{_digest([folder])}"
        if others:
            paths = [Path(other).resolve() for other in others]
            name += f".ensemble{len(others) + 1}-{_digest(paths)}"
        if changes:
            name += f".{','.join(changes)}"
        return name

    def decode_records(self) -> tuple[list[DecodeRecord], list[str]]:
        """The recorded decodings, newest first, and a message for each record that
        cannot be read.
        """
        records = []
        complaints = []
        paths = sorted((self.path / "decodes").glob("*.json"))
        paths.sort(key=lambda path: path.stat().st_mtime, reverse=True)
        for path in paths:
            try:
                if record := self.decode_record(path.stem):
                    records.append(record)
            except (OSError, ValueError) as error:
                complaints.append(str(error))
        return records, complaints

    def decoded_lines(self, record: DecodeRecord, ending: str = "txt") -> list[str]:
        """The output for each sentence of a recorded decoding, or its source or
        reference, by the ending of the file.

        Raises OSError if there is no such file, and ValueError if it is not UTF-8 or
        has another number of lines, as an n-best list has.
        """
        path = self.decoded_file(record.name, ending)
        lines = list(read_lines(path))
        if len(lines) != record.sentences:
            raise ValueError(
                f"{path} must have {record.sentences:,} lines. Received: {len(lines)}."
            )
        return lines


def _digest(paths: Sequence[Path]) -> str:
    """A short hash of paths, for file names."""
    return text_sha256("\n".join(map(str, paths)))[:8]


def run_of(path: str | Path) -> RunFolder:
    """The run of a checkpoint, or of a folder such as RUN/best; FileNotFoundError
    without a checkpoint.
    """
    folder = Path(checkpoint_at(path)).parent
    return RunFolder(folder if RunFolder(folder).exists() else folder.parent)
