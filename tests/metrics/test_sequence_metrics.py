"""Exact match, token accuracy, WER and PER, by hand."""

import os

import pytest
from sacrebleu.metrics.chrf import CHRF

from t2tlite import registry
from t2tlite.metrics.comparison import paired_bootstrap
from t2tlite.metrics.corpus_metrics import MetricOptions, corpus_scores

NAMES = ("exact_match", "token_accuracy")
REFERENCES = ["K AE T", "D AO G", "M AW S", ""]
# equal but for white space; one of three tokens wrong; one token too many; both blank
OUTPUTS = [" K  AE T", "D AA G", "M AW S S", ""]


def values(outputs, *references, names=NAMES, **options) -> list[float]:
    first, *more = references
    scores = corpus_scores(
        outputs, first, names, MetricOptions(**options), more_references=more
    )
    return [score.result.score for score in scores]


def test_values():
    """Exact: 2 of 4. Tokens: 3 + 2 + 3 of 3 + 3 + 4 positions."""
    assert values(OUTPUTS, REFERENCES) == pytest.approx([50.0, 100 * 8 / 10])


def test_tokens_count_by_position():
    """A token left out at the start makes all others wrong: 0 of 3."""
    assert values(["b c"], ["a b c"]) == [0.0, 0.0]
    assert values(["a b"], ["a b c"]) == pytest.approx([0.0, 100 * 2 / 3])
    assert values(["", "a b"], ["a b", ""]) == [0.0, 0.0]


def test_the_reference_that_fits_best_counts():
    """2 of 2 by the second reference; 1 of 2 by the first rather than 1 of 3."""
    first, second = ["a x", "a b"], ["a\u200b  b", "a y z"]
    assert values(["a b", "a c"], first, second) == pytest.approx([50.0, 75.0])


@pytest.mark.parametrize(
    ("output", "edits"),
    [
        ("K AE T", 0),
        ("K AE", 1),  # left out
        ("K AE T S", 1),  # inserted
        ("K AH T", 1),  # replaced
        ("AE T K", 2),
        ("T AE K", 2),
        ("", 3),
        ("B ER D Z", 4),
    ],
)
def test_edits(output, edits):
    """An empty output is right where the reference is empty."""
    rates = values([output], ["K AE T"], names=["wer", "per"])
    assert rates == pytest.approx([100.0 * (edits > 0), 100 * edits / 3])
    empty = [100.0 * (output != "")] * 2
    assert values([output], [""], names=["wer", "per"]) == empty


def test_error_rates_of_the_nearest_reference():
    """Both words right by one pronunciation; then 1 edit of 4 rather than 2 of 3."""
    first, second = ["a b c", "x y z"], ["a c", "x y z w"]
    names = ["wer", "per"]
    assert values(["a c", "x y z"], first, second, names=names) == [0.0, 0.0]
    rates = values(["a b c", "x q z w"], first, second, names=names)
    assert rates == pytest.approx([50.0, 100 * 1 / 7])


def test_case_and_accents():
    assert values(["\xc4 b"], ["a\u0308 B"]) == [0.0, 0.0]
    assert values(["\xc4 b"], ["a\u0308 B"], lowercase=True) == [100.0, 100.0]


def test_lines_with_signatures():
    exact, _ = corpus_scores(OUTPUTS, REFERENCES, NAMES)
    start = "exact_match|nrefs:1|case:mixed|tok:white-space|version:t2tlite-"
    assert str(exact).startswith(start)
    assert str(exact).endswith(" = 50.00")


def test_only_resampling_changes_the_environment(monkeypatch):
    """Threads that train may read it while text is scored."""
    seeds = []

    class Reading(CHRF):
        def corpus_score(self, *texts, **options):
            seeds.append(os.environ.get("SACREBLEU_SEED"))
            return super().corpus_score(*texts, **options)

    monkeypatch.setattr(registry, "_metrics", {"reading": lambda options: Reading()})
    for confidence in (False, True):
        values(["a"], ["a"], names=["reading"], confidence=confidence)
    assert seeds == [None, "12345"]


def test_systems_are_compared(monkeypatch):
    references = [f"a {i}" for i in range(200)]
    better = [*references[:190], *["x"] * 10]
    worse = [*references[:120], *["x"] * 80]
    exact, accuracy = paired_bootstrap(worse, better, references, NAMES)
    assert (exact.baseline, exact.system, exact.is_significant) == (60.0, 95.0, True)
    assert (accuracy.metric, accuracy.system) == ("token_accuracy", 95.0)
    assert "|bs:1000|seed:12345|" in exact.signature
    # two metrics of one class
    pp = {"chrfpp": lambda options: CHRF(word_order=2), **registry._metrics}
    monkeypatch.setattr(registry, "_metrics", pp)
    scores = paired_bootstrap(["a b"], ["a c"], ["a b"], ("chrf", "chrfpp"))
    assert [score.metric for score in scores] == ["chrF2", "chrF2++"]
