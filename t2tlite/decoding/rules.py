"""The rules by which text is decoded and scored: ours, or tensor2tensor's
(`t2t_rules`).

`TextDecoder` and `TokenDecoder` call the methods of `rules_of(options)`; a difference
between the two is a method here.
"""

# B batch

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from t2tlite.config import DecodeHParams
from t2tlite.decoding.length_penalty import length_penalty
from t2tlite.tasks.task import Task
from t2tlite.types import Tensor

BATCH_SENTENCES = 32  # tensor2tensor's batch_size, unless it is given


class Penalties(NamedTuple):
    """The scores that have the length penalty; the others are log-probabilities."""

    any: bool
    unfinished: bool  # those of hypotheses without an EOS


class Rules:
    """Our rules: an output depends on its source and the options alone."""

    # whether an output also depends on the sources that are decoded with it
    depends_on_batch = False
    strips = False  # whether white space at both ends of a text is removed
    scores_per_token = False  # whether `score` is a mean negative log-probability

    def task(self, task: Task) -> Task:
        """The task that makes the outputs, given the model's."""
        return task

    def batches(
        self, sources: Sequence[str], batch_size: int
    ) -> list[list[int]] | None:
        """The indices of sources to decode together; None leaves it to the decoder, in
        tokens.
        """
        return None

    def limits(
        self, lengths: Tensor, extra_length: int | Tensor, longest: int | Tensor
    ) -> Tensor:
        """The maximum tokens of each output, EOS included, int [B], given the lengths
        of its batch and the greatest of them.
        """
        return lengths + extra_length + 1  # the EOS is not counted in a source's length

    def penalties(self, options: DecodeHParams) -> Penalties:
        """Which scores have the length penalty."""
        return Penalties(any=True, unfinished=True)

    def score(self, log_prob: float, tokens: int, alpha: float) -> float:
        """The score of a given target with this log-probability and number of tokens,
        EOS included.
        """
        return log_prob / length_penalty(tokens, alpha)


class Tensor2TensorRules(Rules):
    """The rules of tensor2tensor's decoder. A parser's output stays a sequence of
    labels.
    """

    depends_on_batch = True
    strips = True
    scores_per_token = True

    def task(self, task: Task) -> Task:
        return task.as_sequences()

    def batches(
        self, sources: Sequence[str], batch_size: int
    ) -> list[list[int]] | None:
        """Batches of `batch_size` sentences, those with the most words first."""
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i].split()))
        size = batch_size or BATCH_SENTENCES
        return [order[start : start + size] for start in range(0, len(order), size)]

    def limits(
        self, lengths: Tensor, extra_length: int | Tensor, longest: int | Tensor
    ) -> Tensor:
        """As ours, but extra_length counts from the longest source of the batch."""
        return super().limits(0 * lengths + longest, extra_length, longest)

    def penalties(self, options: DecodeHParams) -> Penalties:
        """Greedy search has none."""
        return Penalties(any=options.beam_size > 1 or options.samples, unfinished=False)

    def score(self, log_prob: float, tokens: int, alpha: float) -> float:
        return -log_prob / tokens


OURS, TENSOR2TENSORS = Rules(), Tensor2TensorRules()


def rules_of(options: DecodeHParams) -> Rules:
    return TENSOR2TENSORS if options.t2t_rules else OURS
