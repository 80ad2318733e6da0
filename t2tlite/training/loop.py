"""The training loop: read `train` from top to bottom."""

from __future__ import annotations

import dataclasses
import math
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.data.batch_plan import training_plan
from t2tlite.data.input_pipeline import distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.tasks.outputs import OutputScore
from t2tlite.training.checkpoints import Checkpoints, restore_weights
from t2tlite.training.evaluation import Evaluation, Evaluator
from t2tlite.training.progress import Progress, report
from t2tlite.training.run_cost import CostMeter
from t2tlite.training.train_step import make_optimizer, make_train_step

SAMPLES_AFTER_SECONDS = 60.0  # of training; compiling the search takes seconds, too much for a run of a few


@dataclasses.dataclass(frozen=True)
class Schedule:
    """What happens when while training; the command's flags of the same names."""

    train_steps: int
    eval_steps: int = 0
    local_eval_frequency: int = 1000
    early_stopping_evals: int = 0
    save_checkpoints_secs: int = 600
    keep_checkpoint_max: int = 20
    random_seed: int = 1
    warm_start_from: str | None = None  # a checkpoint

    def __post_init__(self) -> None:
        least = {"train_steps": 1, "keep_checkpoint_max": 1}
        for field in dataclasses.fields(self):
            value, low = getattr(self, field.name), least.get(field.name, 0)
            if field.name != "warm_start_from" and value < low:
                raise ValueError(f"{field.name} must be at least {low}. Received: {value}.")


class Interrupted(Exception):
    """The run was asked to stop, and has saved a checkpoint."""

    def __init__(self, step: int, signal_number: int) -> None:
        super().__init__(
            f"Stopped by {signal.Signals(signal_number).name} at step {step:,}; a checkpoint is saved. The same "
            "command goes on from there."
        )
        self.signal_number = signal_number


