"""What a run is trained with, made from names and values: what t2t-trainer does after
it has read its flags, and `t2tlite.train` does too. TensorFlow is not needed.
"""

import dataclasses
import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from t2tlite import registry
from t2tlite.checked_fields import CheckedFields, checked_field, optional_field
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.data.generate import Generated, generate
from t2tlite.data.problem import Problem
from t2tlite.files.checkpoint_paths import checkpoint_at, step_of
from t2tlite.files.same_file import is_same_folder
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import OnEvaluation
from t2tlite.schedules import SCHEDULES
from t2tlite.training.loop_config import LoopConfig

DATA_DIR = "data"  # if no folder of data is given
TRANSFORMER_BASE = "transformer_base"  # the set whose values are HParams' defaults


@dataclasses.dataclass(frozen=True)
class DataToMake:
    """Data that is made before it is used, unless it is complete."""

    problem: Problem
    data_dir: str | Path
    tmp_dir: str | Path | None = None
    num_processes: int | None = None  # CPU cores; None: all
    pipeline: Pipeline | None = None


@dataclasses.dataclass(frozen=True)
class TrainingOptions(CheckedFields):
    """What a run is trained from, on which workers and CPUs, and which checkpoint is
    the best.
    """

    worker_cpu: int = checked_field(
        1,
        "Replicas on the CPU, which share its cores: faster for small models. The batch"
        " grows with their number unless --global_batch_tokens is given.",
        low=1,
    )
    eval_bleu: bool = checked_field(
        False,
        "Decode dev at each evaluation, and choose the best checkpoint by BLEU (or"
        " F1).",
    )
    cluster_resolver: str = checked_field(
        "tf_config",
        "Where a worker reads the list of workers: tf_config, the variable TF_CONFIG;"
        " slurm, the tasks of srun's job step.",
        choices=("tf_config", "slurm"),
    )
    warm_start_from: str | None = optional_field(
        str,
        "Run folder or checkpoint whose weights a new run starts from, without"
        " --hparams_set also its hparams, with the learning rate where it stopped.",
    )


@dataclasses.dataclass(frozen=True)
class Training:
    """What is trained, on which data, how, and for how long."""

    folder: RunFolder
    data: Dataset | DataToMake
    hparams: HParams
    config: LoopConfig
    command: Sequence[str]  # t2t-trainer and its flags, recorded in flags.txt
    options: TrainingOptions
    on_evaluation: OnEvaluation | None = None
    gpus: int | None = None  # of this machine; None: all, or the CPU without any


def make_data(data: DataToMake) -> Generated:
    """Makes the data of a problem, unless it is complete. Raises as `generate`, and
    ValueError if the problem's task is unknown, before hours of work.
    """
    importlib.import_module("t2tlite.tasks")
    registry.get_task(data.problem.task)
    return generate(**vars(data))


def dataset_of(data: Dataset | DataToMake) -> Dataset:
    """Returns the data, which is made now if it has to be."""
    if isinstance(data, Dataset):
        return data
    generated = make_data(data)
    say(str(generated))
    return generated.dataset


def open_data(data_dir: Path, problem: str | None, command: str) -> Dataset:
    """Opens complete data; `command` makes it. Raises as `open_dataset`, and ValueError
    if there is neither such data nor such a problem.
    """
    try:
        return open_dataset(data_dir, problem or None, command)
    except FileNotFoundError:
        if problem:
            registry.get_problem(problem)  # an unknown name is the first mistake
        raise


def data_of_run(folder: RunFolder) -> tuple[str | None, str | None]:
    """The problem of a run that resumes, and the folder of its data if that is where it
    was.
    """
    if not folder.checkpoints() or not folder.has_manifest():
        return None, None
    manifest = folder.manifest()
    is_there = manifest.data_dir and Path(manifest.data_dir).is_dir()
    return manifest.name, manifest.data_dir if is_there else None


def check_folders(
    folder: RunFolder,
    data_dir: Path,
    problem: str | None,
    warm_start_from: str | None,
) -> None:
    """Raises ValueError if the run cannot be in its folder, or is an imported one,
    which has no optimizer state; and FileNotFoundError if a new run has no checkpoint
    to start from.
    """
    folder.check_path()
    check_apart(folder.path, data_dir, problem)
    if folder.has_manifest() and folder.manifest().imported_from:
        raise ValueError(
            f"{folder}, an imported run, has no optimizer. Use another --output_dir,"
            f" with --warm_start_from={folder}."
        )
    if warm_start_from and not folder.checkpoints():
        checkpoint_at(warm_start_from)


