"""Trains a model in a new run directory, or resumes the run in one; `run_folder.py`
describes its files.
"""

import contextlib
import dataclasses
import os
import platform
from importlib.metadata import version
from typing import Any

import tensorflow as tf

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.dataset import Dataset
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import file_sha256
from t2tlite.files.checkpoint_paths import checkpoint_at, remove_unfinished, step_of
from t2tlite.files.own_files import only_process
from t2tlite.machine import check_not_forked
from t2tlite.programs.runs.checkpoint_choice import after_training
from t2tlite.programs.runs.dev_decoder import DevScorer
from t2tlite.programs.runs.training import Training, dataset_of
from t2tlite.registry import get_model
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import SHOWN_DIGITS, Environment, Identity, TrainedWith
from t2tlite.training.checkpoints import check_size, reason_of
from t2tlite.training.cluster import find_cluster
from t2tlite.training.cost import count_parameters, training_flops
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

# what cannot change when a run resumes
FIXED = ("problem", "vocabulary", "pairs", "random_seed", "model", "mixed_float16")


def train_run(training: Training) -> list[str]:
    """Trains a new run, or resumes the run in the folder, and returns lines on how it
    ended. First says on which device, in which type, and whether XLA compiles. Of
    several workers, the chief makes the data before the others.

    Raises ValueError if another process trains in the directory, it holds another run,
    or the run to start from has another vocabulary; MemoryError if there is not enough
    memory; Interrupted if SIGINT, SIGTERM or SIGHUP comes before the last evaluation is
    recorded.
    """
    check_not_forked()
    folder = training.folder
    machines = find_cluster(training.cluster_resolver)
    replicas = make_strategy(training.gpus, machines, training.cpu_replicas)
    recorded = folder.hparams() if folder.checkpoints() else None
    for line in device_lines(training.hparams, replicas, recorded, training.gpus):
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
    summary = []
    if evaluation:
        trained = f"Trained {dataset.name}: dev {evaluation}."
        summary.append(f"{trained} The run is in {folder}.")
    summary += after_training(folder)
    if costs := folder.costs():
        summary.append(cost_line(costs[-1]))
    return summary


def _train(
    training: Training, dataset: Dataset, strategy: tf.distribute.Strategy
) -> Evaluation | None:
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
        start = None
        if not recorded:  # nothing has been learned yet, so everything may change
            given = training.warm_start_from
            start = _warm_start_checkpoint(dataset, hparams, given)
        trained_with = TrainedWith(
            random_seed=config.random_seed,
            replicas=strategy.num_replicas_in_sync,
            global_batch_tokens=hparams.batch_tokens(strategy.num_replicas_in_sync),
            warm_start_from=start,
        )
        if recorded:
            trained_with = _resumed_record(folder, dataset, hparams, trained_with)

        seed = config.random_seed
        setup = _setup(dataset, hparams, folder, strategy, start, seed)
        engine = TensorFlowEngine(setup.model, hparams.jit_compile)
        decoder = TextDecoder(engine, dataset.encoders, dataset.manifest)
        score = DevScorer(setup, decoder).score if training.eval_bleu else None

        def begin() -> None:
            """Writes what the run is trained with."""
            entries = dataset.manifest.vocabulary_entries()
            vocabularies = [dataset.folder / entry.file for entry in entries]
            folder.create(setup.model.hparams, dataset.manifest, vocabularies)
            folder.write_flags(training.command)
            folder.write(_environment(strategy))
            folder.write(trained_with)

        evaluation = train(setup, config, Hooks(score, begin), signals)
        wait_for_workers(strategy)
        return evaluation


def _warm_start_checkpoint(
    dataset: Dataset, hparams: HParams, warm_start_from: str | None
) -> str | None:
    """Returns the checkpoint that a new run starts from, or None.

    Raises ValueError if its run has another vocabulary, if it is damaged, or if the
    model would share embeddings of two vocabularies. Reports hparams of the model that
    differ from those of its run.
    """
    if not warm_start_from:
        _check_shared_embeddings(hparams, dataset)
        return None
    checkpoint = checkpoint_at(warm_start_from)
    run = run_of(checkpoint)
    before = run.hparams()
    # weights of an imported run may share embeddings nevertheless
    if not before.shared_embedding_and_softmax_weights:
        _check_shared_embeddings(hparams, dataset)
    then = Identity.of(run.manifest(), before)
    now = Identity.of(dataset.manifest, hparams)
    then.require_same(
        now,
        ["vocabulary"],
        "--warm_start_from needs a run of the same vocabulary.",
        f"{run} and {dataset.folder}, which differ",
        _vocabulary_advice(run),
    )
    if difference := then.difference(now, "model"):
        say(
            f"The weights of {checkpoint} were trained in another model, which differs"
            f" in {difference}."
        )
    sizes = dataset.manifest.vocabulary_sizes
    check_size(checkpoint, count_parameters(hparams, sizes))
    return checkpoint


