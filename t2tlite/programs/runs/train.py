"""Trains a model in a new run directory, or resumes the run in one; `run_folder.py`
describes its files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import os
import platform
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import file_sha256
from t2tlite.files.checkpoint_paths import remove_unfinished, step_of
from t2tlite.files.lock import only_process
from t2tlite.machine import check_not_forked
from t2tlite.programs.runs.checkpoint_choice import after_training
from t2tlite.programs.runs.dev_decoder import DevScorer, SampleDecoder
from t2tlite.programs.runs.start_checks import check_new, check_resumed
from t2tlite.programs.runs.training import Trained, Training, dataset_of
from t2tlite.registry import get_model
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import Environment, TrainedWith
from t2tlite.training.checkpoints import reason_of
from t2tlite.training.cluster import find_cluster
from t2tlite.training.cost import training_flops
from t2tlite.training.evaluation import Evaluation
from t2tlite.training.loop import train
from t2tlite.training.loop_config import Hooks, LoopConfig, TrainingSetup
from t2tlite.training.run_cost import cost_line
from t2tlite.training.signals import Signals
from t2tlite.training.strategy import (
    device_lines,
    gpu_name,
    make_strategy,
    trains_on_gpu,
    with_dtype_policy,
)
from t2tlite.training.workers import (
    check_workers_agree,
    chief_first,
    is_chief,
    lost_worker_is_an_error,
    wait_for_workers,
)


def train_run(training: Training) -> Trained:
    """Trains a new run, or resumes the run in the folder. First says on which device,
    in which type, and whether XLA compiles. Of several workers, the chief makes the
    data before the others.

    Raises ValueError if another process trains in the directory, it holds another run,
    or the run to start from has another vocabulary; MemoryError if there is not enough
    memory; Interrupted if SIGINT, SIGTERM or SIGHUP comes before the last evaluation is
    recorded.
    """
    check_not_forked()
    folder = training.folder
    devices = training.devices
    machines = find_cluster(devices.cluster_resolver)
    replicas = make_strategy(devices.gpus, machines, devices.cpu_replicas)
    recorded = folder.hparams() if folder.checkpoints() else None
    for line in device_lines(training.hparams, replicas, recorded, devices.gpus):
        say(line)
    say(f"The run is in {folder}.")
    try:
        with lost_worker_is_an_error(replicas):
            # the other workers find the data that it makes in a shared folder
            with chief_first(replicas):
                dataset = dataset_of(training.data)
            evaluation = _train(training, dataset, replicas)
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(
            f"There is not enough memory ({reason_of(error)}). Lower batch_size and"
            " raise accumulate_steps by the same factor: training stays the same."
        ) from error
    summary = [f"Trained {dataset.name}: dev {evaluation}. The run is in {folder}."]
    summary += after_training(folder, training.config.early_stopping_evals > 0)
    if costs := folder.costs():
        summary.append(cost_line(costs[-1]))
    return Trained(evaluation, summary)


def _train(
    training: Training, dataset: Dataset, strategy: tf.distribute.Strategy
) -> Evaluation:
    """Trains on a dataset in the folder, which no other process may use meanwhile."""
    folder = training.folder
    config = training.config
    with Signals() as signals, contextlib.ExitStack() as locked:
        if is_chief(strategy):
            locked.enter_context(only_process(folder.path, "train a run"))
            remove_unfinished(folder.path)
            remove_unfinished(folder.best_folder)
        else:
            folder = RunFolder(folder.path, writes=False)
        recorded = folder.hparams() if folder.checkpoints() else None
        hparams = training.hparams.for_replicas(strategy.num_replicas_in_sync)
        hparams = with_dtype_policy(hparams, strategy, recorded)
        check_workers_agree(strategy, _settings(folder, dataset, hparams, config))
        trained_with = TrainedWith(
            random_seed=config.random_seed,
            replicas=strategy.num_replicas_in_sync,
            global_batch_tokens=hparams.batch_tokens(strategy.num_replicas_in_sync),
        )
        warm_start = None
        if recorded:
            trained_with = check_resumed(
                folder, dataset, hparams, trained_with, training.warm_start_from
            )
        else:  # nothing has been learned yet, so everything may change
            warm_start = check_new(dataset, hparams, training.warm_start_from)
            trained_with = dataclasses.replace(trained_with, warm_start_from=warm_start)

        seed = config.random_seed
        setup = _setup(dataset, hparams, folder, strategy, warm_start, seed)
        engine = TensorFlowEngine(setup.model, hparams.jit_compile)
        decoder = TextDecoder(engine, dataset.encoders, dataset.manifest)
        score = DevScorer(setup, decoder).score if training.eval_bleu else None
        samples = SampleDecoder(setup, dataset).samples if folder.writes else None
        command = training.command
        begin = functools.partial(_begin, setup, dataset, trained_with, command)
        evaluation = train(setup, config, Hooks(score, samples, begin), signals)
        wait_for_workers(strategy)
        return evaluation


def _setup(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    strategy: tf.distribute.Strategy,
    warm_start: str | None,
    seed: int,
) -> TrainingSetup:
    """Builds the model and opens the data."""
    sizes = dataset.manifest.vocabulary_sizes
    lengths = dataset.manifest.training.mean_lengths
    corpora = dataset.manifest.corpora
    dev_sets = {}
    for split, name in dataset.manifest.dev_sets.items():
        dev_sets[name] = dataset.store(split)
    with strategy.scope():
        model = get_model(hparams.model).from_hparams(hparams, *sizes, seed)
    return TrainingSetup(
        strategy=strategy,
        model=model,
        train_store=dataset.store(*corpora),
        corpus_pairs=[corpus.pairs for corpus in corpora.values()],
        dev_sets=dev_sets,
        run=folder,
        vocabulary_sizes=sizes,
        flops_per_token=training_flops(hparams, sizes[1], *lengths) / sum(lengths),
        warm_start=warm_start,
    )


def _begin(
    setup: TrainingSetup,
    dataset: Dataset,
    trained_with: TrainedWith,
    command: Sequence[str],
) -> None:
    """Writes what the run is trained with."""
    entries = dataset.manifest.vocabulary_entries()
    vocabularies = [dataset.folder / entry.file for entry in entries]
    run = setup.run
    run.create(setup.model.hparams, dataset.manifest, vocabularies)
    run.write_flags(command)
    run.write_environment(_environment(setup.strategy))
    run.write_trained_with(trained_with)


def _settings(
    folder: RunFolder, dataset: Dataset, hparams: HParams, config: LoopConfig
) -> dict[str, Any]:
    """The settings that all workers must share, by name."""
    # they decide when to stop
    records = {
        "evaluations": folder.evaluations_file,
        "best evaluation": folder.best_file,
    }
    digests = {}
    for name, path in records.items():
        digests[name] = file_sha256(path)[:12] if path.is_file() else "none"
    checkpoints = folder.checkpoints()
    return {
        "newest checkpoint": step_of(checkpoints[-1]) if checkpoints else 0,
        **digests,
        "t2tlite": t2tlite.__version__,
        "problem": dataset.name,
        "vocabulary": dataset.manifest.vocabulary_sha256[:12],
        "data": dataset.manifest.pairs_sha256[:12],
        **dataclasses.asdict(config),
        **dataclasses.asdict(hparams),
    }


def _environment(strategy: tf.distribute.Strategy) -> Environment:
    """The software and hardware of this process."""
    cpu = f"{platform.machine()} CPU, {os.cpu_count()} cores"
    return Environment(
        t2tlite=t2tlite.__version__,
        tensorflow=tf.__version__,
        keras=keras.__version__,
        numpy=np.__version__,
        python=platform.python_version(),
        device=gpu_name() if trains_on_gpu(strategy) else cpu,
        replicas=strategy.num_replicas_in_sync,
    )
