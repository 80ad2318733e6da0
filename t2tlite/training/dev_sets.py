"""Evaluates the dev sets in training, keeps the best checkpoint, and decides when
training stops early.
"""

import dataclasses
import math
from collections.abc import Mapping

from t2tlite.console import counted, say
from t2tlite.run_records import LOSS, DevEvaluation
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import Checkpoints, restore_weights
from t2tlite.training.evaluation import Evaluation, make_evaluation
from t2tlite.training.loop_config import Hooks, LoopConfig, TrainingSetup
from t2tlite.training.progress import Progress
from t2tlite.training.signals import Signals

# Percent. A score below this, such as the BLEU of a model that has hardly been trained,
# is noise; the loss then decides.
LEAST_SCORE = 1.0


class DevSets:
    """The dev sets of a run that is at `step`, the evaluations up to there, the best,
    and what they decide.

    If the hook `score` decodes the dev sets, the score of the first decides which
    evaluation is the best, otherwise its loss.
    """

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
        self._deciding = next(iter(setup.dev_sets))
        self._evaluate = {}
        for name, store in setup.dev_sets.items():
            self._evaluate[name] = make_evaluation(
                setup.strategy, setup.model, store, config.eval_steps
            )
        self._best = checkpoints.best()
        # Without a best checkpoint, the newest is evaluated again, so that it becomes
        # the best.
        until = step if self._best else step - 1
        self._evaluations = [e for e in setup.run.evaluations() if e.step <= until]

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
        return self.is_due(step) and step not in [e.step for e in self._evaluations]

    def stops_early(self) -> bool:
        """Whether the last evaluations were not better than the best."""
        return 0 < self._config.early_stopping_evals <= self._worse_evaluations()

    def nothing_to_train(self, step: int) -> bool:
        """Whether a run at this step is finished; says why."""
        if step >= self._config.train_steps:
            reason = f"is at step {step:,} of {self._config.train_steps:,}"
            flag = "--train_steps"
        elif self.stops_early():
            reason = f"stopped early at step {step:,}"
            flag = "--early_stopping_evals"
        else:
            return False
        say(f"Nothing to train: the run {reason}. More needs {flag}.")
        return True

    def report_early_stop(self, step: int) -> None:
        worse = counted(self._worse_evaluations(), "evaluation")
        criterion = shown_metric(self._best.chosen_by if self._best else LOSS)
        say(f"Stopping early at step {step:,}: {worse} without a better {criterion}.")

    def evaluate_and_keep(
        self, step: int, signals: Signals, progress: Progress
    ) -> Evaluation:
        """Evaluates the checkpoint just saved, keeps it if it is the best so far, and
        shows and records both.

        An evaluation counts once it is recorded, which happens after its best
        checkpoint and its TensorBoard events are written. A run that is interrupted
        before that repeats the evaluation when it resumes.
        """
        results = {}
        scores: Mapping[str, Score] = {}
        with signals.ending_at_once(step):
            progress.doing("evaluating dev")
            for name, evaluate in self._evaluate.items():
                results[name] = evaluate()
            if self._hooks.score is not None:
                progress.doing("decoding dev")
                scores = self._hooks.score(list(results))
        for name, score in scores.items():
            results[name] = dataclasses.replace(results[name], score=score)
        dev = results.pop(self._deciding)
        better = self._keep_if_best(step, dev, results)
        progress.evaluated(step, dev, better, results)
        self._setup.run.write_evaluations(self._evaluations)
        progress.doing("")
        signals.check(step)
        return dev

    def adopt_criterion(self, step: int, signals: Signals, progress: Progress) -> None:
        """Compares the best checkpoint so far by the metric that decides from here on.

        If that is a score, the best is decoded once; then the model has the weights of
        the newest checkpoint, of `step`, again.
        """
        best = self._best
        if best is None or not self._criterion_changes():
            return
        metrics = dict(best.metrics)
        criterion = LOSS
        if self._hooks.score is not None:
            restore_weights(self._setup.model, self._checkpoints.best_path(best))
            progress.doing("decoding dev with the best so far")
            with signals.ending_at_once(step):
                score = self._hooks.score([self._deciding])[self._deciding]
            progress.doing("")
            self._checkpoints.restore()
            metrics |= score.metrics
            criterion = score.name.lower()
        for i, evaluation in enumerate(self._evaluations):
            if evaluation.step == best.step:
                self._evaluations[i] = dataclasses.replace(evaluation, metrics=metrics)
        self._best = dataclasses.replace(best, metrics=metrics, criterion=criterion)
        self._setup.run.write_evaluations(self._evaluations)
        self._setup.run.write_best(self._best)
        say(
            f"The best so far, of step {best.step:,}, was chosen by"
            f" {shown_metric(best.chosen_by)}. From here on {shown_metric(criterion)}"
            " decides."
        )

    def _keep_if_best(
        self, step: int, dev: Evaluation, others: Mapping[str, Evaluation]
    ) -> bool:
        """Adds the evaluation of the checkpoint of `step`, and keeps the checkpoint if
        it is the best so far; returns whether it is.

        The checkpoint of a repeated evaluation may be the best already. It is kept
        again, since keeping it may have been interrupted.
        """
        metrics = _finite(dev.metrics)
        other_sets = {name: _finite(result.metrics) for name, result in others.items()}
        record = DevEvaluation(step, metrics, other_sets or None)
        self._evaluations.append(record)
        criterion = dev.score.name.lower() if dev.score else LOSS
        best = self._best.metrics if self._best and self._best.step != step else {}
        better = is_better(metrics, best, criterion)
        if better:
            self._best = dataclasses.replace(record, criterion=criterion)
            self._checkpoints.save_best(self._best)
        return better

    def _criterion_changes(self) -> bool:
        """Whether the best so far was chosen by its loss and a score decides from here
        on, or the other way round.
        """
        by_score = self._hooks.score is not None
        return self._best is not None and (self._best.chosen_by == LOSS) == by_score

    def _worse_evaluations(self) -> int:
        """How many evaluations since the best were compared with it and not better."""
        best = self._best
        if best is None or self._criterion_changes():
            return 0
        worse = 0
        for evaluation in self._evaluations:
            metrics = evaluation.metrics
            is_compared = best.chosen_by in (LOSS, *metrics)
            if evaluation.step > best.step and is_compared:
                worse += not is_better(metrics, best.metrics, best.chosen_by)
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
