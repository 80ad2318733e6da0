"""Groups of flags that several commands share. Methods return what the values stand
for: a run, data, a pipeline, a loaded model.
"""

from __future__ import annotations

import dataclasses
import gc
import importlib
import os
import shlex
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from t2tlite import registry
from t2tlite.bin.flag_fields import CommandError, Flags, require
from t2tlite.checked_fields import checked_field, facts_of, optional_field
from t2tlite.config import DecodeHParams
from t2tlite.console import say
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.files.checkpoint_paths import checkpoint_files, find_checkpoint
from t2tlite.files.same_file import NamedFile
from t2tlite.machine import decoding_threads
from t2tlite.quiet import import_tensorflow

if TYPE_CHECKING:
    from t2tlite.data.dataset import Dataset
    from t2tlite.data.generate import Generated
    from t2tlite.programs.runs.translator import Translator
    from t2tlite.run_folder import RunFolder

DATA_DIR = "data"  # --data_dir if it is not given
RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given
DATAGEN_EXAMPLE = (
    "t2t-datagen --problem=grammar_ende; --registry_help lists the problems"
)
# TensorFlow's number of each of its log levels
LOG_LEVELS = {"debug": "0", "info": "0", "warning": "3", "error": "3"}


def _decode_help() -> str:
    """Returns the help text of --decode_hparams, which explains each field."""
    lines = ["How to decode: field=value,... Parsers have other defaults."]
    for field in dataclasses.fields(DecodeHParams):
        lines.append(f"{field.name}={field.default}: {facts_of(field).meaning}")
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class PackageFlags(Flags):
    """Where the user's problems, tasks and hparam sets are."""

    t2t_usr_dir: str | None = optional_field(
        str, "Folder of a Python package with problems, tasks and hparam sets."
    )


@dataclasses.dataclass(frozen=True)
class RegistryFlags(PackageFlags):
    """Whether the registered names are listed."""

    registry_help: bool = checked_field(
        False, "Print every problem and hparam set, one per line, and exit."
    )

    def information(self) -> str:
        return registry.registry_help() if self.registry_help else ""


@dataclasses.dataclass(frozen=True)
class TensorFlowFlags(Flags):
    """How much TensorFlow reports."""

    verbosity: str = checked_field(
        "warning",
        "TensorFlow's log level: debug or info, which show start-up messages; warning"
        " or error.",
        choices=tuple(LOG_LEVELS),
    )

    def set_log_level(self) -> None:
        """Hides TensorFlow's start-up messages unless the level is info or debug. Call
        before TensorFlow is imported.
        """
        os.environ["TF_CPP_MIN_LOG_LEVEL"] = LOG_LEVELS[self.verbosity]

    def load_tensorflow(self) -> None:
        """Imports TensorFlow, which takes seconds."""
        if "tensorflow" not in sys.modules:
            import_tensorflow()
            # neither garbage collection nor the end of the process looks through its
            # objects
            gc.freeze()
        import tensorflow as tf

        tf.get_logger().setLevel(self.verbosity.upper())


@dataclasses.dataclass(frozen=True)
class ProblemFlags(Flags):
    """Which problem."""

    problem: str | None = optional_field(
        str, "Name of the problem (--registry_help). NAME_rev swaps source and target."
    )


@dataclasses.dataclass(frozen=True)
class RunFlags(ProblemFlags):
    """Which run."""

    hparams_set: str | None = optional_field(
        str, "Name of the hparam set (--registry_help)."
    )
    model: str = checked_field(
        "transformer", "Name of the model, the only one.", choices=("transformer",)
    )
    output_dir: str | None = optional_field(
        str,
        "Folder of a run, by default runs/PROBLEM-HPARAMS_SET, named after --problem"
        " and --hparams_set.",
    )

    def run_folder(self) -> RunFolder:
        """Returns the run that --output_dir names, or --problem and --hparams_set.
        Raises CommandError without either.
        """
        from t2tlite.run_folder import RunFolder

        if self.output_dir is None and self.problem and self.hparams_set:
            return RunFolder(Path(RUNS_DIR) / f"{self.problem}-{self.hparams_set}")
        if not self.output_dir:
            raise CommandError(
                "--output_dir must be given, or --problem and --hparams_set for the run"
                f" in {RUNS_DIR}/PROBLEM-HPARAMS_SET."
            )
        return RunFolder(self.output_dir)


