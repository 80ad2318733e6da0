"""The training loop: read `train` from top to bottom."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.runs.run_folder import BestCheckpoint, RunFolder
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import Checkpoints, restore_weights
from t2tlite.training.evaluation import Evaluation, make_evaluation
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.progress import Progress, report
from t2tlite.training.run_cost import CostMeter
from t2tlite.training.train_step import make_optimizer, make_train_step
from t2tlite.types import Seq2SeqModel

SAMPLES_AFTER_SECONDS = 60.0  # of training; compiling the search takes seconds, too much for a run of a few

Sample = tuple[str, str, str]  # source, output, reference


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and has saved a checkpoint."""

    def __init__(self, step: int, signal_number: int) -> None:
        super().__init__(
            f"Stopped by {signal.Signals(signal_number).name} at step {step:,}; a checkpoint is saved. The same "
            "command resumes from there."
        )
        self.signal_number = signal_number


@dataclasses.dataclass(frozen=True)
class TrainingJob:
    """What is trained, on what, and where it is kept."""

    strategy: tf.distribute.Strategy
    model: Seq2SeqModel  # built in the strategy's scope
    hparams: HParams
    train_store: TokenStore
    dev_store: TokenStore
    run: RunFolder  # gets checkpoints, costs and TensorBoard events
    flops_per_token: float = 0.0  # floating-point operations to train on one token, for cost.json
    warm_start: str | None = None  # a checkpoint whose weights a new run starts from, or None


@dataclasses.dataclass(frozen=True)
class Hooks:
    """What is done at an evaluation in addition to computing the loss on dev."""

    score: Callable[[], Score] | None = None  # decodes dev; the best checkpoint is then chosen by the task's score
    samples: Callable[[], Sequence[Sample]] | None = None  # for TensorBoard, after the first minute of training


def train(job: TrainingJob, config: LoopConfig, hooks: Hooks = Hooks()) -> Evaluation:
    """Trains a model from its newest checkpoint, or from the start, to `config.train_steps`.

    Returns the last evaluation. Raises FloatingPointError if the loss becomes infinite or not a number, and Interrupted
    if SIGINT or SIGTERM comes; then a checkpoint is saved.
    """
    scratch = _scratch(job.strategy, job.run.path)
    try:
        return _Loop(job, config, hooks, scratch).run()
    finally:
        if scratch:
            shutil.rmtree(scratch, ignore_errors=True)


