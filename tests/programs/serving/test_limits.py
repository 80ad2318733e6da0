"""What one request may cost others."""

import time

import pytest
from running import running, served

from t2tlite.programs.serving.detection import detect_each

LONG = "zq" * 1000
LIMIT_S = 3  # of CPU time, for what took 5 to 44 seconds, and takes some 0.05


@pytest.mark.parametrize("text", ["The cat is here.", "the cat is on the table, oh so"])
def test_languages_of_many_texts_are_detected_in_time(text):
    """As many as a request may have, long and short ones."""
    texts = [f"{number:03} {text}" for number in range(1000)]
    started = time.process_time()
    detect_each(texts, ["de", "en", "fr"])
    assert time.process_time() - started < LIMIT_S


def test_texts_and_characters_are_bounded_and_blank_texts_count(translator):
    """Of too many of them with the status that LibreTranslate has."""
    message = "A request must have at most {}. Received: {}. Split it."
    with running([served(translator)], max_characters=3, max_texts=5) as small:
        assert small.post("/translate", {"q": ["", "", ""]}).status_code == 200
        for path, body, limit, size in (
            ("/translate", {"q": [""] * 4}, "3 characters", 4),
            ("/attention", {"q": "a", "translation": "abc"}, "3 characters", 4),
            ("/translate", {"q": [""] * 6}, "5 texts", 6),
            ("/translate", {"q": "a", "glossary": {"b": "c"}}, "3 characters", 4),
        ):
            response = small.post(path, body)
            assert response.status_code == 400
            assert response.json() == {"error": message.format(limit, size)}


@pytest.mark.parametrize(
    ("path", "body", "limit"),
    [
        ("/translate", {"q": LONG, "beam_size": 1}, "A sentence must have at most 512"),
        ("/translate", {"q": LONG, "beam_size": 4}, "A sentence must have at most 512"),
        ("/translate", {"q": LONG, "beam_size": 16}, "A sentence must have at most 128"),
        ("/translate", {"q": "a", "glossary": {"a": LONG}}, "The terms of a sentence must have at most 63"),
        ("/attention", {"q": LONG}, "A sentence must have at most 160"),
        ("/attention", {"q": "a", "translation": LONG}, "A sentence must have at most 160"),
        ("/attention.html", {"q": LONG}, "A sentence must have at most 160"),
        ("/attention.html", {"q": "a", "translation": LONG}, "A sentence must have at most 160"),
    ],
)  # fmt: skip
def test_tokens_are_bounded(server, path, body, limit):
    response = server.post(path, body)
    assert response.status_code == 413
    assert response.json()["error"].startswith(f"{limit} tokens. Received: ")
