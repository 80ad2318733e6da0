"""The metrics of whole test sets, and whether two systems differ significantly in them.

BLEU, chrF and TER are sacrebleu's, with the settings of its command line: chrF with
character 6-grams, beta 2 and no word n-grams; TER as TERCOM computes it, ignoring case.
`sequence_metrics.py` has those for outputs that are not translations. A metric is a
class in sacrebleu's form that `register_metric` makes known.
"""

import contextlib
import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, cast

from sacrebleu.metrics.base import Metric, Score
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF
from sacrebleu.metrics.ter import TER
from sacrebleu.significance import PairedTest

from t2tlite.checked_fields import MAX_SEED, CheckedFields, checked, checked_field
from t2tlite.registry import get_metric, register_metric
from t2tlite.texts import list_of_texts

TOKENIZERS = tuple(BLEU.TOKENIZERS)
BOOTSTRAP_SAMPLES = 1000
SACREBLEUS_SEED = 12345
SIGNIFICANT = 0.05  # a p-value below it
_SEED_VARIABLE = "SACREBLEU_SEED"  # the only way to give sacrebleu a seed


@dataclasses.dataclass(frozen=True)
class MetricOptions(CheckedFields):
    """How the metrics are computed."""

    called = "options of metrics"

    tokenize: str = checked_field(
        "13a",
        "sacrebleu's tokenisation for BLEU: 13a, intl, zh, char, none; ja-mecab,"
        " ko-mecab (pip install 'sacrebleu[ja]', 'sacrebleu[ko]'); flores101,"
        " flores200, spBLEU-1K, which download a model.",
        choices=TOKENIZERS,
    )
    lowercase: bool = checked_field(
        False, "Ignore case in all metrics, as TER always does."
    )
    chrf_word_order: int = checked_field(
        0, "Longest word n-grams of chrF; 2 for chrF2++.", low=0, high=10
    )
    confidence: bool = checked_field(
        False,
        "Also the 95% confidence interval of each score, over 1,000 test sets drawn"
        " from the sentences (bootstrap resampling).",
    )


DEFAULTS = MetricOptions()


class Scoring(NamedTuple):
    """What is scored with the outputs of a split, and how."""

    metrics: tuple[str, ...] = ()  # registered names; by default the task's own
    options: MetricOptions = DEFAULTS
    more_references: tuple[Sequence[str], ...] = ()  # of the same sentences


OF_TASK = Scoring()


class CorpusScore(NamedTuple):
    """A score and how it was computed. `str(score)` is the line that sacrebleu prints:

    chrF2|nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:2.6.0 = 57.72
    """

    result: Score  # sacrebleu's, with `name` and `score`
    signature: str  # in sacrebleu's notation

    @property
    def interval(self) -> float | None:
        """Half of the 95% confidence interval, or None if it was not computed."""
        half = float(self.result._ci)  # sacrebleu has no other name for it
        return None if half < 0 else half

    def __str__(self) -> str:
        return self.result.format(signature=self.signature)


def corpus_scores(
    translations: Sequence[str],
    references: Sequence[str],
    metrics: Sequence[str] = ("bleu",),
    options: MetricOptions = DEFAULTS,
    more_references: Sequence[Sequence[str]] = (),
) -> list[CorpusScore]:
    """The scores of plain, detokenised text against one reference or several, a score
    for each of `metrics`.

    Translations and references are one sentence per line, in the same order;
    `more_references` are further references of the same sentences, `metrics` registered
    names. Raises ValueError as `make_metrics`, and if there are no translations, or not
    as many as references.
    """
    translations, *all_references = checked_lines(
        translations, references, *more_references
    )
    draws = BOOTSTRAP_SAMPLES if options.confidence else 1
    scores = []
    for metric in make_metrics(metrics, options):
        result = metric.corpus_score(translations, all_references, n_bootstrap=draws)
        scores.append(CorpusScore(result, str(metric.get_signature())))
    return scores


def checked_lines(*texts: Sequence[str]) -> list[list[str]]:
    """The translations and each of their references as lists.

    Raises ValueError if there are no translations, or not as many as references.
    """
    all_lines = list(map(list_of_texts, texts))
    count = len(all_lines[0])
    for lines in all_lines:
        if len(lines) != count:
            raise ValueError(
                f"Each translation needs one reference. Received: {count} translations"
                f" and {len(lines)} references."
            )
    if not count:
        raise ValueError("A score needs at least one translation. Received: none.")
    return all_lines


class Difference(NamedTuple):
    """The scores of a baseline and a system by one metric, and the significance of
    their difference.
    """

    metric: str  # BLEU, chrF2, TER, ...
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
    options: MetricOptions = DEFAULTS,
    seed: int = SACREBLEUS_SEED,
    more_references: Sequence[Sequence[str]] = (),
) -> list[Difference]:
    """Paired bootstrap resampling (Koehn, 2004): do two systems differ by more than the
    choice of sentences explains?

    1,000 test sets are drawn from the sentences, with replacement, and both systems are
    scored on each. The other arguments are those of `corpus_scores`. Raises ValueError
    as it does, and for a seed that NumPy does not accept.
    """
    system, *all_references = checked_lines(system, references, *more_references)
    baseline, _ = checked_lines(baseline, all_references[0])
    seed = checked("seed", int, seed, 0, MAX_SEED)
    made = make_metrics(metrics, options)
    with _seeded(seed):
        signatures, results = PairedTest(
            [("baseline", baseline), ("system", system)],
            {type(metric).__name__: metric for metric in made},
            all_references,
            test_type="bs",
            n_samples=BOOTSTRAP_SAMPLES,
        )()
    differences = []
    for name, signature in signatures.items():
        old, new = cast(list[Any], results[name])  # sacrebleu's `Result`
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


def make_metrics(
    names: Sequence[str], options: MetricOptions = DEFAULTS
) -> list[Metric]:
    """The metrics of these names, each once. Raises ValueError if one is unknown, or
    needs a package or a file that is not there.
    """
    return [get_metric(name)(options) for name in dict.fromkeys(names)]


@register_metric
def bleu(options: MetricOptions) -> Metric:
    """Precision of 1-grams to 4-grams with a brevity penalty (Papineni, 2002)."""
    try:
        return BLEU(tokenize=options.tokenize, lowercase=options.lowercase)
    # sacrebleu ends the process if it cannot check a certificate
    except (ImportError, RuntimeError, OSError, SystemExit) as error:
        need = f"a model, which sacrebleu downloads once into ~/.sacrebleu: {error}"
        if options.tokenize.endswith("-mecab"):
            need = f"pip install 'sacrebleu[{options.tokenize[:2]}]'"
        raise ValueError(f"tokenize={options.tokenize} needs {need}") from error


@register_metric
def chrf(options: MetricOptions) -> Metric:
    """F-score of character n-grams (Popović, 2015)."""
    return CHRF(word_order=options.chrf_word_order, lowercase=options.lowercase)


@register_metric
def ter(options: MetricOptions) -> Metric:
    """Edits for each word of the reference (Snover et al., 2006); lower is better."""
    return TER()


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Makes sacrebleu use this seed."""
    before = os.environ.copy()
    os.environ[_SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        del os.environ[_SEED_VARIABLE]
        os.environ.update(before)
