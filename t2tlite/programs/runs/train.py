"""Trains a model in a new run directory, or resumes the run in one; `run_folder.py`
describes its files.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import platform
from collections.abc import Sequence
from typing import Any, NamedTuple

import keras
import numpy as np
import tensorflow as tf

import t2tlite
from t2tlite.config import MODEL_FIELDS, HParams
from t2tlite.console import counted, say
from t2tlite.data.batch_plan import not_evaluated
from t2tlite.data.dataset import Dataset
from t2tlite.data.manifest import RunManifest
from t2tlite.data.splits import DEV
from t2tlite.data.token_store import TokenStore
from t2tlite.decoding.source_text import evenly_spaced
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import Decoded, TextDecoder
from t2tlite.files.atomic_file import file_sha256
from t2tlite.files.checkpoint_paths import checkpoint_at, remove_unfinished, step_of
from t2tlite.files.lock import only_process
from t2tlite.models.transformer import build_transformer
from t2tlite.programs.runs.same_model import (
    check_shared_embeddings,
    report_other_dev_sets,
    report_other_model,
    report_unused_start,
)
from t2tlite.run_folder import Environment, RunFolder, TrainedWith, run_of
from t2tlite.schedules import SCHEDULES
from t2tlite.tasks.task import Output, Score
from t2tlite.training.checkpoints import check_size
from t2tlite.training.cost import count_parameters, training_flops
from t2tlite.training.evaluation import ALL_DEV_SETS, Evaluation
from t2tlite.training.loop import Hooks, Sample, TrainingJob, train
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.memory import device_memory
from t2tlite.training.strategy import gpu_name, trains_on_gpu, with_dtype_policy
from t2tlite.training.workers import (
    check_workers_agree,
    gather,
    is_chief,
    wait_for_workers,
)

SAMPLES = 6  # dev sentences whose translations TensorBoard shows


@dataclasses.dataclass(frozen=True)
class RunOptions:
    """Options of a run besides the hparams and the loop's settings."""

    # decode dev at each evaluation, and choose the best checkpoint by BLEU (or F1)
    eval_bleu: bool = False
    # run or checkpoint whose weights a new run starts from; None: random
    warm_start_from: str | None = None
    command: Sequence[str] = ()  # the command line, recorded in flags.txt


class TrainedRun(NamedTuple):
    """What training gives, in addition to the run directory."""

    evaluation: Evaluation  # the last
    decoder: TextDecoder  # of the model as it now is, that of the newest checkpoint


def train_run(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    options: RunOptions = RunOptions(),
) -> TrainedRun:
    """Trains a model on a dataset, in a new run directory or resuming an old run.

    Raises ValueError if another process trains in the directory, it holds another run,
    or the run to start from has another vocabulary.
    """
    folder.check_path()
    with contextlib.ExitStack() as locked:
        if is_chief(strategy):  # the other workers do not write the run directory
            locked.enter_context(only_process(folder.path, "train a run"))
            remove_unfinished(folder.path)
            remove_unfinished(folder.best_folder)
        hparams, trained_with = _checked(
            dataset, hparams, folder, config, strategy, options
        )
        tf.keras.utils.set_random_seed(config.random_seed)
        job = _job(
            dataset,
            hparams,
            folder,
            strategy,
            trained_with if not folder.checkpoints() else None,
        )
        engine = TensorFlowEngine(job.model, hparams.jit_compile)
        scorer = TextDecoder(engine, dataset.encoders, dataset.manifest)
        hooks = _hooks(job, scorer, dataset, options.eval_bleu)

        def begin() -> None:
            vocabularies = [
                dataset.folder / entry.file
                for entry in dataset.manifest.vocabulary_entries()
            ]
            folder.create(hparams, dataset.manifest, vocabularies)
            if options.command:
                folder.write_flags(options.command)
            folder.write_environment(_environment(strategy))
            folder.write_trained_with(trained_with)

        evaluation = train(job, config, dataclasses.replace(hooks, begin=begin))
        wait_for_workers(strategy)
        return TrainedRun(evaluation, scorer)


