"""Groups of flags that several commands share, and functions that return what their
values name: a run, data, a pipeline.
"""

import dataclasses
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from t2tlite import checked_fields, registry
from t2tlite.bin.flags import Flags, require
from t2tlite.checked_fields import checked_field, optional_field
from t2tlite.config import DecodeHParams
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.engine import TENSORFLOW
from t2tlite.programs.export.ctranslate2_engine import QUANTIZATIONS
from t2tlite.programs.runs.training import DATA_DIR, DataToMake, open_data
from t2tlite.run_folder import RunFolder

RUNS_DIR = "runs"  # holds the runs whose --output_dir is not given


def _decode_help() -> str:
    """Returns the help text of --decode_hparams, which explains each field."""
    lines = ["How to decode: field=value,... Parsers have other defaults."]
    for field in dataclasses.fields(DecodeHParams):
        meaning = checked_fields.facts_of(field).meaning
        lines.append(f"{field.name}={field.default}: {meaning}")
    return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class PackageFlags(Flags):
    """Where the user's problems, tasks, metrics and hparam sets are."""

    t2t_usr_dir: str | None = optional_field(
        str, "Folder of a Python package with problems, tasks, metrics, hparam sets."
    )


@dataclasses.dataclass(frozen=True)
class RegistryFlags(PackageFlags):
    """Whether the registered names are listed."""

    registry_help: bool = checked_field(
        False, "Print every problem and hparam set, one per line, and exit."
    )


@dataclasses.dataclass(frozen=True)
class TensorFlowFlags(PackageFlags):
    """How much TensorFlow reports, and the user's package, which may have models."""

    verbosity: str = checked_field(
        "warning",
        "TensorFlow's log level: debug, info, warning or error.",
        choices=("debug", "info", "warning", "error"),
    )


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
    model: str | None = optional_field(
        str, "Name of the model, by default the hparam set's."
    )
    output_dir: str | None = optional_field(
        str,
        "Folder of a run, by default runs/PROBLEM-HPARAMS_SET.",
    )


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
        " step; or a path, DIR/model.ckpt-N or ./NAME.",
    )


@dataclasses.dataclass(frozen=True)
class DecodingFlags(CheckpointFlags):
    """How a run decodes."""

    decode_hparams: str = checked_field("", _decode_help())
    quantization: str | None = optional_field(
        str,
        "How CTranslate2 stores the weights: float32 (the default); int8, which is"
        " smaller and faster and changes some translations; or float16.",
        choices=QUANTIZATIONS,
    )


@dataclasses.dataclass(frozen=True)
class EngineFlags(DecodingFlags):
    """What decodes, and how."""

    engine: str = checked_field(
        TENSORFLOW,
        "Decoding engine: tensorflow, or ctranslate2, which is faster on CPUs and needs"
        " pip install 't2tlite[ctranslate2]'.",
    )
    glossary: str | None = optional_field(
        str, "File of lines source TAB target: terms that translations must have."
    )


@dataclasses.dataclass(frozen=True)
class DataFlags(ProblemFlags):
    """Where data is."""

    data_dir: str | None = optional_field(
        str,
        "Folder of t2t-datagen's data; by default data, or where a run's data was.",
    )


