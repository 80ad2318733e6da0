"""The training loop: read `train` from top to bottom."""

from __future__ import annotations

import contextlib
import dataclasses
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence

import tensorflow as tf

from t2tlite.console import counted, say
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute, distribute_shape
from t2tlite.data.splits import DEV
from t2tlite.data.token_store import TokenStore
from t2tlite.run_folder import RunFolder
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import (
    Checkpoints,
    diverged,
    reason_of,
    restore_weights,
)
from t2tlite.training.dev_record import DevRecord, Evaluated
from t2tlite.training.evaluation import (
    ALL_DEV_SETS,
    Evaluation,
    left_out,
    make_evaluation,
    together,
)
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.memory import MemoryNeed
from t2tlite.training.progress import Progress
from t2tlite.training.run_cost import CostMeter
from t2tlite.training.signals import Interrupted, Signals
from t2tlite.training.train_step import (
    make_gradients,
    make_optimizer,
    make_train_step,
    make_trial,
)
from t2tlite.training.workers import Stop, gather, is_chief, wait_for_workers
from t2tlite.types import Seq2SeqModel

# Nats per target token. Guessing costs some 10, so weights with a greater loss than
# this are of no use, though finite.
MAX_LOSS = 1e4
# of training, or at its end: compiling the search takes seconds, once
SAMPLES_AFTER_SECONDS = 60.0


Sample = tuple[str, str, str]  # source, output, reference


@dataclasses.dataclass(frozen=True)
class TrainingJob:
    """What is trained, on what, and where it is kept."""

    strategy: tf.distribute.Strategy
    # built in the strategy's scope, with the hparams of its training
    model: Seq2SeqModel
    train_store: TokenStore
    dev_store: TokenStore
    run: RunFolder  # gets checkpoints, costs and TensorBoard events
    vocabulary_sizes: tuple[int, int]  # of source and target
    # bytes of a device before the model was built; None if unknown
    available_memory: int | None = None
    # floating-point operations to train on one token, for cost.json
    flops_per_token: float = 0.0
    dev_name: str = DEV  # for messages
    # other dev sets, by name
    more_dev: Mapping[str, TokenStore] = dataclasses.field(default_factory=dict)
    # of each corpus in `train_store`, for the hparam corpus_weights
    corpus_pairs: Sequence[int] = ()
    # a checkpoint whose weights a new run starts from, or None
    warm_start: str | None = None


@dataclasses.dataclass(frozen=True)
class Hooks:
    """What is done before training, and at an evaluation in addition to computing the
    loss on dev.
    """

    # decodes dev; its metric then chooses the best checkpoint
    score: Callable[[], Score] | None = None
    # then, of other dev sets and all
    score_also: Callable[[], Mapping[str, Score]] | None = None
    # for TensorBoard, after a minute and at the end
    samples: Callable[[], Sequence[Sample]] | None = None
    # before the first step: writes what the run is trained with
    begin: Callable[[], None] | None = None


def train(job: TrainingJob, config: LoopConfig, hooks: Hooks) -> Evaluation:
    """Trains a model from its newest checkpoint, or from the start, to
    `config.train_steps`.

    Returns the last evaluation. Raises FloatingPointError if the loss becomes infinite
    or not a number, and Interrupted if SIGINT, SIGTERM or SIGHUP comes; then a
    checkpoint is saved.
    """
    return _Loop(job, config, hooks).run()