class _Loop:
    """The state of a run in training: its model, optimizer, checkpoints and step."""

    def __init__(self, job: TrainingJob, config: LoopConfig, hooks: Hooks, scratch: Path | None) -> None:
        self.job, self.config, self.hooks, self.scratch = job, config, hooks, scratch
        strategy, model, hparams, store = job.strategy, job.model, job.hparams, job.train_store
        replicas = strategy.num_replicas_in_sync
        self.plan = training_plan(hparams, store.source_lengths, store.target_lengths, replicas, config.random_seed)
        with strategy.scope():
            self.optimizer = make_optimizer(hparams)
            self.optimizer.build(model.trainable_variables)
            self.checkpoints = Checkpoints(job.run, model, self.optimizer, config.keep_checkpoint_max, scratch)
        self.step = self.checkpoints.restore()
        if self.step == 0 and job.warm_start:
            restore_weights(model, job.warm_start)
            report(f"Starting from the weights of {job.warm_start}.")
        self._report_start(replicas)
        self.evaluate = make_evaluation(strategy, model, job.dev_store, hparams, config.eval_steps)
        self.train_step = make_train_step(strategy, model, self.optimizer, hparams)
        best, every = self.checkpoints.best, config.local_eval_frequency
        self.worse_evals = (self.step - best.step) // every if every and best else 0  # those before a restart

    def run(self) -> Evaluation:
        """Trains, saves and evaluates."""
        config = self.config
        if done := self._nothing_to_train():
            report(f"Nothing to train: {done}")
            return self.evaluate()
        evaluation = None
        self.started = self.saved_at = time.monotonic()
        meter_run = None if self.scratch else self.job.run
        replicas = self.job.strategy.num_replicas_in_sync
        self.cost = CostMeter(meter_run, self.step, replicas, self.job.flops_per_token)
        events = self.scratch or self.job.run.path
        steps, micro_batches = (self.step, config.train_steps), self.job.hparams.accumulate_steps
        with _catch_signals() as caught, Progress(events, self.optimizer, *steps) as self.progress:
            batches = iter(distribute(self.job.strategy, self.job.train_store, self.plan, *steps, micro_batches))
            while self.step < config.train_steps:
                result = self.train_step(batches)
                self.progress.step(self.step, result)
                self.cost.step(result.tokens)
                self.step += 1
                if caught:
                    self._save()
                    raise Interrupted(self.step, caught[0])
                if self._is_evaluation_step():
                    self._save()
                    evaluation = self._evaluate_and_keep()
                    if self._stops_early():
                        worse = f"{self.worse_evals} evaluations without a better one"
                        report(f"Stopping early at step {self.step:,}: {worse}.")
                        break
                elif time.monotonic() - self.saved_at > config.save_checkpoints_secs:
                    self._save()
        return evaluation if evaluation is not None else self.evaluate()

    def _save(self) -> None:
        """Saves a checkpoint; its cost comes first, so that no checkpoint is without one."""
        self.progress.flush()
        self.cost.save(self.step)
        self.checkpoints.save(self.step)
        self.saved_at = time.monotonic()

    def _evaluate_and_keep(self) -> Evaluation:
        """Evaluates on dev, keeps the checkpoint if it is the best so far, and shows both."""
        evaluation = self.evaluate()
        score = None if self.hooks.score is None else self.hooks.score()
        better = self._keep_if_best(evaluation, score)
        if self.hooks.samples and not self.scratch and time.monotonic() - self.started > SAMPLES_AFTER_SECONDS:
            self.progress.samples(self.step, self.hooks.samples())
        self.progress.evaluated(self.step, evaluation, score, better)
        self.cost.resume()
        self.worse_evals = 0 if better else self.worse_evals + 1
        return evaluation

    def _keep_if_best(self, evaluation: Evaluation, score: Score | None) -> bool:
        """Saves the best checkpoint anew if this is better: by the task's score if there is one, otherwise by loss."""
        best = self.checkpoints.best
        before = best.metrics if best else {}
        metrics = evaluation.metrics
        if score is None:
            better = evaluation.loss < before.get("loss", math.inf)
        else:
            name = score.name.lower()
            metrics[name] = score.value
            better = score.value > before.get(name, -math.inf)
        if better:
            self.checkpoints.save_best(BestCheckpoint(self.step, metrics))
        return better

    def _is_evaluation_step(self) -> bool:
        every = self.config.local_eval_frequency
        return self.step == self.config.train_steps or (every > 0 and self.step % every == 0)

    def _stops_early(self) -> bool:
        return 0 < self.config.early_stopping_evals <= self.worse_evals

    def _nothing_to_train(self) -> str:
        """Why there is nothing to train, a sentence; empty if there is."""
        if self.step >= self.config.train_steps:
            return f"the run is at step {self.step:,} of {self.config.train_steps:,}. More needs --train_steps."
        if self._stops_early():
            return f"the run stopped early at step {self.step:,}. More needs --early_stopping_evals."
        return ""

    def _report_start(self, replicas: int) -> None:
        plan, max_length = self.plan, self.job.hparams.max_length
        if plan.left_out:
            report(f"{plan.left_out:,} training pairs are longer than max_length={max_length} and left out.")
        report(
            f"{self.job.model.count_params():,} parameters, {plan.num_pairs:,} pairs in {plan.num_batches:,} batches "
            f"an epoch, {replicas} replica(s)" + (f"; resuming from step {self.step:,}." if self.step else ".")
        )


def _scratch(strategy: tf.distribute.Strategy, folder: Path) -> Path | None:
    """None for the worker that writes the run directory: the only one, or the first. The others write beside it."""
    cluster = strategy.cluster_resolver
    if cluster is None or not cluster.cluster_spec() or cluster.task_type == "chief" or cluster.task_id == 0:
        return None
    return folder / f".worker-{cluster.task_id}"


@contextlib.contextmanager
def _catch_signals() -> Iterator[list[int]]:
    """Records the first SIGINT or SIGTERM in a list; a second one ends the process as usual."""
    caught: list[int] = []
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}

    def restore() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def record(number: int, frame: object) -> None:
        caught.append(number)
        report(f"{signal.Signals(number).name}: saving a checkpoint; once more ends at once.")
        restore()

    for number in before:
        signal.signal(number, record)
    try:
        yield caught
    finally:
        restore()