def _checked(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    config: LoopConfig,
    strategy: tf.distribute.Strategy,
    options: RunOptions,
) -> tuple[HParams, TrainedWith]:
    """The hparams for these devices, and the record of seed and data. Raises ValueError
    as `train_run`.
    """
    resumes = bool(folder.checkpoints())
    hparams = hparams.for_replicas(strategy.num_replicas_in_sync)
    hparams = with_dtype_policy(
        hparams, strategy, folder.hparams() if resumes else None
    )
    check_workers_agree(strategy, _settings(folder, dataset, hparams, config))
    warm_start = (
        _warm_start(options.warm_start_from, dataset)
        if options.warm_start_from and not resumes
        else None
    )
    trained_with = TrainedWith(
        random_seed=config.random_seed,
        data_sha256=dataset.manifest.pairs_sha256,
        replicas=strategy.num_replicas_in_sync,
        global_batch_tokens=hparams.batch_tokens(strategy.num_replicas_in_sync),
        warm_start_from=warm_start,
    )
    if not resumes:
        # of a run that is tied already, the weights are what they are
        check_shared_embeddings(hparams, dataset, options.warm_start_from)
        if warm_start:
            report_other_model(warm_start, hparams)
    else:  # otherwise nothing has been learned yet, and everything may change
        _check_hparams(folder, hparams)
        _check_data(folder, dataset)
        trained_with = _check_trained_with(folder, trained_with)
        report_unused_start(options.warm_start_from, trained_with, folder)
        report_other_dev_sets(folder, dataset)
    return hparams, trained_with


def _job(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    strategy: tf.distribute.Strategy,
    begun: TrainedWith | None,
) -> TrainingJob:
    """Builds the model and opens the data; `begun` is the record of a new run, None for
    one that resumes.
    """
    sizes, lengths = (
        dataset.manifest.vocabulary_sizes,
        dataset.manifest.training.mean_lengths,
    )
    corpora = dataset.manifest.corpora
    more_dev = dataset.manifest.dev_sets
    dev_name = more_dev.pop(DEV, DEV)
    warm_start = begun.warm_start_from if begun else None
    if warm_start:
        check_size(warm_start, count_parameters(hparams, sizes))
    available = device_memory(strategy)  # before the model is built
    with strategy.scope():
        model = build_transformer(hparams, *sizes)
    return TrainingJob(
        strategy=strategy,
        model=model,
        train_store=dataset.store(*corpora),
        corpus_pairs=[corpus.pairs for corpus in corpora.values()],
        dev_store=dataset.store("dev"),
        dev_name=dev_name,
        more_dev={name: dataset.store(split) for split, name in more_dev.items()},
        run=folder,
        vocabulary_sizes=sizes,
        available_memory=available,
        flops_per_token=training_flops(hparams, sizes[1], *lengths) / sum(lengths),
        warm_start=warm_start,
    )


def warm_start_hparams(path: str) -> HParams:
    """The hparams of the run to start from, with a learning rate that rises only to
    where that run stopped.

    A new run warms up from step 0; the peak of the old schedule would undo what the
    weights have learned. The old run's corpus_weights are left out, since they belong
    to its data. `path` is a run or one of its checkpoints; FileNotFoundError if there
    is no checkpoint, or it belongs to no run.
    """
    hparams = dataclasses.replace(run_of(path).hparams(), corpus_weights="")
    step = step_of(checkpoint_at(path))
    schedule = SCHEDULES[hparams.learning_rate_schedule]
    constant = schedule.continued_from(
        step, hparams.learning_rate_warmup_steps, hparams.learning_rate_constant
    )
    return dataclasses.replace(hparams, learning_rate_constant=float(f"{constant:.4g}"))


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


def _check_data(folder: RunFolder, dataset: Dataset) -> None:
    """Raises ValueError if the run in the folder is of another problem, direction or
    vocabulary.
    """
    old, new = folder.manifest(), dataset.manifest
    if old.problem != new.problem:
        difference = f"another problem, {old.name}. Received: {new.name}."
    elif old.reverse != new.reverse:
        difference = f"the other direction, {old.name}. Received: {new.name}."
    elif old.vocabulary_sha256 != new.vocabulary_sha256:
        files = ",".join(
            str(folder.path / entry.file) for entry in old.vocabulary_entries()
        )
        difference = (
            f"{old.name} with another vocabulary: {_vocabulary(old)}. Received:"
            f" {_vocabulary(new)}, in {dataset.folder}.{_changed_options(old, new)} To"
            " train the run further, make the data with its vocabulary:"
            f" t2t-datagen --vocab_file={files} with another --data_dir."
        )
    else:
        return
    raise ValueError(
        f"{folder} holds a run of {difference} Otherwise use another --output_dir."
    )


