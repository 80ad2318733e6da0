"""Makes data and trains a run from names and values: what t2t-datagen and t2t-trainer
do after they have read their flags, and `t2tlite.prepare` and `t2tlite.train` do too.

Importing this module does not load TensorFlow; training does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from t2tlite import registry
from t2tlite.checked_fields import checked
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.data.generate import Generated, generate
from t2tlite.data.problem import Problem
from t2tlite.files.checkpoint_paths import checkpoint_at
from t2tlite.files.same_file import is_same_folder
from t2tlite.machine import check_not_forked
from t2tlite.quiet import import_tensorflow
from t2tlite.run_folder import RunFolder
from t2tlite.training.loop_config import LoopConfig, LoopOptions
from t2tlite.vocabularies.encoders import reading_notes

if TYPE_CHECKING:
    from t2tlite.programs.runs.train import TrainingOptions
    from t2tlite.training.evaluation import Evaluation

TRANSFORMER_BASE = "transformer_base"  # the set whose values are HParams' defaults


@dataclasses.dataclass(frozen=True)
class Devices:
    """The devices to train on."""

    gpus: int | None = None  # of this machine; None: all, or the CPU without any
    cpu_replicas: int = 1  # that share the cores of the CPU, without a GPU
    cluster_resolver: str = "tf_config"  # how the workers are found


class Trained(NamedTuple):
    """What a training that ended has to say."""

    evaluation: Evaluation  # the last
    summary: list[str]  # lines for the user


def make_data(
    problem: Problem,
    data_dir: str | Path,
    tmp_dir: str | Path | None = None,
    num_processes: int | None = None,
    pipeline: Pipeline | None = None,
) -> Generated:
    """Makes the data of a problem, unless it is complete. Raises as `generate`, and
    ValueError if the problem's task is unknown.
    """
    registry.get_task(problem.task)  # raises if there is none, before hours of work
    return generate(problem, data_dir, tmp_dir, num_processes, pipeline)


def check_apart(output_dir: Path, data_dir: Path, problem: str | None) -> None:
    """Raises ValueError if a run would be in the folder of the data."""
    folders = [data_dir]
    if problem:
        folders.append(data_dir / problem.removesuffix("_rev"))
    for folder in folders:
        if is_same_folder(output_dir, folder):
            raise ValueError(
                "--output_dir and the data must be in different folders. Received:"
                f" --output_dir={output_dir}, the same folder as {folder}, which is"
                " that of --data_dir. Name another --output_dir."
            )


def run_hparams(folder: RunFolder, warm_start_from: str | None) -> HParams | None:
    """Returns the hparams of the run to resume, or of the run to start from; None for a
    new run.
    """
    if folder.checkpoints():
        return folder.hparams()
    if not warm_start_from:
        return None
    import_tensorflow()
    from t2tlite.programs.runs.train import warm_start_hparams

    hparams = warm_start_hparams(warm_start_from)
    say(
        f"Without --hparams_set: the hparams of {warm_start_from}, with"
        f" learning_rate_constant={hparams.learning_rate_constant:g}, so that the rate"
        " rises to its value when that run stopped."
    )
    return hparams


def train_on(
    devices: Devices,
    open_data: Callable[[], Dataset],
    hparams: HParams,
    folder: RunFolder,
    config: LoopConfig,
    options: TrainingOptions,
) -> Trained:
    """Trains a new run on the devices, or resumes the run in `folder`. First says on
    which device, in which type, and whether XLA compiles.

    `open_data` is called by one worker after the other, the chief first. Raises as
    `train_run`, and MemoryError if there is not enough memory.
    """
    import tensorflow as tf

    from t2tlite.programs.runs import checkpoint_choice, train
    from t2tlite.training import checkpoints, cluster, run_cost, strategy, workers

    check_not_forked()
    machines = cluster.find_cluster(devices.cluster_resolver)
    replicas = strategy.make_strategy(devices.gpus, machines, devices.cpu_replicas)
    recorded = folder.hparams() if folder.checkpoints() else None
    for line in strategy.device_lines(hparams, replicas, recorded, devices.gpus):
        say(line)
    say(f"The run is in {folder}.")
    try:
        with workers.lost_worker_is_an_error(replicas):
            # the other workers find the data that it makes in a shared folder
            with workers.chief_first(replicas):
                dataset = open_data()
            evaluation, _ = train.train_run(
                dataset, hparams, folder, config, replicas, options
            )
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(
            f"There is not enough memory ({checkpoints.reason_of(error)}). Lower"
            " batch_size and raise accumulate_steps by the same factor: training stays"
            " the same."
        ) from error
    summary = [f"Trained {dataset.name}: dev {evaluation}. The run is in {folder}."]
    stops_early = config.early_stopping_evals > 0
    summary += checkpoint_choice.after_training(folder, stops_early)
    if costs := folder.costs():
        gpu = strategy.gpu_name() if strategy.trains_on_gpu(replicas) else ""
        summary.append(run_cost.cost_line(costs[-1], gpu))
    return Trained(evaluation, summary)


def train_by_name(
    problem: str | Problem | Dataset,
    hparams: str | HParams | Mapping[str, object],
    output_dir: str | Path,
    data_dir: str | Path,
    train_steps: int | None,
    eval_bleu: bool,
    warm_start_from: str | Path | None,
    loop: Mapping[str, object],
) -> None:
    """The work of `t2tlite.train`, which explains the arguments and the errors."""
    folder = RunFolder(output_dir)
    folder.check_path()
    known = [field.name for field in dataclasses.fields(LoopOptions)]
    for argument in loop:
        if argument not in known:
            others = ("data_dir", "train_steps", "eval_bleu", "warm_start_from")
            raise TypeError(
                f"train has no argument {argument!r}."
                f" {registry.did_you_mean(argument, [*known, *others])}"
            )
    settings = LoopOptions.of(loop)
    eval_bleu = checked("eval_bleu", bool, eval_bleu)
    name, data_dir = _data_named(problem, data_dir)
    check_apart(folder.path, data_dir, name)
    start = None if warm_start_from is None else str(warm_start_from)
    if start and not folder.checkpoints():
        checkpoint_at(start)  # raises if there is none
    changed = _changed_hparams(hparams, folder, start)
    steps = changed.train_steps if train_steps is None else train_steps
    config = LoopConfig(train_steps=steps, **vars(settings))
    dataset = problem if isinstance(problem, Dataset) else _opened(name, data_dir)
    import_tensorflow()
    from t2tlite.programs.runs.train import TrainingOptions

    flags = {
        "problem": name,
        "data_dir": data_dir,
        "output_dir": folder,
        **_hparams_flags(hparams, changed, folder),
        "eval_bleu": str(eval_bleu).lower(),
        **vars(config),
    }
    if start:
        flags["warm_start_from"] = start
    command = [f"--{flag}={value}" for flag, value in flags.items()]
    options = TrainingOptions(eval_bleu, start, ["t2t-trainer", *command])
    with _quiet_tensorflow():
        trained = train_on(Devices(), lambda: dataset, changed, folder, config, options)
    for line in trained.summary:
        say(line)


@contextlib.contextmanager
def _quiet_tensorflow() -> Iterator[None]:
    """Lets TensorFlow report nothing below a warning during the block."""
    logger = logging.getLogger("tensorflow")
    level = logger.level
    logger.setLevel(max(level, logging.WARNING))
    try:
        yield
    finally:
        logger.setLevel(level)


def _data_named(
    problem: str | Problem | Dataset, data_dir: str | Path
) -> tuple[str, Path]:
    """The problem's name, and the folder that its data's folder is in."""
    if isinstance(problem, Dataset):
        return problem.name, problem.folder.parent
    if isinstance(problem, Problem):
        return problem.name() + ("_rev" if problem.reverse else ""), Path(data_dir)
    if not isinstance(problem, str):
        raise TypeError(
            "problem must be the data that t2tlite.prepare returned, a problem, or the"
            f" name of one. Received: {problem!r:.80}."
        )
    return problem, Path(data_dir)


def _opened(name: str, data_dir: Path) -> Dataset:
    """Opens complete data. Raises ValueError if there is none, and no such problem."""
    try:
        command = f"t2tlite.prepare({name!r}, {str(data_dir)!r})"
        dataset = open_dataset(data_dir, name, command)
    except FileNotFoundError:
        registry.get_problem(name)  # an unknown name is the first mistake to report
        raise
    for note in reading_notes(dataset.encoders, dataset.manifest.options):
        say(note)
    return dataset


def _changed_hparams(
    hparams: str | HParams | Mapping[str, object],
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
            "hparams must be the name of a set, HParams, or a dict of changes."
            f" Received: {hparams!r:.80}."
        )
    base = run_hparams(folder, warm_start_from) or HParams()
    base.check_names(hparams)
    return dataclasses.replace(base, **hparams)  # type: ignore[arg-type]


def _hparams_flags(
    given: str | HParams | Mapping[str, object], hparams: HParams, folder: RunFolder
) -> dict[str, str]:
    """The flags that make these hparams: the given set, that of the run to resume, or
    transformer_base, and the changes to it.
    """
    name = given if isinstance(given, str) else ""
    if not name and folder.checkpoints():
        name = folder.flags().get("hparams_set", "")
    if name not in registry.list_hparams():
        name = TRANSFORMER_BASE
    changes = []
    for field, (new, _) in hparams.diff(registry.get_hparams(name)).items():
        changes.append(f"{field}={new}")
    return {"hparams_set": name, "hparams": ",".join(changes)}
