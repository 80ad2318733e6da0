"""Loss, perplexity and accuracy on a split, with teacher forcing."""

import dataclasses
import math
from collections.abc import Callable, Iterator

import numpy as np
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import counted
from t2tlite.data.batch_plan import evaluation_plan, not_evaluated
from t2tlite.data.input_pipeline import Part, distribute
from t2tlite.data.token_store import TokenStore
from t2tlite.tasks.task import Score
from t2tlite.training.train_step import correct_tokens, smoothed_cross_entropy
from t2tlite.types import Seq2SeqModel, Tensor

MAX_EXPONENT = 88.0  # above, exp is infinite in float32, in which TensorBoard stores it


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """The metrics of a model on a split."""

    loss: float  # nats per target token, without label smoothing
    accuracy: float  # share of target tokens given the highest probability
    tokens: int  # target tokens evaluated
    score: Score | None = None  # of the outputs, if the split was decoded

    def __str__(self) -> str:
        line = (
            f"loss {self.loss:.4f}, perplexity {self.perplexity:.3f}, accuracy"
            f" {self.accuracy:.4f}"
        )
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


def make_evaluation(
    strategy: tf.distribute.Strategy,
    model: Seq2SeqModel,
    store: TokenStore,
    max_batches: int = 0,
) -> Callable[[], Evaluation]:
    """A function that evaluates the model on one split, with its weights at that time.

    Pairs of `store` that are too long (`left_out`) do not count. `max_batches` limits
    the number of batches; 0 means the whole split. Raises ValueError if every pair is
    too long.
    """
    lengths = store.source_lengths, store.target_lengths
    plan = evaluation_plan(model.hparams, *lengths, strategy.num_replicas_in_sync)
    batches = min(max_batches or plan.num_batches, plan.num_batches)

    def replica_step(part: Part) -> tuple[Tensor, Tensor, Tensor]:
        inputs, targets = part.inputs[0], part.targets[0]
        logits = model(inputs, targets)
        loss, tokens = smoothed_cross_entropy(logits, targets, 0.0)
        return loss, tokens, correct_tokens(logits, targets)

    @tf.function(reduce_retracing=True, autograph=False)
    def step(iterator: Iterator[Part]) -> list[Tensor]:
        parts = strategy.run(replica_step, args=(next(iterator),))
        totals = []
        for value in parts:
            totals.append(strategy.reduce(tf.distribute.ReduceOp.SUM, value, axis=None))
        return totals

    def evaluate() -> Evaluation:
        iterator = iter(distribute(strategy, store, plan, 0, batches))
        sums = np.zeros(3)
        for _ in range(batches):
            sums += [float(value) for value in step(iterator)]
        loss, tokens, correct = sums.tolist()
        return Evaluation(loss / tokens, correct / tokens, int(tokens))

    return evaluate


def left_out(hparams: HParams, store: TokenStore, name: str) -> str | None:
    """A line on the pairs of the split `name` that are too long to be evaluated; None
    if there are none.
    """
    rows = not_evaluated(hparams, store.source_lengths, store.target_lengths)
    if not len(rows):
        return None
    limit = hparams.max_evaluated_length - 1
    return (
        f"Longer than {limit:,} tokens and left out of each evaluation:"
        f" {counted(len(rows), 'pair')} of {name}, the first in line {rows[0] + 1:,}."
    )