@dataclasses.dataclass(frozen=True)
class TrainingFlags(RunFlags):
    """What is trained, and on how many GPUs."""

    hparams: str = checked_field(
        "", "Changes to the hparam set, such as batch_size=2048,num_heads=4"
    )
    worker_gpu: int | None = optional_field(
        int, "Number of GPUs to use; by default all, or the CPU if there are none."
    )


@dataclasses.dataclass(frozen=True)
class CheckpointFlags(Flags):
    """Which checkpoint of the run."""

    checkpoint_path: str | None = optional_field(
        str,
        "Checkpoint of the run: newest (the default), best (on dev), averaged, or a"
        " step; or the path of a checkpoint, DIR/model.ckpt-N or ./NAME.",
    )

    def load_run(self, *folders: RunFolder) -> Translator:
        """Loads the model of a run, or the ensemble of several, and prints notes on the
        checkpoints. Raises as t2tlite.load does.
        """
        return _load_run(folders, self.checkpoint_path)

    def files_of_run(self, *folders: RunFolder) -> list[NamedFile]:
        """Returns the files of the runs that the command reads.

        Raises FileNotFoundError if there is no such checkpoint.
        """
        files: list[Path] = []
        for folder in folders:
            checkpoint = find_checkpoint(folder.path, self.checkpoint_path)
            files += [*folder.own_files(), *checkpoint_files(checkpoint)]
        return [(f"{file}, which is the run's", file) for file in files]


@dataclasses.dataclass(frozen=True)
class DecodingFlags(CheckpointFlags):
    """How a run decodes."""

    decode_hparams: str = checked_field("", _decode_help())
    quantization: str | None = optional_field(
        str,
        "How CTranslate2 stores the weights: float32 (the default), as they were"
        " trained; int8, which is smaller and faster and changes some translations; or"
        " float16, bfloat16, int16, int8_float32, int8_float16, int8_bfloat16.",
    )


@dataclasses.dataclass(frozen=True)
class EngineFlags(DecodingFlags):
    """What decodes, and how."""

    engine: str = checked_field(
        TENSORFLOW,
        "Decoding engine: tensorflow, or ctranslate2, which is faster on CPUs, starts"
        " sooner, and needs pip install 't2tlite[ctranslate2]'. In float32, its greedy"
        " translations and log-probabilities equal tensorflow's, and so do nearly all"
        " beam-search translations. The model is converted once, into RUN/ctranslate2.",
    )

    def load_run(self, *folders: RunFolder) -> Translator:
        return _load_run(
            folders,
            self.checkpoint_path,
            self.engine,
            self.quantization,
            decoding_threads(),
        )


@dataclasses.dataclass(frozen=True)
class DataFlags(ProblemFlags):
    """Where data is."""

    data_dir: str | None = optional_field(
        str,
        "Folder of t2t-datagen's data, with a folder for each problem. By default:"
        " data; to decode, average or report on a run, where its data was during"
        " training.",
    )

    def moved_data(self) -> Path | None:
        """Returns where a run's data is now, or None if it was not moved."""
        return Path(self.data_dir) if self.data_dir else None


@dataclasses.dataclass(frozen=True)
class MakeDataFlags(DataFlags, PackageFlags):
    """How the data is made."""

    tmp_dir: str | None = optional_field(
        str, "Folder of raw files, in which downloads are kept too."
    )
    num_processes: int | None = optional_field(
        int, "Processes that encode text; by default one per CPU core."
    )
    # the options of the problem that were given
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)

    def data_folder(self) -> Path:
        """Returns the folder that --data_dir names, by default `data`."""
        return Path(self.data_dir or DATA_DIR)

    def make_data(self, pipeline: Pipeline | None = None) -> Generated:
        """Makes the problem's data, unless it is complete."""
        from t2tlite.programs.runs.start import make_data

        require(DATAGEN_EXAMPLE, problem=self.problem)
        problem = registry.get_problem(self.problem or "", **self.options)
        importlib.import_module("t2tlite.tasks")
        return make_data(
            problem, self.data_folder(), self.tmp_dir, self.num_processes, pipeline
        )