def _vocabulary(manifest: RunManifest) -> str:
    """Files, sizes and the start of the hashes of vocabularies."""
    return " and ".join(
        f"{entry.file} of {entry.size:,} pieces (SHA-256 {entry.sha256[:12]}...)"
        for entry in manifest.vocabulary_entries()
    )


def _changed_options(old: RunManifest, new: RunManifest) -> str:
    """A sentence on the options of the data that differ; empty if none do."""
    names = sorted({*old.options, *new.options})
    changes = [
        f"{name} was {old.options.get(name)}, now {new.options.get(name)}"
        for name in names
        if old.options.get(name) != new.options.get(name)
    ]
    return f" Options: {'; '.join(changes)}." if changes else ""


def _check_trained_with(folder: RunFolder, new: TrainedWith) -> TrainedWith:
    """The record of a run that resumes; ValueError for another seed or other pairs.
    Reports another batch.
    """
    old = folder.trained_with()
    if old is None:  # deleted: only the manifest identifies the data
        old = dataclasses.replace(new, data_sha256=folder.manifest().pairs_sha256)
    if new.random_seed != old.random_seed:
        raise ValueError(
            f"A run's --random_seed cannot change: it is {old.random_seed} in {folder}."
            f" Received: {new.random_seed}. Leave the seed as it is, or use another"
            " --output_dir."
        )
    if new.data_sha256 != old.data_sha256:
        raise ValueError(
            f"A run's training and dev pairs cannot change. Received: {folder}, trained"
            " on other pairs of the same vocabulary. Name those with --data_dir, or"
            f" use another --output_dir with --warm_start_from={folder}."
        )
    if new.global_batch_tokens != old.global_batch_tokens:
        say(
            f"Changed global batch, from here on: {old.global_batch_tokens:,} ->"
            f" {new.global_batch_tokens:,} tokens ({old.replicas} -> {new.replicas}"
            f" replicas). --global_batch_tokens={old.global_batch_tokens} keeps it."
        )
    return dataclasses.replace(new, warm_start_from=old.warm_start_from)


def _check_hparams(folder: RunFolder, hparams: HParams) -> None:
    """Raises ValueError if a run cannot resume with these hparams, and reports those
    that differ.
    """
    if folder.manifest().imported_from is not None:
        raise ValueError(
            "A run can be resumed only with the state of its optimizer. Received:"
            f" {folder}, imported without one. Use another --output_dir with"
            f" --warm_start_from={folder}."
        )
    before = folder.hparams()
    changes = hparams.diff(before)
    if not changes:
        return
    listed = ", ".join(f"{name} {old} -> {new}" for name, (new, old) in changes.items())
    fixed = [name for name in MODEL_FIELDS if name in changes]
    if hparams.max_positions != before.max_positions and "pos" not in changes:
        fixed.append("max_length")
    if "mixed_float16" in changes.get("dtype_policy", ()):
        fixed.append("dtype_policy")  # the optimizer has a loss scale only with float16
    if fixed:
        raise ValueError(
            f"{folder} holds a run of another model: {listed}. A run's"
            f" {', '.join(fixed)} cannot change. Use another --output_dir, or the run's"
            " own hparams."
        )
    say(f"Changed hparams, from here on: {listed}.")


def _warm_start(path: str, dataset: Dataset) -> str:
    """The checkpoint to start from; ValueError if its run has another vocabulary, also
    of the same size.
    """
    checkpoint = checkpoint_at(path)
    run = run_of(path)
    if not run.has_manifest():
        say(
            f"The vocabulary of {checkpoint} is not known: {run} has no manifest. Its"
            f" embeddings must be of the vocabulary of {dataset.folder}."
        )
        return checkpoint
    old, new = run.manifest(), dataset.manifest
    if old.vocabulary_sha256 != new.vocabulary_sha256:
        files = ",".join(
            str(run.path / entry.file) for entry in old.vocabulary_entries()
        )
        raise ValueError(
            "--warm_start_from needs a run of the same vocabulary: its embeddings are"
            f" of other tokens otherwise. Received: {run}, whose vocabulary is not that"
            f" of {dataset.name} in {dataset.folder}. Make the data with the run's"
            f" vocabulary, t2t-datagen --vocab_file={files}, in another --data_dir."
        )
    return checkpoint


