"""How much of an F1 is the choice of sentences: its confidence interval, by bootstrap
resampling.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

from t2tlite.trees.evalb import SCORED, SentenceScore, up_to_length

RESAMPLES = 1000
SEED = 12345
TAIL = RESAMPLES // 40  # resamples below and above a 95% interval


def f1_interval(
    scores: Sequence[SentenceScore], max_length: int | None = None
) -> tuple[float, float]:
    """Returns the ends of the 95% confidence interval of F1 in percent (the percentile
    bootstrap of Efron, 1979).

    RESAMPLES test sets of the same size are drawn with replacement from the sentences
    that are scored; those whose gold tree has more than `max_length` words are left
    out. The same scores always give the same interval; without any it is (0, 0).
    """
    sentences = []  # of each, the matched brackets, and those of both trees
    for score in up_to_length(scores, max_length):
        if score.status == SCORED:
            sentences.append((score.matched, score.gold + score.predicted))
    if not sentences:
        return 0.0, 0.0
    draw = random.Random(SEED)
    values = []
    for _ in range(RESAMPLES):
        matched = 0
        brackets = 0
        for matched_here, brackets_here in draw.choices(sentences, k=len(sentences)):
            matched += matched_here
            brackets += brackets_here
        values.append(200.0 * matched / brackets if brackets else 0.0)
    values.sort()
    return values[TAIL], values[-TAIL - 1]