@dataclasses.dataclass(frozen=True)
class TrainingDataFlags(MakeDataFlags):
    """Data to train on."""

    generate_data: bool = checked_field(
        False, "Make the data first, as t2t-datagen does, unless it is complete."
    )

    def check_data(self) -> None:
        """Raises, as `open_data`, if the data is missing and will not be made, or if
        the problem or one of its options is unknown.
        """
        if self.generate_data:
            require(problem=self.problem)
            registry.get_problem(self.problem or "", **self.options)
        else:
            self.open_data()

    def open_data(self) -> Dataset:
        """Opens the data, and makes it first if --generate_data is given.

        Raises CommandError for options of the data without --generate_data,
        FileNotFoundError with the command that makes the data if there is none, and
        ValueError for an unknown problem, or if none of several is named.
        """
        from t2tlite.data.dataset import open_dataset
        from t2tlite.vocabularies.encoders import reading_notes

        if self.generate_data:
            say(str(self.make_data()))
        elif self.options:
            given = ", ".join(f"--{name}" for name in self.options)
            raise CommandError(
                f"{given}: options of the data need --generate_data, or belong to"
                " t2t-datagen."
            )
        try:
            dataset = open_dataset(
                self.data_folder(), self.problem or None, self.datagen_command()
            )
        except FileNotFoundError as error:
            if self.problem:
                # an unknown name is the first mistake to report
                registry.get_problem(self.problem)
            raise FileNotFoundError(
                f"{error} Or add --generate_data to this command."
            ) from error
        if not self.generate_data:  # `make_data` reports them itself
            for note in reading_notes(dataset.encoders, dataset.manifest.options):
                say(note)
        return dataset

    def datagen_command(self) -> str:
        """Returns the command that makes the problem's data, with FOLDER and FILE for
        paths that only the user knows.
        """
        name = self.problem or "PROBLEM"
        given = {"problem": name, "data_dir": str(self.data_folder())}
        for flag in ("tmp_dir", "t2t_usr_dir"):
            if getattr(self, flag) is not None:
                given[flag] = getattr(self, flag)
        problem_class = registry.problem_classes().get(name.removesuffix("_rev"))
        for flag in getattr(problem_class, "needed_flags", ()):
            given.setdefault(flag, "FOLDER" if flag.endswith("_dir") else "FILE")
        words = [f"--{flag}={value}" for flag, value in given.items()]
        return shlex.join(["t2t-datagen", *words])


@dataclasses.dataclass(frozen=True)
class BeamFlags(Flags):
    """Which machines do the work."""

    beam_runner: str | None = optional_field(
        str,
        "Runner of an Apache Beam pipeline whose workers do the work: DirectRunner,"
        " DaskRunner, DataflowRunner, FlinkRunner, SparkRunner, ... They must see the"
        " folders under the same paths as this machine. Needs pip install"
        " 't2tlite[beam]', or 't2tlite[dask]' for Dask.",
    )
    beam_options: str = checked_field(
        "", "Options of Apache Beam, in quotes, such as '--direct_num_workers=8'"
    )

    def pipeline(self) -> Pipeline | None:
        """Returns the pipeline of --beam_runner, or None without the flag. Raises
        CommandError for --beam_options alone.
        """
        if self.beam_runner:
            return Pipeline(self.beam_runner, self.beam_options)
        if self.beam_options:
            raise CommandError(
                f"--beam_options go with --beam_runner. Received: {self.beam_options}"
                " alone."
            )
        return None


def _load_run(
    folders: Sequence[RunFolder],
    checkpoint_path: str | None,
    engine: str = TENSORFLOW,
    quantization: str | None = None,
    threads: int = 1,
) -> Translator:
    from t2tlite.programs.runs.checkpoint_choice import checkpoint_notes
    from t2tlite.programs.runs.load import load

    paths = tuple(folder.path for folder in folders)
    run = paths if len(paths) > 1 else paths[0]
    model = load(
        run, checkpoint_path, engine, quantization, report=say, threads=threads
    )
    checkpoints = model.checkpoint, *model.others
    for folder, checkpoint in zip(folders, checkpoints, strict=True):
        for note in checkpoint_notes(folder, checkpoint):
            say(note)
    return model