def check_apart(output_dir: Path, data_dir: Path, problem: str | None) -> None:
    """Raises ValueError if a run would be in the folder of the data."""
    of_problem = data_dir / (problem or "").removesuffix("_rev")
    if any(is_same_folder(output_dir, folder) for folder in (data_dir, of_problem)):
        raise ValueError(
            f"--output_dir must be apart from the data. Received: {output_dir} twice."
        )


def run_hparams(folder: RunFolder, warm_start_from: str | None) -> HParams | None:
    """Returns the hparams of the run to resume, or of the run to start from; None for a
    new run.
    """
    if folder.checkpoints():
        return folder.hparams()
    if not warm_start_from:
        return None
    hparams = warm_start_hparams(warm_start_from)
    constant = f"learning_rate_constant={hparams.learning_rate_constant:g}"
    say(f"Without --hparams_set: the hparams of {warm_start_from}, with {constant}.")
    return hparams


def warm_start_hparams(path: str) -> HParams:
    """The hparams of the run to start from, with a learning rate that rises only to
    where that run stopped.

    A new run warms up from step 0; the peak of the old schedule would undo what the
    weights have learned. The old run's corpus_weights are left out, since they belong
    to its data. `path` is a run or one of its checkpoints.
    """
    hparams = run_of(path).hparams()
    constant = SCHEDULES[hparams.learning_rate_schedule].continued_from(
        step_of(checkpoint_at(path)),
        hparams.learning_rate_warmup_steps,
        hparams.learning_rate_constant,
    )
    return dataclasses.replace(
        hparams, learning_rate_constant=float(f"{constant:.4g}"), corpus_weights=""
    )


def set_and_changes(
    name: str | None,
    hparams: HParams,
    folder: RunFolder,
    warm_start_from: str | None,
) -> tuple[str, str]:
    """The values of --hparams_set and --hparams that make these hparams. Without the
    name of a set, it is that of the run to resume or to start from, or
    transformer_base.
    """
    if not name:
        run = folder
        if warm_start_from and not folder.checkpoints():
            run = run_of(warm_start_from)
        name = run.flags().get("hparams_set")
    if name not in registry.list_hparams():
        name = TRANSFORMER_BASE
    return name, ",".join(hparams.changes(registry.get_hparams(name)))


def training_of(
    data: str | Dataset,
    hparams: str | HParams | Mapping[str, object],
    output_dir: str | Path,
    data_dir: str | Path | None,
    train_steps: int | None,
    eval_bleu: bool,
    warm_start_from: str | Path | None,
    on_evaluation: OnEvaluation | None,
    loop: Mapping[str, Any],
) -> Training:
    """What `t2tlite.train`, which explains the arguments and the errors, trains."""
    if not isinstance(data, str | Dataset):
        raise TypeError(
            "data must be what t2tlite.prepare returned, or a problem's name. Received:"
            f" {data!r:.80}."
        )
    name = data if isinstance(data, str) else data.name
    folder = RunFolder(output_dir)
    if isinstance(data, Dataset):
        data_dir = data.folder.parent
    elif data_dir is None:
        data_dir = data_of_run(folder)[1] or DATA_DIR
    data_dir = Path(data_dir)
    start = None if warm_start_from is None else str(warm_start_from)
    options = TrainingOptions(eval_bleu=eval_bleu, warm_start_from=start)
    check_folders(folder, data_dir, name, start)
    changed = _changed_hparams(hparams, folder, start)
    steps = changed.train_steps if train_steps is None else train_steps
    config = LoopConfig(train_steps=steps, **loop)
    if isinstance(data, str):
        command = f"t2tlite.prepare({name!r}, {str(data_dir)!r})"
        data = open_data(data_dir, name, command)
    given = hparams if isinstance(hparams, str) else None
    hparams_set, changes = set_and_changes(given, changed, folder, start)
    flags = {
        "problem": name,
        "data_dir": data_dir,
        "output_dir": folder,
        "hparams_set": hparams_set,
        "hparams": changes,
        **vars(options),
        **vars(config),
    }
    command_line = ["t2t-trainer"]
    for flag, value in flags.items():
        if value is not None:
            command_line.append(f"--{flag}={value}")
    return Training(folder, data, changed, config, command_line, options, on_evaluation)


def _changed_hparams(
    hparams: str | HParams | Mapping[str, Any],
    folder: RunFolder,
    warm_start_from: str | None,
) -> HParams:
    """The hparams of a set, an object, or changes to those of the run."""
    if isinstance(hparams, HParams):
        return hparams
    if isinstance(hparams, str):
        named: HParams = registry.get_hparams(hparams)
        return named
    if not isinstance(hparams, Mapping):
        raise TypeError(
            "hparams must be a set's name, HParams or a dict of changes. Received:"
            f" {hparams!r:.80}."
        )
    base = run_hparams(folder, warm_start_from) or HParams()
    return dataclasses.replace(base, **hparams)
