"""What one request may cost others."""

import time

import pytest
from running import running, served

from t2tlite.programs.serving.models import detect_each

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
    message = "A request must have at most {}. Split it."
    with running([served(translator)], max_characters=3, max_texts=5) as small:
        assert small.post("/translate", {"q": ["", "", ""]}).status_code == 200
        for path, body, problem in (
            ("/translate", {"q": [""] * 4}, "3 characters. Received: 4"),
            (
                "/attention",
                {"q": "a", "translation": "abc"},
                "3 characters. Received: 4",
            ),
            ("/translate", {"q": [""] * 6}, "5 texts. Received: 6"),
        ):
            response = small.post(path, body)
            assert response.status_code == 400
            assert response.json() == {"error": message.format(problem)}


@pytest.mark.parametrize(("beam_size", "limit"), [(1, 512), (4, 512), (16, 128)])
def test_tokens_and_beam_size_of_a_sentence_are_bounded(server, beam_size, limit):
    body = {"q": "zq" * 5000, "beam_size": beam_size}
    response = server.post("/translate", body)
    assert response.status_code == 413
    message = f"A sentence must have at most {limit} tokens. Received: 1"
    assert response.json()["error"].startswith(message)


@pytest.mark.parametrize("path", ["/attention", "/attention.html"])
@pytest.mark.parametrize(
    "texts", [{"q": "zq" * 1000}, {"q": "cat", "translation": "zq" * 1000}]
)
def test_attention_to_too_many_tokens_has_status_413(server, path, texts):
    response = server.post(path, texts)
    assert response.status_code == 413
    message = "A sentence must have at most 160 tokens. Received: "
    assert response.json()["error"].startswith(message)
