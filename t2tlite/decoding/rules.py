"""The rules by which text is decoded and scored: ours, or tensor2tensor's
(`t2t_rules`).

What differs between the two is a method or an attribute of `rules_of(options)`.
"""

# B batch

from collections.abc import Sequence
from typing import Any

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.types import Tensor

BATCH_SENTENCES = 32  # tensor2tensor's default batch size


def length_penalty(length: Any, alpha: Any) -> Any:
    """((5 + length) / 6)^alpha, by which beam search compares hypotheses of different
    lengths (Wu et al., 2016, equation 14).

    `length` is in tokens, EOS included. Both are floats, or tensors of floats.
    """
    return ((5.0 + length) / 6.0) ** alpha


class Rules:
    """Our rules: an output depends only on its source and the options."""

    # whether an output also depends on the other sources of its batch
    depends_on_batch = False
    strips = False  # whether white space at both ends of a text is removed
    keeps_sequences = False  # whether outputs are the decoded sequences themselves
    # whether the scores of hypotheses without an EOS have a length penalty too
    penalises_unfinished = True
    scores_per_token = False  # whether `score` is a mean negative log-probability

    def batches(
        self, sources: Sequence[str], batch_size: int
    ) -> list[list[int]] | None:
        """The indices of the sources of each batch, or None to batch by tokens."""
        return None

    def limits(
        self, lengths: Tensor, extra_length: int | Tensor, longest: int | Tensor
    ) -> Tensor:
        """The maximum tokens of each output, EOS included, int [B], given the lengths
        of its batch and the greatest of them.
        """
        return lengths + extra_length + 1

    def penalises(self, options: DecodeHParams) -> bool:
        """Whether scores have a length penalty."""
        return True

    def score(self, log_prob: float, tokens: int, alpha: float) -> float:
        """The score of a given target from its log-probability and its number of
        tokens, EOS included.
        """
        return log_prob / length_penalty(tokens, alpha)


class Tensor2TensorRules(Rules):
    """The rules of tensor2tensor's decoder."""

    depends_on_batch = True
    strips = True
    keeps_sequences = True
    penalises_unfinished = False
    scores_per_token = True

    def batches(
        self, sources: Sequence[str], batch_size: int
    ) -> list[list[int]] | None:
        """Batches of `batch_size` sentences, those with the most words first."""
        words = [len(source.split()) for source in sources]
        order = np.argsort(-np.array(words, np.int64), kind="stable").tolist()
        size = batch_size or BATCH_SENTENCES
        return [order[start : start + size] for start in range(0, len(order), size)]

    def limits(
        self, lengths: Tensor, extra_length: int | Tensor, longest: int | Tensor
    ) -> Tensor:
        """As ours, but extra_length counts from the longest source of the batch."""
        return 0 * lengths + longest + extra_length + 1

    def penalises(self, options: DecodeHParams) -> bool:
        """As ours, but greedy search has no length penalty."""
        return options.beam_size > 1 or options.samples

    def score(self, log_prob: float, tokens: int, alpha: float) -> float:
        return -log_prob / tokens


OURS = Rules()
TENSOR2TENSORS = Tensor2TensorRules()


def rules_of(options: DecodeHParams) -> Rules:
    return TENSOR2TENSORS if options.t2t_rules else OURS
