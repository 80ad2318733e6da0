"""Evaluates the dev sets in training, keeps the best checkpoint, and decides when
training stops early.
"""

import dataclasses
import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import counted, say
from t2tlite.data.batch_plan import evaluation_plan, not_evaluated
from t2tlite.data.input_pipeline import Part, distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.run_folder import RunFolder
from t2tlite.run_records import LOSS, DevEvaluation, EvaluationsFile, OnEvaluation
from t2tlite.tasks.task import Score, lower_is_better
from t2tlite.training.checkpoints import Checkpoints
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.progress import Progress
from t2tlite.training.signals import Signals
from t2tlite.training.train_step import correct_tokens, smoothed_cross_entropy
from t2tlite.types import Seq2SeqModel, Tensor

MAX_EXPONENT = 88.0  # above, exp is infinite in float32, in which TensorBoard stores it
# Percent. A score below this, such as the BLEU of a model that has hardly been trained,
# is noise; the loss then decides.
LEAST_SCORE = 1.0


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on a split."""

    loss: float  # nats per target token, without label smoothing
    accuracy: float  # share of target tokens given the highest probability
    tokens: int  # target tokens evaluated
    score: Score | None = None  # of the outputs, if the split was decoded

    def __str__(self) -> str:
        loss = f"loss {self.loss:.4f}, perplexity {self.perplexity:.3f}"
        line = f"{loss}, accuracy {self.accuracy:.4f}"
        return f"{line}, {self.score}" if self.score else line

    @property
    def metrics(self) -> dict[str, float]:
        metrics = {
            "loss": self.loss,
            "perplexity": self.perplexity,
            "accuracy": self.accuracy,
        }
        return metrics | self.score.metrics if self.score else metrics

    @property
    def perplexity(self) -> float:
        """exp(loss), per token of the vocabulary as in the paper's Table 3; infinite
        above float32.
        """
        return math.inf if self.loss > MAX_EXPONENT else math.exp(self.loss)


Evaluate = Callable[[], Evaluation]
# decodes the dev sets of these names, and returns their scores
ScoreSets = Callable[[Sequence[str]], Mapping[str, Score]]


def make_evaluation(
    strategy: tf.distribute.Strategy,
    model: Seq2SeqModel,
    store: TokenStore,
    max_batches: int = 0,
) -> Evaluate:
    """A function that evaluates the model on one split, with its weights at that time.

    Pairs of `store` that are too long (`not_evaluated`) do not count. `max_batches`
    limits the number of batches; 0 means the whole split. Raises ValueError if every
    pair is too long.
    """
    lengths = store.source_lengths, store.target_lengths
    plan = evaluation_plan(model.hparams, *lengths, strategy.num_replicas_in_sync)
    batches = min(max_batches or plan.num_batches, plan.num_batches)

    def replica_step(part: Part) -> Tensor:
        inputs, targets = part.inputs[0], part.targets[0]
        logits = model(inputs, targets)
        loss, tokens = smoothed_cross_entropy(logits, targets, 0.0)
        return tf.stack([loss, tokens, correct_tokens(logits, targets)])

    @tf.function(reduce_retracing=True, autograph=False)
    def step(iterator: Iterator[Part]) -> Tensor:
        sums = strategy.run(replica_step, args=(next(iterator),))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, sums, axis=None)

    def evaluate() -> Evaluation:
        iterator = iter(distribute(strategy, store, plan, 0, batches))
        sums = np.zeros(3)
        for _ in range(batches):
            sums += step(iterator).numpy()
        loss, tokens, correct = sums.tolist()
        return Evaluation(loss / tokens, correct / tokens, int(tokens))

    return evaluate


def report_left_out(hparams: HParams, store: TokenStore, name: str) -> None:
    """Says how many pairs of the split `name` are too long to be evaluated, if any
    are.
    """
    rows = not_evaluated(hparams, store.source_lengths, store.target_lengths)
    if len(rows):
        limit = f"Longer than {hparams.max_evaluated_length - 1:,} tokens"
        pairs = f"{counted(len(rows), 'pair')} of {name}"
        say(f"{limit} and left out of each evaluation: {pairs}.")


@dataclasses.dataclass
class DevSets:
    """The dev sets of a run that is at `step`, the evaluations up to there, the best,
    and what they decide.

    `evaluate` has a function for each set. With `score` the score of the first set
    decides which evaluation is the best, otherwise its loss.
    """

    run: RunFolder
    config: LoopConfig
    checkpoints: Checkpoints
    evaluate: Mapping[str, Evaluate]
    score: ScoreSets | None
    on_evaluation: OnEvaluation | None
    step: dataclasses.InitVar[int]

    def __post_init__(self, step: int) -> None:
        self.best = self.checkpoints.best()
        # Without a best checkpoint, the newest is evaluated again, so that it becomes
        # the best.
        until = step if self.best else step - 1
        recorded = self.run.evaluations()
        self.evaluations = [each for each in recorded if each.step <= until]

    def is_due(self, step: int) -> bool:
        """Whether the weights of a step are evaluated. Those of step 0 are if they were
        saved, which only a warm start does.
        """
        every = self.config.local_eval_frequency
        if step == 0 or step >= self.config.train_steps:
            return True
        return every > 0 and step % every == 0

    def lacks(self, step: int) -> bool:
        """Whether the checkpoint of a step was to be evaluated, but is not recorded."""
        return self.is_due(step) and step not in [e.step for e in self.evaluations]

    def stops_early(self) -> bool:
        """Whether the last evaluations were not better than the best."""
        return 0 < self.config.early_stopping_evals <= self._worse_evaluations()

    def nothing_to_train(self, step: int) -> bool:
        """Whether a run at this step is finished; says so."""
        steps = self.config.train_steps
        if step < steps and not self.stops_early():
            return False
        reason = "stopped early" if step < steps else "is"
        say(f"Nothing to train: the run {reason} at step {step:,} of {steps:,}.")
        return True

    @property
    def deciding(self) -> str:
        """The name of the set that decides."""
        return next(iter(self.evaluate))

    def evaluate_and_keep(
        self,
        step: int,
        signals: Signals,
        progress: Progress,
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
            for name, evaluate in self.evaluate.items():
                results[name] = evaluate()
            if self.score is not None:
                progress.doing("decoding dev")
                scores = self.score(list(results))
        for name, score in scores.items():
            results[name] = dataclasses.replace(results[name], score=score)
        dev = results.pop(self.deciding)
        better = self._keep_if_best(step, dev, results)
        say(f"step {step:,}: dev {dev}" + (" (best so far)" if better else ""))
        for name, result in results.items():
            say(f"  {name}: {result}")
        for name, result in {"dev": dev, **results}.items():
            progress.record(step, name, result.metrics)
        self.run.write(EvaluationsFile(tuple(self.evaluations)))
        progress.doing("")
        if self.on_evaluation is not None:
            self.on_evaluation(self.evaluations[-1])
        signals.check(step)
        return dev

    def adopt_criterion(self, step: int, signals: Signals, progress: Progress) -> None:
        """Compares the best checkpoint so far by the metric that decides from here on.

        If that is a score, the best is decoded once; then the model has the weights of
        the newest checkpoint, of `step`, again.
        """
        best = self.best
        if best is None or not self._criterion_changes(best):
            return
        metrics = dict(best.metrics)
        criterion = LOSS
        if self.score is not None:
            self.checkpoints.restore_best(best)
            progress.doing("decoding dev with the best so far")
            with signals.ending_at_once(step):
                score = self.score([self.deciding])[self.deciding]
            progress.doing("")
            self.checkpoints.restore()
            metrics |= score.metrics
            criterion = score.name.lower()
        self.best = dataclasses.replace(best, metrics=metrics, criterion=criterion)
        self.run.write(self.best)
        decides = f"From here on dev {criterion} decides"
        say(f"{decides}. The best so far is step {best.step:,}.")

    def _keep_if_best(
        self,
        step: int,
        dev: Evaluation,
        others: Mapping[str, Evaluation],
    ) -> bool:
        """Adds the evaluation of the checkpoint of `step`, and keeps the checkpoint if
        it is the best so far; returns whether it is.

        The checkpoint of a repeated evaluation may be the best already. It is kept
        again, since keeping it may have been interrupted.
        """
        metrics = _finite(dev.metrics)
        other_sets = {name: _finite(result.metrics) for name, result in others.items()}
        record = DevEvaluation(step, metrics, other_sets or None)
        self.evaluations.append(record)
        criterion = dev.score.name.lower() if dev.score else LOSS
        best = self.best.metrics if self.best and self.best.step != step else {}
        better = is_better(metrics, best, criterion)
        if better:
            self.best = dataclasses.replace(record, criterion=criterion)
            self.checkpoints.save_best(self.best)
        return better

    def _criterion_changes(self, best: DevEvaluation) -> bool:
        """Whether the best so far was chosen by its loss and a score decides from here
        on, or the other way round.
        """
        return (best.chosen_by == LOSS) == (self.score is not None)

    def _worse_evaluations(self) -> int:
        """How many evaluations since the best were compared with it and not better."""
        best = self.best
        if best is None or self._criterion_changes(best):
            return 0
        worse = 0
        for evaluation in self.evaluations:
            metrics = evaluation.metrics
            is_compared = best.chosen_by in (LOSS, *metrics)
            if evaluation.step > best.step and is_compared:
                worse += not is_better(metrics, best.metrics, best.chosen_by)
        return worse


def is_better(
    metrics: Mapping[str, float],
    best: Mapping[str, float],
    criterion: str,
) -> bool:
    """Whether an evaluation is better than the best so far, {} if there is none.

    By loss and by metrics that count errors, the lower one is. By another score, the
    higher one; scores below LEAST_SCORE are equal. Scores are compared as they are
    shown, with two digits, and of equal scores the lower loss decides.
    """
    lower_loss = metrics.get(LOSS, math.inf) < best.get(LOSS, math.inf)
    if criterion == LOSS:
        return lower_loss
    if criterion not in best:
        return True
    score = _gain(metrics, criterion)
    best_score = _gain(best, criterion)
    return score > best_score or (score == best_score and lower_loss)


def _gain(metrics: Mapping[str, float], criterion: str) -> float:
    """The score as it is compared: greater is better."""
    if lower_is_better(criterion):
        return -round(metrics.get(criterion, math.inf), 2)
    score = metrics.get(criterion, 0.0)
    return 0.0 if score < LEAST_SCORE else round(score, 2)


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    """The metrics that a record may hold: neither infinite nor not a number."""
    return {name: value for name, value in metrics.items() if math.isfinite(value)}
