"""BLEU, chrF and TER of whole test sets, and whether two systems differ significantly
in them.

All are sacrebleu's, with the settings of its command line: chrF with character 6-grams,
beta 2 and no word n-grams; TER as TERCOM computes it, ignoring case. Higher is better
for BLEU and chrF, lower for TER.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from t2tlite.checked_fields import check_seed

METRICS = ("bleu", "chrf", "ter")
FAST_METRICS = ("bleu", "chrf")
# sacrebleu's that need no download or package
TOKENIZERS = ("13a", "intl", "zh", "char", "none")
RESAMPLES = 1000
SEED = 12345  # sacrebleu's
SIGNIFICANT = 0.05  # a p-value below it
_SEED_VARIABLE = "SACREBLEU_SEED"  # the only way to give sacrebleu a seed


class CorpusScore(NamedTuple):
    """A score and how it was computed. `str(score)` is the line that sacrebleu prints:

    chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 57.72
    """

    result: Score  # sacrebleu's, with `name` and `score`
    signature: str  # in sacrebleu's notation

    def __str__(self) -> str:
        return self.result.format(signature=self.signature)


def corpus_scores(
    translations: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    tokenize: str = "13a",
    lowercase: bool = False,
    more_references: Sequence[Sequence[str]] = (),
) -> list[CorpusScore]:
    """sacrebleu's scores of plain, detokenised text against one reference or several, a
    score for each of `metrics`.

    Translations and references are one sentence per line, in the same order;
    `more_references` are further references of the same sentences. `metrics` are of
    METRICS. `tokenize` is how BLEU splits text: "13a", the standard; "intl",
    which also splits at Unicode punctuation and symbols, as tensor2tensor's t2t-bleu
    does; "zh"; "char"; or "none" for tokenised text. With `lowercase`, BLEU and chrF
    ignore case, as TER always does. Raises ValueError for another metric or `tokenize`,
    if there are no translations, or not as many as references.
    """
    all_references = [references, *more_references]
    check_lines(translations, *all_references)
    scores = []
    for metric in _metrics(metrics, tokenize, lowercase):
        result = metric.corpus_score(translations, all_references)
        scores.append(CorpusScore(result, str(metric.get_signature())))
    return scores


def check_lines(translations: Sequence[str], *references: Sequence[str]) -> None:
    """Raises ValueError if there are no translations, or not as many as references."""
    for lines in references:
        if len(translations) != len(lines):
            raise ValueError(
                f"Each translation needs one reference. Received: {len(translations)}"
                f" translations and {len(lines)} references. Give both in the same"
                " order, one per line."
            )
    if not translations:
        raise ValueError(
            "A score needs at least one translation. Received: none. Give translations"
            " and their references."
        )


class Difference(NamedTuple):
    """The scores of a baseline and a system by one metric, and the significance of
    their difference.
    """

    metric: str  # BLEU, chrF2 or TER
    baseline: float
    # mean over the resamples, half of the 95% confidence interval
    baseline_interval: tuple[float, float]
    system: float
    system_interval: tuple[float, float]
    # probability of a difference at least as large, up or down, if the two were equally
    # good
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
    tokenize: str = "13a",
    lowercase: bool = False,
    seed: int = SEED,
    more_references: Sequence[Sequence[str]] = (),
) -> list[Difference]:
    """Paired bootstrap resampling (Koehn, 2004): do two systems differ by more than the
    choice of sentences explains?

    1,000 test sets are drawn from the sentences, with replacement, and both systems are
    scored on each. The other arguments are those of `corpus_scores`. Raises ValueError
    as it does, and for a seed that NumPy does not take.
    """
    all_references = [references, *more_references]
    for translations in (baseline, system):
        check_lines(translations, *all_references)
    check_seed("seed", seed)
    chosen = {
        type(metric).__name__: metric
        for metric in _metrics(metrics, tokenize, lowercase)
    }
    with _seeded(seed):
        test = PairedTest(
            [("baseline", baseline), ("system", system)],
            chosen,
            all_references,
            test_type="bs",
            n_samples=RESAMPLES,
        )
        signatures, results = test()
    differences = []
    for name, signature in signatures.items():
        old, new = cast(list[Any], results[name])  # sacrebleu's `Result`
        # sacrebleu's is the smallest possible then
        p = 1.0 if old.score == new.score else new.p_value
        difference = Difference(
            metric=name,
            baseline=float(old.score),
            baseline_interval=(float(old.mean), float(old.ci)),
            system=float(new.score),
            system_interval=(float(new.mean), float(new.ci)),
            p=float(p),
            signature=str(signature),
        )
        differences.append(difference)
    return differences


def _metrics(names: Sequence[str], tokenize: str, lowercase: bool) -> list[Metric]:
    if tokenize not in TOKENIZERS:
        raise ValueError(
            f"tokenize must be one of {', '.join(TOKENIZERS)}. Received: {tokenize!r}."
        )
    metrics = {
        "bleu": lambda: BLEU(tokenize=tokenize, lowercase=lowercase),
        "chrf": lambda: CHRF(lowercase=lowercase),
        "ter": TER,
    }
    for name in names:
        if name not in METRICS:
            raise ValueError(
                f"metrics must be of {', '.join(METRICS)}. Received: {name!r}."
            )
    return [metrics[name]() for name in dict.fromkeys(names)]


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Makes sacrebleu use this seed."""
    before = os.environ.get(_SEED_VARIABLE)
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        del os.environ[_SEED_VARIABLE]
        if before is not None:
            os.environ[_SEED_VARIABLE] = before
