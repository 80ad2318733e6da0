"""Metrics for outputs of which only one is right, such as a pronunciation or a sorted
list: exact match and token accuracy, in percent.

Tokens are what white space separates. Both are metrics in the form of sacrebleu's, so
that its paired bootstrap resampling tests their differences too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sacrebleu.metrics.base import Metric, Score, Signature
from sacrebleu.utils import sum_of_lists

import t2tlite

# of a sentence or of several: what is right, and what could be
Counts = list[Any]


class ShareSignature(Signature):
    """nrefs:1|case:mixed|tok:white-space|version:t2tlite-0.1.0"""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.info.update(args["settings"])


class ShareMetric(Metric):
    """The share of what is right, summed over all sentences. Of several references, the
    one that fits best counts.
    """

    name: str
    _SIGNATURE_TYPE = ShareSignature

    def __init__(self, lowercase: bool = False) -> None:
        super().__init__()
        self.lowercase = lowercase
        self.settings = {
            "case": "lc" if lowercase else "mixed",
            "tok": "white-space",
            "version": f"t2tlite-{t2tlite.__version__}",
        }

    def counts(self, output: str, reference: str) -> Counts:
        """What is right of a sentence, and what could be."""
        raise NotImplementedError

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> Counts:
        counts = [self.counts(hypothesis, each) for each in ref_kwargs["references"]]
        return max(counts, key=_share)

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _preprocess_segment(self, sent: str) -> str:
        return " ".join((sent.lower() if self.lowercase else sent).split())

    def _aggregate_and_compute(self, stats: Sequence[Counts]) -> Score:
        return self._compute_score_from_stats(sum_of_lists(stats))

    def _compute_score_from_stats(self, stats: Counts) -> Score:
        return Score(self.name, 100 * _share(stats))


class ExactMatch(ShareMetric):
    """The share of sentences whose tokens are all those of the reference."""

    name = "exact_match"

    def counts(self, output: str, reference: str) -> Counts:
        return [output == reference, 1]


class TokenAccuracy(ShareMetric):
    """The share of positions with the reference's token; a sentence has as many
    positions as the longer of output and reference.
    """

    name = "token_accuracy"

    def counts(self, output: str, reference: str) -> Counts:
        tokens = output.split()
        expected = reference.split()
        right = sum(map(str.__eq__, tokens, expected))
        return [right, max(len(tokens), len(expected))]


def _share(counts: Counts) -> float:
    """1 if nothing could be right: an empty output for an empty reference."""
    right, possible = map(float, counts)
    return right / possible if possible else 1.0
