"""Evaluates the dev sets in training, keeps the best checkpoint, and decides when
training stops early.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from t2tlite.console import counted, say
from t2tlite.tasks.task import Score
from t2tlite.training.checkpoints import Checkpoints, restore_weights
from t2tlite.training.dev_record import DevRecord
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
from t2tlite.training.workers import is_chief

# Samples are decoded only after this many seconds of training, or at its end: compiling
# their search takes seconds, once.
SAMPLES_AFTER_SECONDS = 60.0


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
        self._writes = is_chief(setup.strategy)  # the other workers write nothing
        self._started = time.monotonic()
        self._deciding = next(iter(setup.dev_sets))
        self._evaluations = {}
        for name, store in setup.dev_sets.items():
            self._evaluations[name] = make_evaluation(
                setup.strategy, setup.model, store, config.eval_steps
            )
        self._record = DevRecord(
            setup.run,
            checkpoints,
            step,
            by_score=hooks.score is not None,
            writes=self._writes,
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
        progress.evaluated(step, dev, better)
        for name, result in results.items():
            progress.evaluated_also(name, step, result)
        self._record.write()
        if self._hooks.samples and self._writes and self._shows_samples(step):
            progress.doing("decoding samples")
            with signals.ending_at_once(step, "the decoding of samples"):
                samples = self._hooks.samples()
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