@dataclasses.dataclass(frozen=True)
class MakeDataFlags(PackageFlags, DataFlags):
    """How the data is made."""

    tmp_dir: str | None = optional_field(
        str, "Folder of raw files, in which downloads are kept too."
    )
    num_processes: int | None = optional_field(
        int, "CPU cores that encode text; by default all."
    )
    # the options of the problem that were given
    options: Mapping[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class TrainingDataFlags(MakeDataFlags):
    """Data to train on."""

    generate_data: bool = checked_field(
        False, "Make the data first, as t2t-datagen does, unless it is complete."
    )


@dataclasses.dataclass(frozen=True)
class BeamFlags(Flags):
    """Which machines do the work."""

    beam_runner: str | None = optional_field(
        str,
        "Runner of Apache Beam whose workers do the work: DirectRunner, DaskRunner,"
        " FlinkRunner, ... They must see the folders under the same paths. Needs pip"
        " install 't2tlite[beam]', or 't2tlite[dask]' for Dask.",
    )
    beam_options: str = checked_field(
        "", "Options of Apache Beam, in quotes, such as '--direct_num_workers=8'"
    )


def run_folder(flags: RunFlags) -> RunFolder:
    """Returns the run that --output_dir names, or --problem and --hparams_set. Raises
    ValueError without either.
    """
    if flags.model:
        registry.check_model(flags.model)
    path = flags.output_dir
    if path is None and flags.problem and flags.hparams_set:
        path = f"{RUNS_DIR}/{flags.problem}-{flags.hparams_set}"
    if not path:
        raise ValueError("--output_dir must be given, or --problem and --hparams_set.")
    return RunFolder(path)


def run_folders(flags: RunFlags) -> list[RunFolder]:
    """Returns the runs that --output_dir names, separated by commas; a comma may also
    be part of the name of one folder.
    """
    first = run_folder(flags)
    if first.path.exists():
        return [first]
    return [RunFolder(name.strip()) for name in str(first).split(",")]


def existing_run(flags: RunFlags) -> RunFolder:
    """Returns the run as `run_folder`. Raises FileNotFoundError if there is none, and
    ValueError if its hparams are damaged.
    """
    run = run_folder(flags)
    run.hparams()
    return run


def hparam_changes(flags: TrainingFlags) -> str:
    """Returns the changes of --hparams, and those of flags named like an hparam."""
    changes = flags.hparams
    for name in ("model", "global_batch_tokens"):
        value = getattr(flags, name, None)
        if value is not None:
            changes = checked_fields.merged_changes(changes, f"{name}={value}")
    return changes


def data_folder(flags: MakeDataFlags) -> Path:
    """Returns the folder that --data_dir names, by default `data`."""
    return Path(flags.data_dir or DATA_DIR)


def data_to_make(flags: MakeDataFlags, pipeline: Pipeline | None = None) -> DataToMake:
    """Returns the data that the flags describe. Raises ValueError if no problem is
    named, or the problem or one of its options is unknown.
    """
    require(problem=flags.problem)
    problem = registry.get_problem(flags.problem or "", **flags.options)
    folder = data_folder(flags)
    return DataToMake(problem, folder, flags.tmp_dir, flags.num_processes, pipeline)


def training_data(flags: TrainingDataFlags) -> Dataset | DataToMake:
    """Returns data that exists, or with --generate_data the data to make.

    Raises ValueError for options of data that is not made, FileNotFoundError
    with the command that makes the data if there is none, and ValueError for an unknown
    problem, or if none of several is named.
    """
    if flags.generate_data:
        return data_to_make(flags)
    if flags.options:
        raise ValueError(
            f"--{' and --'.join(flags.options)} must be given with --generate_data."
        )
    command = f"{_datagen_command(flags)} (or add --generate_data to this command)"
    return open_data(data_folder(flags), flags.problem, command)


def _datagen_command(flags: MakeDataFlags) -> str:
    """Returns the command that makes the problem's data, with PATH for those that only
    the user knows.
    """
    name = flags.problem or "PROBLEM"
    problem = registry.problem_classes().get(name.removesuffix("_rev"))
    values = {"problem": name, "data_dir": str(data_folder(flags))}
    values |= dict.fromkeys(getattr(problem, "needed_flags", ()), "PATH")
    if flags.tmp_dir:
        values["tmp_dir"] = flags.tmp_dir
    if flags.t2t_usr_dir:
        values["t2t_usr_dir"] = flags.t2t_usr_dir
    words = [f"--{flag}={value}" for flag, value in values.items()]
    return shlex.join(["t2t-datagen", *words])


def beam_pipeline(flags: BeamFlags) -> Pipeline | None:
    """Returns the pipeline of --beam_runner, or None without the flag. Raises
    ValueError for --beam_options alone.
    """
    if flags.beam_options:
        require(beam_runner=flags.beam_runner)
    if not flags.beam_runner:
        return None
    return Pipeline(flags.beam_runner, flags.beam_options)
