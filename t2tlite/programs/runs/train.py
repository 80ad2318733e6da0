"""Trains a model in a new run directory, or resumes the run in one; `run_folder.py`
describes its files.
"""

import contextlib
import dataclasses
import itertools
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import version

import tensorflow as tf

import t2tlite
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.batch_plan import not_evaluated
from t2tlite.data.dataset import Dataset, check_contents
from t2tlite.data.token_store import TokenStore
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files import atomic_file, checkpoint_paths, own_files
from t2tlite.machine import check_not_forked
from t2tlite.programs.runs.load import after_training
from t2tlite.programs.runs.training import Training, dataset_of
from t2tlite.registry import get_model
from t2tlite.run_folder import RunFolder, run_of
from t2tlite.run_records import SHOWN_DIGITS, Environment, Identity, TrainedWith
from t2tlite.tasks.task import Score
from t2tlite.training import checkpoints, cost, loop, strategy, workers
from t2tlite.training.evaluation import Evaluation, ScoreSets
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.signals import Signals

# what cannot change when a run resumes
FIXED = ("problem", "vocabulary", "pairs", "random_seed", "model", "mixed_float16")

Text = tuple[list[str], list[str]]  # sources and references


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
    options = training.options
    cluster = workers.find_cluster(options.cluster_resolver)
    with strategy.keeping_compiled(folder):
        replicas = strategy.make_strategy(training.gpus, cluster, options.worker_cpu)
    recorded = folder.hparams() if folder.checkpoints() else None
    hparams = training.hparams
    steps = training.config.train_steps
    chosen = strategy.with_choices(hparams, replicas, steps, recorded)
    for line in strategy.device_lines(hparams, chosen, replicas, training.gpus):
        say(line)
    try:
        with workers.lost_worker_is_an_error(replicas):
            # the chief first: others find the data that it makes in a shared folder
            if not workers.is_chief(replicas):
                workers.wait_for_workers(replicas)
            dataset = dataset_of(training.data)
            if workers.is_chief(replicas):
                workers.wait_for_workers(replicas)
            result = _train(training, dataset, replicas)
    except tf.errors.ResourceExhaustedError as error:
        raise MemoryError(
            f"Memory is too small ({checkpoints.reason_of(error)}). Lower batch_size,"
            " and raise accumulate_steps by the same factor."
        ) from error
    summary = []
    if result:
        trained = f"Trained {dataset.name}: dev {result}."
        summary.append(f"{trained} The run is in {folder}.")
    summary += after_training(folder)
    if costs := folder.costs():
        summary.append(cost.cost_line(costs[-1]))
    return summary


def _train(
    training: Training,
    dataset: Dataset,
    replicas: workers.Strategy,
) -> Evaluation | None:
    """Trains on a dataset in the folder, which no other process may use meanwhile."""
    folder = training.folder
    config = training.config
    count = replicas.num_replicas_in_sync
    with Signals() as signals, contextlib.ExitStack() as locked:
        if workers.is_chief(replicas):
            locked.enter_context(own_files.only_process(folder.path, "train a run"))
            checkpoint_paths.remove_unfinished(folder.path)
            checkpoint_paths.remove_unfinished(folder.best_folder)
        else:
            folder = RunFolder(folder.path, writes=False)
        recorded = folder.hparams() if folder.checkpoints() else None
        hparams = training.hparams.for_replicas(count)
        steps = config.train_steps
        hparams = strategy.with_choices(hparams, replicas, steps, recorded)
        trained = _what_is_trained(folder, dataset, hparams, config)
        workers.check_workers_agree(replicas, trained)
        start = None
        if not recorded:  # nothing has been learned yet, so everything may change
            given = training.options.warm_start_from
            start = _warm_start_checkpoint(dataset, hparams, given)
        trained_with = TrainedWith(
            random_seed=config.random_seed,
            replicas=count,
            global_batch_tokens=hparams.batch_tokens(count),
            warm_start_from=start,
        )
        if recorded:
            trained_with = _resumed_record(folder, dataset, hparams, trained_with)

        setup = _setup(dataset, hparams, folder, replicas, start, config.random_seed)
        score = None
        if training.options.eval_bleu:
            score = _dev_scorer(setup, dataset)

        def begin() -> None:
            """Writes what the run is trained with, and says where."""
            entries = dataset.manifest.vocabulary_entries()
            vocabularies = [dataset.folder / entry.file for entry in entries]
            folder.create(hparams, dataset.manifest, vocabularies)
            folder.write_flags(training.command)
            folder.write(_environment(replicas))
            folder.write(trained_with)
            say(f"The run is in {folder}.")

        setup = dataclasses.replace(
            setup,
            score=score,
            begin=begin,
            on_evaluation=training.on_evaluation,
        )
        result = loop.train(setup, config, signals)
        workers.wait_for_workers(replicas)
        return result


