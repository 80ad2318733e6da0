"""What evaluations on dev sets decide: which checkpoint is the best."""

from types import SimpleNamespace

import pytest

from t2tlite.tasks.task import Score
from t2tlite.training.dev_sets import DevRecord, is_better
from t2tlite.training.evaluation import Evaluated, Evaluation, together


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
    ],
)
def test_which_evaluation_is_better(metrics, best, criterion, expected):
    assert is_better(metrics, best, criterion) is expected


def test_best_checkpoint_is_the_best_by_f1_whatever_the_loss():
    saved = []
    checkpoints = SimpleNamespace(save_best=saved.append, best=lambda: None)
    run = SimpleNamespace(evaluations=list)
    record = DevRecord(run, checkpoints, step=0, by_score=True)
    for step, loss, f1, better in (
        (1, 3.0, 20.0, True),
        (2, 4.0, 40.0, True),
        (3, 2.0, 30.0, False),
    ):
        score = Score("F1", {"F1": f1}, {"F1": "EVALB"})
        evaluated = Evaluated(Evaluation(loss, 0.5, 10), score)
        assert record.keep_if_best(step, evaluated, {}) == better
    assert (saved[-1].step, saved[-1].metrics["f1"]) == (2, 40.0)


def test_metrics_together_weigh_tokens():
    actual = together(
        [
            Evaluation(loss=2.0, accuracy=0.5, tokens=30),
            Evaluation(loss=4.0, accuracy=0.1, tokens=10),
        ]
    )
    assert (actual.loss, actual.tokens) == (2.5, 40)
    assert actual.accuracy == pytest.approx(0.4)
