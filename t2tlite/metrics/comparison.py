"""Two systems on one test set: whether their scores differ significantly, and in which
sentences they differ most.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple, cast

from sacrebleu.significance import PairedTest

from t2tlite.metrics.corpus_metrics import (
    BOOTSTRAP_SAMPLES,
    DEFAULTS,
    SACREBLEUS_SEED,
    MetricOptions,
    checked_lines,
    counts_errors,
    make_metrics,
    seeded,
)

# a p-value below it
SIGNIFICANT = 0.05


class Difference(NamedTuple):
    """The scores of a baseline and a system by one metric, and the significance of
    their difference.

    Attributes:
        metric: BLEU, chrF2, TER, ...
        baseline: the baseline's score.
        baseline_interval: mean over the resamples, half of the 95% confidence interval.
        system: the system's score.
        system_interval: as `baseline_interval`.
        p: the probability of a difference at least as large, up or down, if the two
            were equally good.
        signature: how the scores were computed.
    """

    metric: str
    baseline: float
    baseline_interval: tuple[float, float]
    system: float
    system_interval: tuple[float, float]
    p: float
    signature: str

    @property
    def is_significant(self) -> bool:
        return self.p < SIGNIFICANT


def paired_bootstrap(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    options: MetricOptions = DEFAULTS,
    seed: int = SACREBLEUS_SEED,
    more_references: Sequence[Sequence[str]] = (),
) -> list[Difference]:
    """Paired bootstrap resampling (Koehn, 2004): do two systems differ by more than the
    choice of sentences explains?

    1,000 test sets are drawn from the sentences, with replacement, and both systems are
    scored on each. The other arguments are those of `corpus_scores`. Raises ValueError
    as it does.
    """
    sides = checked_lines(baseline, system, references, *more_references)
    baseline, system, *all_references = sides
    made = make_metrics(metrics, options)
    with seeded(seed):
        signatures, results = PairedTest(
            [("baseline", baseline), ("system", system)],
            # it names them itself
            {str(number): metric for number, metric in enumerate(made)},
            all_references,
            test_type="bs",
            n_samples=BOOTSTRAP_SAMPLES,
        )()
    differences = []
    for name, signature in signatures.items():
        # sacrebleu's `Result`
        old, new = cast(list[Any], results[name])
        difference = Difference(
            metric=name,
            baseline=float(old.score),
            baseline_interval=(float(old.mean), float(old.ci)),
            system=float(new.score),
            system_interval=(float(new.mean), float(new.ci)),
            # for equal scores sacrebleu reports its smallest p-value
            p=1.0 if old.score == new.score else float(new.p_value),
            signature=str(signature),
        )
        differences.append(difference)
    return differences


class Change(NamedTuple):
    """A sentence that two systems translate differently.

    Attributes:
        line: its number, from 1.
        reference: the first of its references.
        baseline: the baseline's translation.
        system: the system's translation.
        gain: by how much the score of the system's is better; below 0 if it is worse.
    """

    line: int
    reference: str
    baseline: str
    system: str
    gain: float


def largest_changes(
    baseline: Sequence[str],
    system: Sequence[str],
    references: Sequence[str],
    metric: str = "chrf",
    options: MetricOptions = DEFAULTS,
    more_references: Sequence[Sequence[str]] = (),
    count: int = 5,
) -> list[Change]:
    """The `count` sentences that the system translates better than the baseline by the
    largest difference of a metric, then those that it translates worse, each with the
    largest difference first. The metric computes the score of each sentence. Other
    arguments and errors are those of `paired_bootstrap`.
    """
    sides = checked_lines(baseline, system, references, *more_references)
    [made] = make_metrics([metric], options)
    sign = -1 if counts_errors(made) else 1
    changes = []
    for line, (old, new, *right) in enumerate(zip(*sides, strict=True), start=1):
        before = made.sentence_score(old, right).score
        gain = sign * (made.sentence_score(new, right).score - before)
        changes.append(Change(line, right[0], old, new, gain))
    changes.sort(key=lambda change: -change.gain)
    better = [change for change in changes[:count] if change.gain > 0]
    worse = [change for change in changes[-count:] if change.gain < 0]
    return better + worse[::-1]
