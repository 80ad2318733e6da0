"""The evaluations on dev of a run, and the best of them: by loss, or by the score of
decoded dev.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping

from t2tlite.run_folder import RunFolder
from t2tlite.run_records import LOSS, DevEvaluation
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import Checkpoints
from t2tlite.training.evaluation import Evaluated

# Percent. A score below this, such as the BLEU of a model that has hardly been trained,
# is noise; the loss then decides.
LEAST_SCORE = 1.0


class DevRecord:
    """The evaluations of a run up to the newest checkpoint, of `step`, and the best.

    `by_score` is whether dev is decoded, so that its score decides from here on. With
    `writes` false, for workers other than the chief, nothing is written.
    """

    def __init__(
        self,
        run: RunFolder,
        checkpoints: Checkpoints,
        step: int,
        by_score: bool,
        writes: bool,
    ) -> None:
        self._run = run
        self._checkpoints = checkpoints
        self._by_score = by_score
        self._writes = writes
        # the best evaluation on dev, or None if there is none yet
        self.best = checkpoints.best()
        # Without a best checkpoint, the newest is evaluated again, so that it becomes
        # the best.
        until = step if self.best else step - 1
        self.evaluations = [
            evaluation for evaluation in run.evaluations() if evaluation.step <= until
        ]

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
        if self._writes:
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
        if self._writes:
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
