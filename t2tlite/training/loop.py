"""The training loop: read `train` from top to bottom."""

import dataclasses
import time
from collections.abc import Callable, Mapping, Sequence

import tensorflow as tf

from t2tlite.console import counted, say
from t2tlite.data.batch_plan import BatchPlan, training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import OnEvaluation
from t2tlite.training.checkpoints import Checkpoints, diverged, restore_weights
from t2tlite.training.cost import CostMeter, largest_batch
from t2tlite.training.evaluation import (
    DevSets,
    Evaluation,
    ScoreSets,
    make_evaluation,
    report_left_out,
)
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.progress import Progress
from t2tlite.training.signals import Signals
from t2tlite.training.train_step import (
    make_gradients,
    make_train_step,
    make_trial,
    name_functions_alike,
)
from t2tlite.training.workers import Stop, gather, wait_for_workers
from t2tlite.types import Seq2SeqModel

# Nats per target token. Uniform guessing costs about 10; a loss above this means
# divergence even if it is finite.
MAX_LOSS = 1e4


@dataclasses.dataclass(frozen=True)
class TrainingSetup:
    """A model, the data to train it on, and the run directory that keeps the result."""

    strategy: tf.distribute.Strategy
    # built in the strategy's scope, with the hparams of its training
    model: Seq2SeqModel
    train_store: TokenStore
    # by name; the first one decides which checkpoint is the best
    dev_sets: Mapping[str, TokenStore]
    # gets checkpoints, costs and TensorBoard events
    run: RunFolder
    target_vocab_size: int
    # floating-point operations to train on one token, for cost.json
    flops_per_token: float = 0.0
    # of each corpus in `train_store`, for the hparam corpus_weights
    corpus_pairs: Sequence[int] = ()
    # a checkpoint whose weights a new run starts from; None for random weights, and for
    # a run that resumes
    warm_start: str | None = None
    # decodes dev sets; the score of the first one then chooses the best checkpoint
    score: ScoreSets | None = None
    # called before the first step; writes what the run is trained with
    begin: Callable[[], None] | None = None
    # called with each evaluation, once it is recorded
    on_evaluation: OnEvaluation | None = None


