"""Bodies up to the limit, of every endpoint: each gets an answer of the right kind, and
the server goes on.
"""

from __future__ import annotations

import json
import os
import random
import time
from urllib.parse import quote

import httpx
import pytest

from t2tlite.programs.serving.options import MAX_BODY_BYTES

pytestmark = pytest.mark.slow

CASES = int(os.environ.get("T2TLITE_FUZZ_EXAMPLES", 0)) or 40  # of each endpoint
# any other status is a fault of the server
ANSWERS = {200, 400, 403, 404, 413, 415, 422, 429, 503}
# far above what they take, for a machine under load
ANSWER_SECONDS, HEALTH_SECONDS = 30.0, 5.0
SENTENCE = "red cat sees dog"
VALID = {
    "/translate": {
        "q": [SENTENCE, "fish likes mouse"],
        "source": "en",
        "target": "de",
        "format": "html",
        "alternatives": 1,
        "beam_size": 2,
        "alpha": 0.6,
    },
    "/score": {"q": [SENTENCE], "translation": ["hund"]},
    "/attention": {"q": SENTENCE, "translation": "hund"},
    "/detect": {"q": SENTENCE},
}
PIECES = [
    "a",
    ".",
    " ",
    "\n",
    "A. ",
    "é",
    "\U0001f600",
    "<b>",
    "&amp;",
    "a" * 50 + " ",
    "\u2028",
    "(",
    "%",
]


def stretched(draw: random.Random, value: object, size: int) -> object:
    """The value in some other size: a long text, many entries, many fields, or deep."""
    how = draw.randrange(6)
    piece = draw.choice(PIECES)
    text = piece * (size // max(1, len(json.dumps(piece)) - 2))
    entry = draw.choice([value, "", " ", 1, None])
    if isinstance(value, list) and value:
        entry = value[0]
    if how == 0:
        return text
    if how == 1:
        return [text]
    if how == 2:
        return [entry] * (size // (len(json.dumps(entry)) + 2))
    if how == 3:
        return {str(i): entry for i in range(size // (len(json.dumps(entry)) + 12))}
    if how == 4:
        return json.loads("[" * 400 + "]" * 400)
    return ["", text[: size // 2], None]


def json_body(draw: random.Random, valid: dict[str, object]) -> bytes:
    size = draw.choice([2_000, 60_000, MAX_BODY_BYTES - 1_000, MAX_BODY_BYTES + 1_000])
    name = draw.choice([*valid, "more"])
    return json.dumps({**valid, name: stretched(draw, valid.get(name), size)}).encode()


def form_body(draw: random.Random, valid: dict[str, object]) -> tuple[bytes, str]:
    """A form, URL-encoded or in parts, with long or many fields, and its content
    type.
    """
    size = draw.choice([2_000, MAX_BODY_BYTES - 5_000])
    name, piece = draw.choice([*valid, "q*", "x"]), draw.choice(PIECES)
    if draw.random() < 0.5:
        field = f"{quote(name)}={quote(piece)}&"
        body = field * (size // len(field))
        return body.encode(), "application/x-www-form-urlencoded"
    more = draw.choice(["", "; x=y" * 200, "; filename=f"])
    header = f'--b\r\nContent-Disposition: form-data; name="{name}"{more}'
    part = f"{header}\r\n\r\n{piece * draw.choice([1, 1000])}\r\n"
    body = part * max(1, size // len(part.encode())) + "--b--\r\n"
    return body.encode(), "multipart/form-data; boundary=b"


@pytest.mark.parametrize("path", VALID)
def test_every_body_is_answered(server, path):
    draw = random.Random(path)
    for number in range(CASES):
        if number % 3 == 2:
            body, content_type = form_body(draw, VALID[path])
        else:
            body, content_type = json_body(draw, VALID[path]), "application/json"
        start = time.monotonic()
        headers = {"Content-Type": content_type}
        response = httpx.post(
            server.url + path, content=body, headers=headers, timeout=ANSWER_SECONDS
        )
        case = f"case {number}: {content_type}, {len(body):,} bytes, {body[:80]!r}"
        assert response.status_code in ANSWERS, case
        assert time.monotonic() - start < ANSWER_SECONDS, case
        assert response.headers["X-Content-Type-Options"] == "nosniff", case
        response.json()
        start = time.monotonic()
        assert server.get("/health").status_code == 200, case
        assert time.monotonic() - start < HEALTH_SECONDS, case
    assert server.post(path, VALID[path]).status_code == 200
