"""Bodies up to the limit, of every endpoint: each gets an answer of the right kind, and
the server goes on.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import time

import pytest

from t2tlite.programs.serving.options import MAX_BODY_BYTES

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("T2TLITE_FUZZ_EXAMPLES", 0)) or 40  # of each endpoint
# far above what they take, for a machine under load
ANSWER_SECONDS, HEALTH_SECONDS = 30.0, 5.0
SENTENCE = "red cat sees dog"
PAIR = {"source": "en", "target": "de", "format": "html", "alternatives": 1}
VALID = {
    "/translate": {"q": [SENTENCE, "fish"], "beam_size": 2, "alpha": 0.6, **PAIR},
    "/score": {"q": [SENTENCE], "translation": ["hund"]},
    "/attention": {"q": SENTENCE, "translation": "hund"},
    "/detect": {"q": SENTENCE},
}
SIZES = [2_000, 60_000, MAX_BODY_BYTES - 5_000, MAX_BODY_BYTES + 1_000]
PIECES = ["a", ".", " ", "\n", "A. ", "é", "\U0001f600", "<b>", "&amp;", "a" * 50 + " "]
PIECES += ["\u2028", "(", "%", "", "1"]


def values(piece: str, size: int) -> list[object]:
    """A long text, many entries, many fields, and deep lists."""
    count = size // (len(json.dumps(piece)) + 2)
    fields = {str(index): piece for index in range(count // 5)}
    return [piece * count, [piece] * count, fields, json.loads("[" * 400 + "]" * 400)]


@pytest.mark.parametrize("path", VALID)
def test_every_body_is_answered(server, path):
    names = [*VALID[path], "more"]
    cases = list(itertools.product(names, SIZES, PIECES, range(4)))
    for name, size, piece, kind in random.Random(path).sample(cases, CASES):
        body = {**VALID[path], name: values(piece, size)[kind]}
        case = f"{path}: {name}, {size:,} bytes of {piece!r}, kind {kind}"
        started = time.monotonic()
        response = server.post(path, body)
        assert response.status_code in (200, 400, 413), case
        assert time.monotonic() - started < ANSWER_SECONDS, case
        assert response.headers["X-Content-Type-Options"] == "nosniff", case
        response.json()
        started = time.monotonic()
        assert server.get("/health").status_code == 200, case
        assert time.monotonic() - started < HEALTH_SECONDS, case
    assert server.post(path, VALID[path]).status_code == 200