def train(
    setup: TrainingSetup,
    config: LoopConfig,
    signals: Signals,
) -> Evaluation | None:
    """Trains a model from its newest checkpoint, or from the start, to
    `config.train_steps`.

    Returns the last evaluation, or None if the run has ended already. Raises
    FloatingPointError if the loss becomes infinite or not a number, TensorFlow's
    ResourceExhaustedError if memory is not enough, and Interrupted if one of `signals`
    comes, also before this call; then what is trained is saved.
    """
    run = setup.run
    strategy = setup.strategy
    model = setup.model
    hparams = model.hparams
    replicas = strategy.num_replicas_in_sync

    # Plan the batches, and restore the newest checkpoint.
    plan = training_plan(
        hparams,
        setup.train_store.source_lengths,
        setup.train_store.target_lengths,
        replicas,
        config.random_seed,
        setup.corpus_pairs,
    )
    shape = largest_batch(
        hparams, setup.target_vocab_size, plan.largest_shapes(), replicas
    )
    with strategy.scope():
        optimizer = make_optimizer(model)
        checkpoints = Checkpoints(run, model, optimizer, config.keep_checkpoint_max)
    resumes = bool(run.checkpoints())
    start = checkpoints.restore()
    if setup.warm_start:
        restore_weights(model, setup.warm_start)
        say(f"Starting from the weights of {setup.warm_start}.")
    _report_start(setup, plan, start if resumes else None)

    # Is there anything to do?
    evaluate = {}
    for name, store in setup.dev_sets.items():
        evaluate[name] = make_evaluation(strategy, model, store, config.eval_steps)
    dev = DevSets(
        run,
        config,
        checkpoints,
        evaluate,
        setup.score,
        setup.on_evaluation,
        start,
    )
    was_interrupted = resumes and dev.lacks(start)  # in the evaluation
    if not was_interrupted and dev.nothing_to_train(start):
        return None

    gradients = make_gradients(model, optimizer)
    train_step = make_train_step(strategy, model, optimizer, gradients)
    trial = make_trial(strategy, gradients, shape, hparams.accumulate_steps)
    cost = CostMeter(run, start, replicas, setup.flops_per_token)
    progress = Progress(run, optimizer, start, config.train_steps)
    with progress:
        with cost.paused():
            dev.adopt_criterion(start, signals, progress)
            if was_interrupted:
                say(f"Evaluating step {start:,}, which was not finished.")
                evaluation = dev.evaluate_and_keep(start, signals, progress)
                if dev.nothing_to_train(start):
                    return evaluation

        if setup.begin:
            setup.begin()
        batches = iter(
            distribute(
                strategy,
                setup.train_store,
                plan,
                start,
                config.train_steps,
                hparams.accumulate_steps,
            )
        )
        if hparams.uses_xla:
            name_functions_alike()
        trial()  # raises now if the largest batch does not fit in memory
        # A signal to one worker stops all. Later, one waits for the end of a step,
        # whose work is saved; the first step may take a minute.
        if any(gather(strategy, "came" if signals.came else "")):
            raise signals.interrupted(start)
        if setup.warm_start:
            # all workers must have seen that there is no checkpoint before there is one
            wait_for_workers(strategy)
            _save(0, checkpoints, trial, cost, progress)
            with cost.paused():
                dev.evaluate_and_keep(0, signals, progress)  # the best may be the start

        any_worker = Stop(strategy)
        saved_at = time.monotonic()
        for step in range(start + 1, config.train_steps + 1):
            result = train_step(batches, tf.constant(float(signals.came)))
            progress.step(step, result)
            cost.count(result.tokens)
            evaluates = dev.is_due(step)
            stops = any_worker.agreed(signals.came, result.stops, at_once=evaluates)
            is_save_due = time.monotonic() - saved_at > config.save_checkpoints_secs
            if stops or evaluates or is_save_due:
                _save(step, checkpoints, trial, cost, progress)
                saved_at = time.monotonic()
            if stops:
                raise signals.interrupted(step)
            if evaluates:
                with cost.paused():
                    evaluation = dev.evaluate_and_keep(step, signals, progress)
                saved_at = time.monotonic()
                if dev.stops_early() and step < config.train_steps:
                    say(
                        f"Stopping early at step {step:,}, without a better evaluation."
                    )
                    break
    return evaluation


def _save(
    step: int,
    checkpoints: Checkpoints,
    trial: Callable[[], float],
    cost: CostMeter,
    progress: Progress,
) -> None:
    """Saves a checkpoint, after its cost, so that every checkpoint has a recorded cost.

    The losses so far are those of the weights before this step, so the new weights are
    checked first: no restart could repair a diverged checkpoint.
    """
    progress.flush()
    progress.doing("saving")
    loss = trial()
    if not loss < MAX_LOSS:
        raise diverged(f"the loss is {loss:.3g}", step)
    cost.save(step)
    checkpoints.save(step)
    progress.doing("")


def _report_start(setup: TrainingSetup, plan: BatchPlan, start: int | None) -> None:
    """Says what the run trains on, and what it leaves out. `start` is the step to
    resume from, or None for a new run.
    """
    hparams = setup.model.hparams
    if plan.left_out:
        longer = counted(plan.left_out, "training pair")
        say(f"Longer than max_length={hparams.max_length} and left out: {longer}.")
    for name, store in setup.dev_sets.items():
        report_left_out(hparams, store, name)
    pairs = counted(plan.num_pairs, "pair")
    replicas = counted(setup.strategy.num_replicas_in_sync, "replica")
    resumes = "" if start is None else f"; resuming from step {start:,}"
    say(
        f"{setup.model.count_params():,} parameters, {pairs} in"
        f" {plan.num_batches:,} batches an epoch, {replicas}{resumes}."
    )
