"""Metrics for outputs of which only one is right, such as a pronunciation or a sorted
list, in percent: exact match, token accuracy, and the two by which pronunciations are
scored, WER and PER.

Tokens are what white space separates, of text as vocabularies read it. All are metrics
in the form of sacrebleu's, so that its paired bootstrap resampling tests their
differences too.
"""

from collections.abc import Sequence
from typing import Any, ClassVar

from sacrebleu.metrics.base import Metric, Score, Signature
from sacrebleu.utils import sum_of_lists

import t2tlite
from t2tlite.metrics.corpus_metrics import MetricOptions
from t2tlite.registry import register_metric, snake_case
from t2tlite.vocabularies.normalisation import normalise

# of a sentence or of several: what is counted, and out of how many
Counts = list[Any]


class ShareSignature(Signature):
    """nrefs:1|case:mixed|tok:white-space|version:t2tlite-0.1.0"""

    def __init__(self, args: dict[str, Any]) -> None:
        super().__init__(args)
        self.info.update(args["settings"])


class ShareMetric(Metric):
    """The share of what is counted, summed over all sentences. Of several references,
    the one that fits best counts.
    """

    # whether lower is better
    counts_errors: ClassVar[bool] = False
    _SIGNATURE_TYPE = ShareSignature

    def __init__(self, options: MetricOptions) -> None:
        super().__init__()
        self.lowercase = options.lowercase
        self.settings = {
            "case": "lc" if self.lowercase else "mixed",
            "tok": "white-space",
            "version": f"t2tlite-{t2tlite.__version__}",
        }

    def counts(self, output: str, reference: str) -> Counts:
        """What is counted of a sentence, and out of how many."""
        raise NotImplementedError

    def _compute_segment_statistics(
        self, hypothesis: str, ref_kwargs: dict[str, Any]
    ) -> Counts:
        counts = [self.counts(hypothesis, each) for each in ref_kwargs["references"]]
        best = min if self.counts_errors else max
        return best(counts, key=self._share)

    def _extract_reference_info(self, refs: Sequence[str]) -> dict[str, Any]:
        return {"references": refs}

    def _preprocess_segment(self, sent: str) -> str:
        return normalise(sent.lower() if self.lowercase else sent)

    def _aggregate_and_compute(self, stats: Sequence[Counts]) -> Score:
        return self._compute_score_from_stats(sum_of_lists(stats))

    def _compute_score_from_stats(self, stats: Counts) -> Score:
        return Score(snake_case(type(self).__name__), 100 * self._share(stats))

    def _share(self, counts: Counts) -> float:
        """The best share if nothing was counted of nothing, as of an empty output for
        an empty reference.
        """
        count, possible = map(float, counts)
        if possible:
            return count / possible
        return float(self.counts_errors == (count > 0))


@register_metric
class ExactMatch(ShareMetric):
    """The share of sentences whose tokens are all those of the reference."""

    def counts(self, output: str, reference: str) -> Counts:
        return [output == reference, 1]


@register_metric
class TokenAccuracy(ShareMetric):
    """The share of positions with the reference's token; a sentence has as many
    positions as the longer of output and reference.
    """

    def counts(self, output: str, reference: str) -> Counts:
        tokens = output.split()
        expected = reference.split()
        right = sum(map(str.__eq__, tokens, expected))
        return [right, max(len(tokens), len(expected))]


@register_metric
class WER(ShareMetric):
    """Word error rate of pronunciations: the share of lines that equal no reference;
    lower is better.
    """

    counts_errors = True

    def counts(self, output: str, reference: str) -> Counts:
        return [output != reference, 1]


@register_metric
class PER(ShareMetric):
    """Phoneme error rate: tokens inserted, left out or replaced, for each token of the
    nearest reference; lower is better.
    """

    counts_errors = True

    def counts(self, output: str, reference: str) -> Counts:
        tokens = reference.split()
        return [edit_distance(output.split(), tokens), len(tokens)]


def edit_distance(output: Sequence[str], reference: Sequence[str]) -> int:
    """How many tokens to insert, leave out or replace at least (Levenshtein, 1966)."""
    # of the tokens before, to each prefix
    row = list(range(len(reference) + 1))
    for i, token in enumerate(output):
        last = row[0]
        row[0] = i + 1
        for j, expected in enumerate(reference, start=1):
            replaced = last + (token != expected)
            last = row[j]
            row[j] = min(replaced, last + 1, row[j - 1] + 1)
    return row[-1]
