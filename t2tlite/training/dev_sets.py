"""Evaluates the dev sets in training, keeps the best checkpoint, and decides when
training stops early.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Mapping

from t2tlite.console import counted, say
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import LOSS, DevEvaluation
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import Checkpoints, restore_weights
from t2tlite.training.evaluation import (
    ALL_DEV_SETS,
    Evaluated,
    Evaluation,
    make_evaluation,
    together,
)
from t2tlite.training.loop_config import Hooks, LoopConfig, TrainingSetup
from t2tlite.training.progress import Progress
from t2tlite.training.signals import Signals

# Samples are decoded only after this many seconds of training, or at its end: compiling
# their search takes seconds, once.
SAMPLES_AFTER_SECONDS = 60.0

# Percent. A score below this, such as the BLEU of a model that has hardly been trained,
# is noise; the loss then decides.
LEAST_SCORE = 1.0


class DevSets:
    """The dev sets of a run that is at `step`, and what their evaluations decide."""

    def __init__(
        self,
        setup: TrainingSetup,
        config: LoopConfig,
        hooks: Hooks,
        checkpoints: Checkpoints,
        step: int,
    ) -> None:
        self._setup = setup
        self._config = config
        self._hooks = hooks
        self._checkpoints = checkpoints
        self._started = time.monotonic()
        self._deciding = next(iter(setup.dev_sets))
        self._evaluations = {}
        for name, store in setup.dev_sets.items():
            self._evaluations[name] = make_evaluation(
                setup.strategy, setup.model, store, config.eval_steps
            )
        self._record = DevRecord(
            setup.run, checkpoints, step, by_score=hooks.score is not None
        )

    def is_due(self, step: int) -> bool:
        """Whether the weights of a step are evaluated. Those of step 0 are if they were
        saved, which only a warm start does.
        """
        every = self._config.local_eval_frequency
        if step == 0 or step >= self._config.train_steps:
            return True
        return every > 0 and step % every == 0

    def lacks(self, step: int) -> bool:
        """Whether the checkpoint of a step was to be evaluated, but is not recorded."""
        return self.is_due(step) and not self._record.has(step)

    def stops_early(self) -> bool:
        """Whether the last evaluations were not better than the best."""
        patience = self._config.early_stopping_evals
        return 0 < patience <= self._record.worse_evaluations()

    def nothing_to_train(self, step: int) -> bool:
        """Whether a run at this step is finished; says why."""
        if step >= self._config.train_steps:
            reason = (
                f"the run is at step {step:,} of {self._config.train_steps:,}. More"
                " needs --train_steps."
            )
        elif self.stops_early():
            reason = (
                f"the run stopped early at step {step:,}. More needs"
                " --early_stopping_evals."
            )
        else:
            return False
        say(f"Nothing to train: {reason}")
        return True

    def report_early_stop(self, step: int) -> None:
        worse = counted(self._record.worse_evaluations(), "evaluation")
        say(
            f"Stopping early at step {step:,}: {worse} without a better"
            f" {self._record.criterion}."
        )

    def evaluate(self) -> Evaluation:
        """The metrics of the model on the dev set that decides; records nothing."""
        return self._evaluations[self._deciding]()

    def evaluate_and_keep(
        self, step: int, signals: Signals, progress: Progress
    ) -> Evaluation:
        """Evaluates the checkpoint just saved, keeps it if it is the best so far, and
        shows and records both.

        An evaluation counts once it is recorded, which happens after its best
        checkpoint and its TensorBoard events are written. A run that is interrupted
        before that repeats the evaluation when it resumes.
        """
        results = self._evaluated(step, signals, progress)
        dev = results.pop(self._deciding)
        better = self._record.keep_if_best(step, dev, results)
        progress.evaluated(step, dev, better, results)
        self._record.write()
        if self._hooks.samples and self._shows_samples(step):
            progress.doing("decoding samples")
            with signals.ending_at_once(step, "the decoding of samples"):
                samples = self._hooks.samples()
            if samples:
                progress.samples(step, samples)
        progress.doing("")
        signals.check(step)
        return dev.evaluation

    def _evaluated(
        self, step: int, signals: Signals, progress: Progress
    ) -> dict[str, Evaluated]:
        """The results on each dev set by name, and on all together if there are
        several. With the hook `score` they are decoded as well.
        """
        evaluations = {}
        scores: Mapping[str, Score] = {}
        with signals.ending_at_once(step):
            progress.doing("evaluating dev")
            for name, evaluate in self._evaluations.items():
                evaluations[name] = evaluate()
            if self._hooks.score is not None:
                progress.doing("decoding dev")
                scores = self._hooks.score(list(evaluations))
        if len(evaluations) > 1:
            evaluations[ALL_DEV_SETS] = together(evaluations.values())
        results = {}
        for name, evaluation in evaluations.items():
            results[name] = Evaluated(evaluation, scores.get(name))
        return results

    def _shows_samples(self, step: int) -> bool:
        if step >= self._config.train_steps or self.stops_early():
            return True
        return time.monotonic() - self._started > SAMPLES_AFTER_SECONDS

    def adopt_criterion(self, step: int, signals: Signals, progress: Progress) -> None:
        """Compares the best checkpoint so far by the metric that decides from here on.

        If that is a score, the best is decoded once; then the model has the weights of
        the newest checkpoint, of `step`, again.
        """
        best = self._record.best
        if best is None or not self._record.criterion_changes():
            return
        score = None
        if self._hooks.score is not None:
            restore_weights(self._setup.model, self._checkpoints.best_path(best))
            progress.doing("decoding dev with the best so far")
            with signals.ending_at_once(step):
                score = self._hooks.score([self._deciding])[self._deciding]
            progress.doing("")
            self._checkpoints.restore()
        say(self._record.adopt_criterion(best, score))


class DevRecord:
    """The evaluations of a run up to the newest checkpoint, of `step`, and the best.

    `by_score` is whether dev is decoded, so that its score decides from here on.
    """

    def __init__(
        self, run: RunFolder, checkpoints: Checkpoints, step: int, by_score: bool
    ) -> None:
        self._run = run
        self._checkpoints = checkpoints
        self._by_score = by_score
        # the best evaluation on dev, or None if there is none yet
        self.best = checkpoints.best()
        # Without a best checkpoint, the newest is evaluated again, so that it becomes
        # the best.
        until = step if self.best else step - 1
        self.evaluations = [e for e in run.evaluations() if e.step <= until]

    def has(self, step: int) -> bool:
        """Whether the weights of a step have been evaluated."""
        return any(evaluation.step == step for evaluation in self.evaluations)

    def keep_if_best(
        self, step: int, dev: Evaluated, others: Mapping[str, Evaluated]
    ) -> bool:
        """Adds the evaluation of the checkpoint of `step`, and keeps the checkpoint if
        it is the best so far; returns whether it is.

        `dev` decides; `others` are the results of other dev sets by name. The
        checkpoint of a repeated evaluation may be the best already. It is kept again,
        since keeping it may have been interrupted.
        """
        other_sets = {}
        for name, result in others.items():
            other_sets[name] = _finite(result.metrics)
        metrics = _finite(dev.metrics)
        record = DevEvaluation(step, metrics, other_sets or None)
        before = self.best.metrics if self.best and self.best.step != step else {}
        criterion = dev.score.name.lower() if dev.score else LOSS
        better = is_better(metrics, before, criterion)
        if better:
            self.best = dataclasses.replace(record, criterion=criterion)
            self._checkpoints.save_best(self.best)
        self.evaluations.append(record)
        return better

    def write(self) -> None:
        """Records the evaluations."""
        self._run.write_evaluations(self.evaluations)

    def criterion_changes(self) -> bool:
        """Whether the best so far was chosen by its loss and a score decides from here
        on, or the other way round.
        """
        if self.best is None:
            return False
        return (self.best.chosen_by == LOSS) == self._by_score

    def adopt_criterion(self, best: DevEvaluation, score: Score | None) -> str:
        """Makes the best so far comparable by the metric that decides from here on, and
        returns a line on it.

        `score` is that of the best; None if loss decides, which is recorded already.
        """
        metrics = best.metrics
        criterion = LOSS
        if score is not None:
            metrics = metrics | score.metrics
            criterion = score.name.lower()
        evaluations = []
        for evaluation in self.evaluations:
            if evaluation.step == best.step:
                evaluation = dataclasses.replace(evaluation, metrics=metrics)
            evaluations.append(evaluation)
        self.evaluations = evaluations
        self.best = dataclasses.replace(best, metrics=metrics, criterion=criterion)
        self._run.write_evaluations(self.evaluations)
        self._run.write_best(self.best)
        value = metrics.get(criterion, math.nan)
        digits = 4 if criterion == LOSS else 2
        return (
            f"The best so far, of step {best.step:,}, was chosen by"
            f" {shown_metric(best.chosen_by)}. From here on {shown_metric(criterion)}"
            f" decides, {value:.{digits}f} at step {best.step:,}."
        )

    @property
    def criterion(self) -> str:
        """The name, in messages, of the metric by which the best was chosen."""
        return shown_metric(self.best.chosen_by if self.best else LOSS)

    def worse_evaluations(self) -> int:
        """How many evaluations since the best were compared with it and not better."""
        if self.best is None or self.criterion_changes():
            return 0
        criterion = self.best.chosen_by
        worse = 0
        for evaluation in self.evaluations:
            is_later = evaluation.step > self.best.step
            is_compared = criterion == LOSS or criterion in evaluation.metrics
            if is_later and is_compared:
                worse += not is_better(evaluation.metrics, self.best.metrics, criterion)
        return worse


def is_better(
    metrics: Mapping[str, float], best: Mapping[str, float], criterion: str
) -> bool:
    """Whether an evaluation is better than the best so far, {} if there is none.

    By loss, the lower one is. By a score, the higher one as it is shown, with two
    digits; scores below LEAST_SCORE are equal, and of equal scores the lower loss
    decides.
    """
    lower_loss = metrics.get(LOSS, math.inf) < best.get(LOSS, math.inf)
    if criterion == LOSS:
        return lower_loss
    if criterion not in best:
        return True
    score = _as_shown(metrics.get(criterion, 0.0))
    best_score = _as_shown(best[criterion])
    return score > best_score or (score == best_score and lower_loss)


def _as_shown(score: float) -> float:
    return 0.0 if score < LEAST_SCORE else round(score, 2)


def shown_metric(name: str) -> str:
    """The name of a metric of dev in messages: `dev loss`, `dev BLEU`."""
    return f"dev {name if name == LOSS else name.upper()}"


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics that a record may hold: neither infinite nor not a number."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
