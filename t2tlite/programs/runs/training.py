"""A training and its data as records, and the data made or opened."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Sequence
from pathlib import Path

from t2tlite import registry
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import Dataset, open_dataset
from t2tlite.data.generate import Generated, generate
from t2tlite.data.problem import Problem
from t2tlite.run_folder import RunFolder
from t2tlite.training.loop_config import LoopConfig
from t2tlite.vocabularies.encoders import reading_notes


@dataclasses.dataclass(frozen=True)
class DataToMake:
    """Data that is made before it is used, unless it is complete."""

    problem: Problem
    data_dir: str | Path
    tmp_dir: str | Path | None = None
    num_processes: int | None = None  # CPU cores; None: all
    pipeline: Pipeline | None = None


@dataclasses.dataclass(frozen=True)
class Training:
    """What is trained, on which data and devices, and for how long."""

    folder: RunFolder
    data: Dataset | DataToMake
    hparams: HParams
    config: LoopConfig
    command: Sequence[str]  # t2t-trainer and its flags, recorded in flags.txt
    # decode dev at each evaluation, and choose the best checkpoint by BLEU (or F1)
    eval_bleu: bool = False
    # run or checkpoint whose weights a new run starts from; None: random
    warm_start_from: str | None = None
    gpus: int | None = None  # of this machine; None: all, or the CPU without any
    cpu_replicas: int = 1  # that share the cores of the CPU, without a GPU
    cluster_resolver: str = "tf_config"  # how the workers are found


def make_data(data: DataToMake) -> Generated:
    """Makes the data of a problem, unless it is complete. Raises as `generate`, and
    ValueError if the problem's task is unknown.
    """
    importlib.import_module("t2tlite.tasks")
    # raises if there is none, before hours of work
    registry.get_task(data.problem.task)
    return generate(
        data.problem, data.data_dir, data.tmp_dir, data.num_processes, data.pipeline
    )


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
        dataset = open_dataset(data_dir, problem or None, command)
    except FileNotFoundError:
        if problem:
            registry.get_problem(problem)  # an unknown name is the first mistake
        raise
    for note in reading_notes(dataset.encoders, dataset.manifest.options):
        say(note)
    return dataset