class _Loop:
    """The state of a run in training: its model, optimizer, checkpoints and step."""

    def __init__(self, job: TrainingJob, config: LoopConfig, hooks: Hooks) -> None:
        self.job, self.config, self.hooks = job, config, hooks
        self.writes = is_chief(job.strategy)  # the other workers write nothing
        strategy, model, hparams, store = (
            job.strategy,
            job.model,
            job.model.hparams,
            job.train_store,
        )
        replicas = strategy.num_replicas_in_sync
        lengths = store.source_lengths, store.target_lengths
        self.plan = training_plan(
            hparams, *lengths, replicas, config.random_seed, job.corpus_pairs
        )
        self.memory = MemoryNeed(
            hparams,
            job.vocabulary_sizes,
            self.plan.largest_shapes(),
            replicas,
            job.available_memory,
        )
        with strategy.scope():
            self.optimizer = make_optimizer(model)
            self.checkpoints = Checkpoints(
                job.run, model, self.optimizer, config.keep_checkpoint_max, self.writes
            )
        self.resumes = bool(job.run.checkpoints())
        self.step = self.checkpoints.restore()
        if not self.resumes and job.warm_start:
            restore_weights(model, job.warm_start)
            say(f"Starting from the weights of {job.warm_start}.")
        self._report_start(replicas)
        self.evaluate = make_evaluation(
            strategy, model, job.dev_store, config.eval_steps
        )
        self.evaluate_also = {
            name: make_evaluation(strategy, model, dev_store, config.eval_steps)
            for name, dev_store in job.more_dev.items()
        }
        gradients = make_gradients(model, self.optimizer)
        self.trial = make_trial(strategy, gradients)
        self.train_step = make_train_step(strategy, model, self.optimizer, gradients)
        self.record = DevRecord(
            job.run,
            self.checkpoints,
            self.step,
            by_score=hooks.score is not None,
            writes=self.writes,
        )

    def run(self) -> Evaluation:
        """Trains, saves and evaluates; first it repeats an evaluation that was
        interrupted.
        """
        due = self.resumes and self._is_evaluation_step()
        missing = due and not self.record.has(self.step)
        if not missing and self._nothing_to_train():
            return self.evaluate()
        self.started = self.saved_at = time.monotonic()
        run = self.job.run if self.writes else None
        replicas = self.job.strategy.num_replicas_in_sync
        self.cost = CostMeter(run, self.step, replicas, self.job.flops_per_token)
        progress = Progress(
            run.path if run else None,
            self.optimizer,
            self.step,
            self.config.train_steps,
        )
        with Signals() as self.signals, progress as self.progress:
            self._adopt_criterion()
            if missing:
                say(f"Evaluating step {self.step:,}, which was not finished.")
                evaluation = self._evaluate_and_keep()
                if self._nothing_to_train():
                    return evaluation
            return self._train_on()

    def _train_on(self) -> Evaluation:
        """Trains to the last step, always evaluated, or an early stop; returns the last
        evaluation.
        """
        config, job = self.config, self.job
        if self.hooks.begin and self.writes:
            self.hooks.begin()
        self.progress.hparams(dataclasses.asdict(job.model.hparams))
        steps, micro_batches = (
            (
                self.step,
                config.train_steps,
            ),
            job.model.hparams.accumulate_steps,
        )
        batches = iter(
            distribute(job.strategy, job.train_store, self.plan, *steps, micro_batches)
        )
        any_worker = Stop(job.strategy)
        self._try_largest_batch()
        if self.step == 0:
            self._stop_before_first_step()
        if not self.resumes and job.warm_start:
            # all must have seen that there is no checkpoint before there is one
            wait_for_workers(job.strategy)
            self._save()  # so that the best may be the start
            self._evaluate_and_keep()
        while True:
            with self._memory_errors():
                result = self.train_step(
                    batches, tf.constant(float(self.signals.caught is not None))
                )
            self.progress.step(self.step, result)
            self.cost.step(result.tokens)
            self.step += 1
            evaluate = self._is_evaluation_step()
            stop = any_worker.agreed(
                self.signals.caught is not None, result.stops, at_once=evaluate
            )
            if (
                stop
                or evaluate
                or time.monotonic() - self.saved_at > config.save_checkpoints_secs
            ):
                self._save()
            if stop:
                raise Interrupted(self.step, self.signals.caught or signal.SIGTERM)
            if evaluate:
                evaluation = self._evaluate_and_keep()
                if self.step >= config.train_steps:
                    return evaluation
                if self._stops_early():
                    worse = counted(self.record.worse_evaluations(), "evaluation")
                    say(
                        f"Stopping early at step {self.step:,}: {worse} without a"
                        f" better {self.record.criterion}."
                    )
                    return evaluation

    def _stop_before_first_step(self) -> None:
        """Raises Interrupted on all workers if a signal came to one of them: nothing is
        trained yet that a step, which may take a minute, should be added to.
        """
        caught = "caught" if self.signals.caught is not None else ""
        if any(gather(self.job.strategy, caught)):
            raise Interrupted(self.step, self.signals.caught or signal.SIGTERM)

    def _try_largest_batch(self) -> float:
        """Computes gradients of a batch of the largest shape, so that a lack of memory
        shows at once.

        Returns its loss.
        """
        micro_batches = self.job.model.hparams.accumulate_steps
        with self._memory_errors():
            return self.trial(
                iter(
                    distribute_shape(
                        self.job.strategy, self.memory.shape, micro_batches
                    )
                )
            )

    @contextlib.contextmanager
    def _memory_errors(self) -> Iterator[None]:
        """Turns TensorFlow's error into one that says what training needs; not for code
        that writes files.
        """
        try:
            yield
        except (tf.errors.ResourceExhaustedError, MemoryError) as error:
            raise MemoryError(
                f"Training needs more memory than there is: {reason_of(error)}."
                f" {self.memory} {self.memory.advice()}"
            ) from error

    def _save(self) -> None:
        """Saves a checkpoint, after its cost, so that every checkpoint has a recorded
        cost.

        The losses so far are of the weights before this step, so these are tried first:
        restarts could not mend them.
        """
        self.progress.flush()
        self.progress.doing("saving")
        loss = self._try_largest_batch()
        if not loss < MAX_LOSS:
            raise diverged(f"the loss is {loss:.3g}", self.step)
        self.cost.save(self.step)
        self.checkpoints.save(self.step)
        self.progress.doing("")
        self.saved_at = time.monotonic()

    def _evaluate(self) -> Evaluated:
        """Evaluates all dev sets and, if asked for, decodes them."""
        hooks, score = self.hooks, None
        others: dict[str, tuple[Evaluation, Score | None]] = {}
        with self.signals.ending_at_once(self.step):
            self.progress.doing("evaluating dev")
            dev = self.evaluate()
            if hooks.score is not None:
                self.progress.doing("decoding dev")
                score = hooks.score()
            if not self.evaluate_also:
                return Evaluated(dev, score, others)
            self.progress.doing("evaluating the other dev sets")
            evaluations = {
                name: evaluate() for name, evaluate in self.evaluate_also.items()
            }
            scores: Mapping[str, Score] = {}
            if hooks.score_also and self.writes:
                scores = hooks.score_also()
        evaluations[ALL_DEV_SETS] = together([dev, *evaluations.values()])
        for name, evaluation in evaluations.items():
            others[name] = (evaluation, scores.get(name))
        return Evaluated(dev, score, others)

    def _evaluate_and_keep(self) -> Evaluation:
        """Evaluates the checkpoint just saved on dev, keeps it if it is the best so
        far, shows and records both.

        Once recorded, an evaluation counts. If it is interrupted before that, a resumed
        run repeats it. So it is recorded after its best checkpoint and its TensorBoard
        events.
        """
        evaluated = self._evaluate()
        better = self.record.keep_if_best(self.step, evaluated)
        self.progress.evaluated(self.step, evaluated.dev, evaluated.score, better)
        for name, (evaluation, score) in evaluated.others.items():
            self.progress.evaluated_also(name, self.step, evaluation, score)
        self.record.write()
        is_last = self.step >= self.config.train_steps or self._stops_early()
        is_due = is_last or time.monotonic() - self.started > SAMPLES_AFTER_SECONDS
        if self.hooks.samples and self.writes and is_due:
            self.progress.doing("decoding samples")
            with self.signals.ending_at_once(self.step, "the decoding of samples"):
                samples = self.hooks.samples()
            self.progress.samples(self.step, samples)
        self._continue()
        return evaluated.dev

    def _continue(self) -> None:
        """Continues training after an evaluation, whose time is not counted as training
        time.
        """
        self.progress.doing("")
        self.signals.check(self.step)
        self.cost.resume()
        self.saved_at = time.monotonic()

    def _adopt_criterion(self) -> None:
        """Compares the best so far by the metric that decides from here on; for a
        score, it is decoded once.
        """
        best = self.record.best
        if best is None or not self.record.criterion_changes():
            return
        score = None
        if self.hooks.score is not None:
            restore_weights(self.job.model, self.checkpoints.best_path(best))
            self.progress.doing("decoding dev with the best so far")
            with self.signals.ending_at_once(self.step):
                score = self.hooks.score()
            self.progress.doing("")
            self.checkpoints.restore()
        say(self.record.adopt_criterion(best, score))

    def _is_evaluation_step(self) -> bool:
        """Whether the weights of this step are evaluated; those of step 0 are saved
        only after a warm start.
        """
        every = self.config.local_eval_frequency
        is_first_or_last = self.step == 0 or self.step >= self.config.train_steps
        return is_first_or_last or (every > 0 and self.step % every == 0)

    def _stops_early(self) -> bool:
        return 0 < self.config.early_stopping_evals <= self.record.worse_evaluations()

    def _nothing_to_train(self) -> bool:
        """Whether there is nothing to train; says why."""
        if self.step >= self.config.train_steps:
            reason = (
                f"the run is at step {self.step:,} of {self.config.train_steps:,}. More"
                " needs --train_steps."
            )
        elif self._stops_early():
            reason = (
                f"the run stopped early at step {self.step:,}. More needs"
                " --early_stopping_evals."
            )
        else:
            return False
        say(f"Nothing to train: {reason}")
        return True

    def _report_start(self, replicas: int) -> None:
        plan, max_length = self.plan, self.job.model.hparams.max_length
        if plan.left_out:
            is_longer = "is longer" if plan.left_out == 1 else "are longer"
            pairs = counted(plan.left_out, "training pair")
            say(f"{pairs} {is_longer} than max_length={max_length} and left out.")
        dev_sets = {self.job.dev_name: self.job.dev_store, **self.job.more_dev}
        for name, store in dev_sets.items():
            line = left_out(self.job.model.hparams, store, name)
            if line:
                say(line)
        in_batches = (
            f"{counted(plan.num_pairs, 'pair')} in {plan.num_batches:,}"
            f" batch{'es' * (plan.num_batches != 1)}"
        )
        weights = self.job.model.hparams.weights
        if weights:
            corpora = zip(self.job.corpus_pairs, weights, strict=True)
            parts = (
                f"{counted(pairs, 'pair')} x {weight}" for pairs, weight in corpora
            )
            say(f"Corpora by their weights: {', '.join(parts)}.")
        resumes = f"; resuming from step {self.step:,}." if self.resumes else "."
        parameters = f"{self.job.model.count_params():,} parameters"
        say(
            f"{parameters}, {in_batches} an epoch,"
            f" {counted(replicas, 'replica')}{resumes}"
        )
        say(
            str(self.memory)
            if self.memory.fits
            else f"{self.memory} This will not fit. {self.memory.advice()}"
        )