def _resumed_record(
    folder: RunFolder, dataset: Dataset, hparams: HParams, new: TrainedWith
) -> TrainedWith:
    """Returns the record of a run that resumes: `new`, with the start of the old one.

    Raises ValueError for another model, problem, direction, vocabulary, seed or other
    pairs, and for an imported run, which has no optimizer state. Reports other hparams
    and another global batch.
    """
    if folder.manifest().imported_from is not None:
        raise ValueError(
            f"A run resumes with the state of its optimizer. Received: {folder},"
            " imported without one. Use another --output_dir with"
            f" --warm_start_from={folder}."
        )
    old = folder.trained_with() or new
    then = dataclasses.replace(folder.identity(), random_seed=old.random_seed)
    now = Identity.of(dataset.manifest, hparams, new.random_seed)
    advice = (
        "Give the same as before, or another --output_dir, with"
        f" --warm_start_from={folder} to start from its weights."
    )
    if then.difference(now, "vocabulary"):
        advice += f" {_vocabulary_advice(folder)}"
    required = "A run resumes with the model, data and seed that it has."
    then.require_same(now, FIXED, required, f"{folder}, which differs", advice)

    changes = []
    for name, (value, before) in hparams.diff(folder.hparams()).items():
        changes.append(f"{name} {before} -> {value}")
    if changes:
        say(f"Changed hparams, from here on: {', '.join(changes)}.")
    if new.global_batch_tokens != old.global_batch_tokens:
        say(
            f"Changed global batch, from here on: {old.global_batch_tokens:,} ->"
            f" {new.global_batch_tokens:,} tokens ({old.replicas} -> {new.replicas}"
            f" replicas). --global_batch_tokens={old.global_batch_tokens} keeps it."
        )
    return dataclasses.replace(new, warm_start_from=old.warm_start_from)


def _vocabulary_advice(run: RunFolder) -> str:
    return (
        f"Make data with the run's vocabulary, t2t-datagen {run.vocabulary_flag()}, in"
        " another --data_dir."
    )


def _check_shared_embeddings(hparams: HParams, dataset: Dataset) -> None:
    """Raises ValueError if source and target would share embeddings, but have different
    vocabularies, even of the same size.
    """
    manifest = dataset.manifest
    if not hparams.shared_embedding_and_softmax_weights or manifest.has_one_vocabulary:
        return
    source, target = manifest.vocabularies
    raise ValueError(
        "Shared embeddings need one vocabulary for source and target. Received:"
        f" {dataset.folder / source.file} and {dataset.folder / target.file}, whose"
        " contents differ. Set shared_embedding_and_softmax_weights=false with"
        " --hparams, or make data with one vocabulary."
    )


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
        target_vocab_size=sizes[1],
        flops_per_token=training_flops(hparams, sizes[1], *lengths) / sum(lengths),
        warm_start=warm_start,
    )


def _settings(
    folder: RunFolder, dataset: Dataset, hparams: HParams, config: LoopConfig
) -> dict[str, Any]:
    """The settings that all workers must share, by name."""
    files = {}
    for name in ("evaluations.json", "best/best.json"):  # they decide when to stop
        path = folder.path / name
        files[name] = file_sha256(path)[:SHOWN_DIGITS] if path.is_file() else "none"
    checkpoints = folder.checkpoints()
    return {
        "newest checkpoint": step_of(checkpoints[-1]) if checkpoints else 0,
        **files,
        "t2tlite": t2tlite.__version__,
        **vars(Identity.of(dataset.manifest)),
        **dataclasses.asdict(config),
        **dataclasses.asdict(hparams),
    }


def _environment(strategy: tf.distribute.Strategy) -> Environment:
    """The software and hardware of this process."""
    cpu = f"{platform.machine()} CPU, {os.cpu_count()} cores"
    return Environment(
        t2tlite=t2tlite.__version__,
        tensorflow=tf.__version__,
        keras=version("keras"),
        numpy=version("numpy"),
        python=platform.python_version(),
        device=gpu_name() if trains_on_gpu(strategy) else cpu,
        replicas=strategy.num_replicas_in_sync,
    )