def train(
    strategy: tf.distribute.Strategy,
    make_model: Callable[[], Any],
    hparams: HParams,
    train_store: TokenStore,
    dev_store: TokenStore,
    folder: Path,
    schedule: Schedule,
    dev_score: Callable[[Any, int], OutputScore] | None = None,
    dev_samples: Callable[[Any], list[tuple[str, str, str]]] | None = None,
    flops_per_token: float = 0.0,
) -> Evaluation:
    """Trains a model from its newest checkpoint, or from the start, to `schedule.train_steps`.

    Args:
        strategy: where to train.
        make_model: makes the model, its variables included; called once, in the strategy's scope.
        hparams: of the model and its training.
        train_store: what to learn.
        dev_store: what to evaluate on.
        folder: where checkpoints and TensorBoard events go.
        schedule: what happens when.
        dev_score: (model, step) -> BLEU or F1 of dev, to be had at each evaluation; or None.
        dev_samples: model -> (source, output, reference) of some sentences of dev, to be shown in TensorBoard at
            each evaluation after the first minute; or None.
        flops_per_token: floating-point operations to train on one token, for cost.json.

    Returns:
        The last evaluation.

    Raises:
        FloatingPointError: the loss became infinite or not a number; the message names the step.
        Interrupted: SIGINT or SIGTERM came; a checkpoint is saved.
    """
    scratch = _scratch(strategy, folder)
    plan = training_plan(
        hparams,
        train_store.source_lengths,
        train_store.target_lengths,
        strategy.num_replicas_in_sync,
        schedule.random_seed,
    )
    with strategy.scope():
        model = make_model()
        optimizer = make_optimizer(hparams)
        optimizer.build(model.trainable_variables)
        checkpoints = Checkpoints(folder, model, optimizer, schedule.keep_checkpoint_max, scratch)
    step = checkpoints.restore()
    if step == 0 and schedule.warm_start_from:
        restore_weights(model, schedule.warm_start_from)
        report(f"Starting from the weights of {schedule.warm_start_from}.")
    if plan.left_out:
        report(f"{plan.left_out:,} training pairs are longer than max_length={hparams.max_length} and left out.")
    report(
        f"{model.count_params():,} parameters, {plan.num_pairs:,} pairs in {plan.num_batches:,} batches an epoch, "
        f"{strategy.num_replicas_in_sync} replica(s)" + (f"; going on from step {step:,}." if step else ".")
    )
    evaluator = Evaluator(strategy, model, dev_store, hparams, schedule.eval_steps)
    train_step = make_train_step(strategy, model, optimizer, hparams)
    every, patience = schedule.local_eval_frequency, schedule.early_stopping_evals
    worse_evals = (step - checkpoints.best().get("step", step)) // every if every else 0  # those before a restart
    if step >= schedule.train_steps:
        report(f"Nothing to train: the run is at step {step:,} of {schedule.train_steps:,}. More needs --train_steps.")
        return evaluator.evaluate()
    if patience and worse_evals >= patience:
        report(f"Nothing to train: the run stopped early at step {step:,}. More needs --early_stopping_evals.")
        return evaluator.evaluate()
    evaluation, started = None, time.monotonic()
    saved_at = started
    cost = CostMeter(None if scratch else folder, step, strategy.num_replicas_in_sync, flops_per_token)
    with _catch_signals() as caught, Progress(scratch or folder, optimizer, step, schedule.train_steps) as progress:
        batches = iter(distribute(strategy, train_store, plan, step, schedule.train_steps, hparams.accumulate_steps))
        while step < schedule.train_steps:
            result = train_step(batches)
            progress.step(step, result)
            cost.step(result.tokens)
            step += 1
            if caught:
                progress.flush()
                cost.save(step)
                checkpoints.save(step)
                raise Interrupted(step, caught[0])
            if time.monotonic() - saved_at > schedule.save_checkpoints_secs:
                progress.flush()
                cost.save(step)
                checkpoints.save(step)
                saved_at = time.monotonic()
            if step == schedule.train_steps or (every and step % every == 0):
                progress.flush()
                cost.save(step)
                checkpoints.save(step)
                saved_at = time.monotonic()
                evaluation = evaluator.evaluate()
                score = None if dev_score is None else dev_score(model, step)
                better = _keep_if_best(checkpoints, step, evaluation, score)
                if dev_samples and not scratch and time.monotonic() - started > SAMPLES_AFTER_SECONDS:
                    progress.samples(step, dev_samples(model))
                progress.evaluated(step, evaluation, score, better)
                cost.resume()
                worse_evals = 0 if better else worse_evals + 1
                if patience and worse_evals >= patience:
                    report(f"Stopping early at step {step:,}: {worse_evals} evaluations without a better one.")
                    break
    if scratch:
        shutil.rmtree(scratch, ignore_errors=True)
    return evaluation if evaluation is not None else evaluator.evaluate()


def _scratch(strategy: tf.distribute.Strategy, folder: Path) -> Path | None:
    """None for the worker that writes the run's folder: the only one, or the first. The others write beside it."""
    cluster = strategy.cluster_resolver
    if cluster is None or not cluster.cluster_spec() or cluster.task_type == "chief" or cluster.task_id == 0:
        return None
    return folder / f".worker-{cluster.task_id}"


def _keep_if_best(checkpoints: Checkpoints, step: int, evaluation: Evaluation, score: OutputScore | None) -> bool:
    """Saves the best checkpoint anew if this is better: by BLEU or F1 where there is one, otherwise by dev loss."""
    best = checkpoints.best()
    figures = {"loss": evaluation.loss, "perplexity": evaluation.perplexity, "accuracy": evaluation.accuracy}
    if score is not None:
        name = score.name.lower()
        figures[name] = score.value
        better = score.value > best.get(name, -math.inf)
    else:
        better = evaluation.loss < best.get("loss", math.inf)
    if better:
        checkpoints.save_best(step, figures)
    return better


class _catch_signals:
    """Notes the first SIGINT or SIGTERM in a list; a second one ends the process as usual."""

    def __enter__(self) -> list[int]:
        self.caught: list[int] = []
        self.before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
        for number in self.before:
            signal.signal(number, self._note)
        return self.caught

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)

    def _note(self, number: int, frame: object) -> None:
        self.caught.append(number)
        report(f"{signal.Signals(number).name}: saving a checkpoint; once more ends at once.")
        for other, handler in self.before.items():
            signal.signal(other, handler)