def _what_is_trained(
    folder: RunFolder,
    dataset: Dataset,
    hparams: HParams,
    config: LoopConfig,
) -> str:
    """What all workers must have in common, in short: the last is a hash of what else
    decides on training and on when it stops.
    """
    data = Identity.of(dataset.manifest)
    others = (data, hparams, config, folder.evaluations(), folder.best())
    digest = atomic_file.text_sha256(repr(others))
    steps = [0, *map(checkpoint_paths.step_of, folder.checkpoints())]
    return (
        f"newest checkpoint {steps[-1]}, t2tlite {t2tlite.__version__}, pairs"
        f" {data.pairs}, flags and records {digest[:SHOWN_DIGITS]}"
    )


def _warm_start_checkpoint(
    dataset: Dataset,
    hparams: HParams,
    warm_start_from: str | None,
) -> str | None:
    """Returns the checkpoint that a new run starts from, or None.

    Raises ValueError if its run has another vocabulary, if it is damaged, or if the
    model would share embeddings of two vocabularies. Reports hparams of the model that
    differ from those of its run.
    """
    if not warm_start_from:
        _check_shared_embeddings(hparams, dataset)
        return None
    checkpoint = checkpoint_paths.checkpoint_at(warm_start_from)
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
        say(f"The model of {checkpoint} differed in {difference}.")
    return checkpoint


def _resumed_record(
    folder: RunFolder,
    dataset: Dataset,
    hparams: HParams,
    new: TrainedWith,
) -> TrainedWith:
    """Returns the record of a run that resumes: `new`, with the start of the old one.

    Raises ValueError for another model, problem, direction, vocabulary, seed or other
    pairs. Reports other hparams and another global batch.
    """
    old = folder.read(TrainedWith) or new
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
            " replicas)."
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
    source, target = dataset.manifest.vocabularies
    is_shared = hparams.shared_embedding_and_softmax_weights
    if is_shared and source.sha256 != target.sha256:
        raise ValueError(
            "Shared embeddings need one vocabulary. Received:"
            f" {dataset.folder / source.file} and {dataset.folder / target.file}. Give"
            " --hparams=shared_embedding_and_softmax_weights=false."
        )


def _setup(
    dataset: Dataset,
    hparams: HParams,
    folder: RunFolder,
    replicas: workers.Strategy,
    warm_start: str | None,
    seed: int,
) -> loop.TrainingSetup:
    """Builds the model and opens the data. Raises ValueError if the checkpoint to start
    from does not fit the model, or the data has changed.
    """
    manifest = dataset.manifest
    check_contents(dataset.folder, manifest.vocabulary_entries())
    sizes = manifest.vocabulary_sizes
    lengths = manifest.training.mean_lengths
    dev_sets = {}
    for split, name in manifest.dev_sets.items():
        dev_sets[name] = dataset.store(split)
    if warm_start:
        checkpoints.read_weights(warm_start, cost.count_parameters(hparams, sizes))
    with replicas.scope():
        model = get_model(hparams.model).from_hparams(hparams, *sizes, seed)
    flops = cost.training_flops(hparams, sizes[1], *lengths)
    return loop.TrainingSetup(
        strategy=replicas,
        model=model,
        train_store=dataset.store(*manifest.corpora),
        corpus_pairs=[corpus.pairs for corpus in manifest.corpora.values()],
        dev_sets=dev_sets,
        run=folder,
        target_vocab_size=sizes[1],
        flops_per_token=flops / sum(lengths),
        warm_start=warm_start,
    )


def _dev_scorer(setup: loop.TrainingSetup, dataset: Dataset) -> ScoreSets:
    """Decodes and scores dev sets with the weights that the model has, for --eval_bleu.

    The chief decodes. All workers receive the score of the first set, so that all stop
    early or none does; the others receive no further score.
    """
    hparams = setup.model.hparams
    engine = TensorFlowEngine(setup.model)
    decoder = TextDecoder(engine, dataset.encoders, dataset.manifest)
    texts = {}
    for name, store in setup.dev_sets.items():
        texts[name] = scored_text(hparams, store, decoder)

    def score(names: Sequence[str]) -> Mapping[str, Score]:
        scores = {}
        if workers.is_chief(setup.strategy):
            for name in names:
                scores[name] = decoder.decode_and_score(*texts[name], decoder.options())
        first = json.dumps(scores.get(names[0]))
        of_chief = workers.gather(setup.strategy, first)[0]
        scores[names[0]] = Score(*json.loads(of_chief))
        return scores

    return score


def scored_text(hparams: HParams, store: TokenStore, decoder: TextDecoder) -> Text:
    """The sources and references of the pairs of a dev set that are evaluated and whose
    source can be decoded.
    """
    chosen = store.source_lengths - 1 <= decoder.max_source_tokens
    not_chosen = not_evaluated(hparams, store.source_lengths, store.target_lengths)
    chosen[not_chosen] = False
    sources = list(itertools.compress(store.source_text(), chosen))
    targets = list(itertools.compress(store.target_text(), chosen))
    return sources, decoder.references(sources, targets, decoder.options())


def _environment(replicas: workers.Strategy) -> Environment:
    """The software and hardware of this process."""
    return Environment(
        t2tlite=t2tlite.__version__,
        tensorflow=tf.__version__,
        keras=version("keras"),
        numpy=version("numpy"),
        python=platform.python_version(),
        device=strategy.device_name(replicas),
        replicas=replicas.num_replicas_in_sync,
    )
