"""The rules by which text is decoded and scored: ours, or tensor2tensor's
(`t2t_rules`). What differs between the two is a method or an attribute of
`rules_of(options)`.
"""

# B batch

from collections.abc import Sequence
from typing import Any

from t2tlite.config import DecodeHParams
from t2tlite.types import Tensor

# tensor2tensor's default
T2T_SENTENCES = 32


def length_penalty(length: Tensor | float, alpha: Tensor | float) -> Any:
    """((5 + length) / 6)^alpha, by which beam search compares hypotheses of different
    lengths in tokens, EOS included (Wu et al., 2016, equation 14).
    """
    return ((5.0 + length) / 6.0) ** alpha


class Rules:
    """The rules by which outputs are made and scored: ours, by which an output depends
    only on its source and the options, or those of tensor2tensor's decoder.

    Attributes:
        depends_on_batch: whether an output also depends on the other sources of its
            batch.
        keeps_sequences: whether outputs are the decoded sequences themselves.
        scores_per_token: whether `score` is a mean negative log-probability.
        penalises_unfinished: whether the scores of hypotheses without an EOS have a
            length penalty too.
    """

    def __init__(self, of_t2t: bool) -> None:
        self._of_t2t = of_t2t
        self.depends_on_batch = of_t2t
        self.keeps_sequences = of_t2t
        self.scores_per_token = of_t2t
        self.penalises_unfinished = not of_t2t

    def batches(self, sources: Sequence[str], size: int) -> list[list[int]] | None:
        """The indices of the sources of each batch, or None to batch by tokens:
        tensor2tensor's are `size` sentences, those with the most words first.
        """
        if not self._of_t2t:
            return None
        order = sorted(range(len(sources)), key=lambda i: -len(sources[i].split()))
        size = size or T2T_SENTENCES
        return [order[start : start + size] for start in range(0, len(order), size)]

    def limits(self, lengths: Tensor, extra_length: int, longest: Tensor) -> Tensor:
        """The maximum tokens of each output, EOS included, int [B], given the lengths
        of its batch and the greatest of them, from which tensor2tensor counts
        extra_length.
        """
        if self._of_t2t:
            lengths = 0 * lengths + longest
        return lengths + extra_length + 1

    def penalises(self, options: DecodeHParams) -> bool:
        """Whether scores have a length penalty; in tensor2tensor's greedy search they
        have none.
        """
        return not self._of_t2t or options.beam_size > 1 or options.samples

    def score(self, log_prob: float, tokens: int, alpha: float) -> float:
        """The score of a given target from its log-probability and its number of
        tokens, EOS included.
        """
        if self._of_t2t:
            return -log_prob / tokens
        return log_prob / length_penalty(tokens, alpha)


def rules_of(options: DecodeHParams) -> Rules:
    return Rules(options.t2t_rules)
