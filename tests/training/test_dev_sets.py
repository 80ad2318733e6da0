"""What evaluations on dev sets decide: which checkpoint is the best."""

import pytest

from t2tlite.training.evaluation import is_better


@pytest.mark.parametrize(
    ("metrics", "best", "criterion", "expected"),
    [
        ({"loss": 2.0}, {}, "loss", True),
        ({"loss": 2.0}, {"loss": 2.0}, "loss", False),
        ({}, {"loss": 2.0}, "loss", False),  # it was not a number
        ({"loss": 9.0, "bleu": 1.0}, {"loss": 2.0, "bleu": 0.99}, "bleu", True),
        ({"loss": 9.0, "bleu": 0.9}, {"loss": 2.0, "bleu": 0.1}, "bleu", False),
        ({"loss": 1.0, "bleu": 0.1}, {"loss": 2.0, "bleu": 0.9}, "bleu", True),
        ({"loss": 1.0, "f1": 50.004}, {"loss": 2.0, "f1": 50.001}, "f1", True),
        ({"loss": 1.0, "f1": 49.9}, {"loss": 2.0, "f1": 50.0}, "f1", False),
        # errors
        ({"loss": 9.0, "wer": 0.4}, {"loss": 2.0, "wer": 0.5}, "wer", True),
        ({"loss": 1.0, "ter": 90.0}, {"loss": 2.0, "ter": 80.0}, "ter", False),
        ({"loss": 1.0}, {"loss": 2.0, "per": 80.0}, "per", False),
    ],
)
def test_which_evaluation_is_better(metrics, best, criterion, expected):
    assert is_better(metrics, best, criterion) is expected