def _hooks(
    job: TrainingJob, scorer: TextDecoder, dataset: Dataset, with_score: bool
) -> Hooks:
    """The loop's hooks: `score` (with `with_score`) decodes and scores dev, `samples`
    some of it greedily.
    """
    store, strategy = job.dev_store, job.strategy
    sources, references = store.source_text(), store.target_text()
    texts: dict[str, tuple[list[str], list[str]]] = {}  # to decode
    if with_score:
        texts = {
            name: scored_text(job.model.hparams, each, scorer, name)
            for name, each in {DEV: store, **job.more_dev}.items()
        }
    decoded: dict[str, Decoded] = {}  # of each dev set, the last
    # compiling is too slow for six sentences
    sampler = TextDecoder(
        TensorFlowEngine(job.model), dataset.encoders, dataset.manifest
    )
    fitting = np.flatnonzero(store.source_lengths <= sampler.max_source_tokens)
    chosen = [fitting[i] for i in evenly_spaced(len(fitting), SAMPLES)]

    def score() -> Score:
        """The chief decodes; all workers receive its score, so that all stop early or
        none does.
        """
        if is_chief(strategy):
            decoded[DEV] = scorer.decode_and_score(*texts[DEV], scorer.options())
        result = decoded[DEV].score if decoded else None
        return Score(*json.loads(gather(strategy, json.dumps(result))[0]))

    def score_also() -> dict[str, Score]:
        """The scores of the other dev sets, and of all together; by the chief alone,
        after `score`.
        """
        for name in job.more_dev:
            decoded[name] = scorer.decode_and_score(*texts[name], scorer.options())
        all_sources: list[str] = []
        all_references: list[str] = []
        n_best: list[list[Output]] = []
        for name, (dev_sources, dev_references) in texts.items():
            all_sources += dev_sources
            all_references += dev_references
            n_best += decoded[name].n_best
        scores = {name: decoded[name].score for name in job.more_dev}
        together = scorer.score_outputs(
            all_sources, all_references, n_best, scorer.options()
        )
        return scores | {ALL_DEV_SETS: together}

    def samples() -> list[Sample]:
        greedy = sampler.options(beam_size=1)
        decoded = sampler.decode([sources[i] for i in chosen], greedy)
        reference = sampler.task_under(greedy).reference
        return [
            (sources[i], outputs[0].text, reference(sources[i], references[i]))
            for i, outputs in zip(chosen, decoded, strict=True)
        ]

    return Hooks(
        score=score if with_score else None,
        score_also=score_also if with_score and job.more_dev else None,
        samples=samples if chosen else None,
    )


def scored_text(
    hparams: HParams, store: TokenStore, scorer: TextDecoder, name: str
) -> tuple[list[str], list[str]]:
    """The sources and the references of a dev set to decode: of the pairs that are
    evaluated and whose source can be decoded.

    Reports how many others there are. Raises ValueError if none is left.
    """
    lengths = store.source_lengths, store.target_lengths
    evaluated: np.ndarray = np.ones(len(store.source_lengths), bool)
    evaluated[not_evaluated(hparams, *lengths)] = False
    limit = scorer.max_source_tokens
    fits = store.source_lengths - 1 <= limit
    undecoded = int(np.count_nonzero(evaluated & ~fits))
    if undecoded:
        say(
            f"Not decoded, and not part of the score: {counted(undecoded, 'source')} of"
            f" {name} of more than {limit:,} tokens."
        )
    chosen = np.flatnonzero(evaluated & fits)
    if not len(chosen):
        raise ValueError(
            f"A dev set to decode needs a source of at most {limit:,} tokens. Received:"
            f" none in {name}. Put one sentence on each line."
        )
    sources, targets = store.source_text(), store.target_text()
    chosen_sources = [sources[i] for i in chosen]
    chosen_targets = [targets[i] for i in chosen]
    references = scorer.references(chosen_sources, chosen_targets, scorer.options())
    return chosen_sources, references


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
