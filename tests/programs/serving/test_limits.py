"""What one request may cost others."""

from __future__ import annotations

import re
import time

import pytest
from running import running, served
from starlette.exceptions import HTTPException

from t2tlite.programs.serving import options
from t2tlite.programs.serving.models import detect_each
from t2tlite.run_folder import RunFolder

SENTENCE = "red cat sees dog"
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


def test_hypotheses_of_a_request_are_bounded(server):
    response = server.post("/translate", {"q": "a\n" * 1251, "alternatives": 15})
    assert response.status_code == 413
    message = "A request must have at most 20,000 hypotheses. Received: 20,016."
    assert response.json()["error"].startswith(message)


@pytest.mark.parametrize(("beam_size", "limit"), [(1, 512), (4, 512), (16, 128)])
def test_tokens_and_beam_size_of_a_sentence_are_bounded(translator, beam_size, limit):
    model = served(translator)
    assert model.token_counts(["cat " * (limit // 4)], beam_size)
    message = f"A sentence must have at most {limit} tokens. Received: 1"
    with pytest.raises(HTTPException, match=re.escape(message)) as refused:
        model.token_counts(["zq" * 5000], beam_size)
    assert refused.value.status_code == 413


@pytest.mark.parametrize(
    "texts", [{"q": "zq" * 1000}, {"q": "cat", "translation": "zq" * 1000}]
)
def test_attention_to_too_many_tokens_has_status_413(server, texts):
    response = server.post("/attention", texts)
    assert response.status_code == 413
    assert response.json()["error"].startswith(
        "A sentence must have at most 512 tokens. Received: "
    )


def test_attention_with_too_many_weights_has_status_413(
    server, translator, monkeypatch
):
    """Before it is computed if the translation is given, otherwise after the search."""
    sides = [translator.source_encoder, translator.target_encoder]
    s, t = (len(side.encode(SENTENCE)) + 1 for side in sides)
    hparams = RunFolder(translator.run).hparams()
    layers = hparams.num_hidden_layers
    weights = hparams.num_heads * layers * (s * s + t * t + s * t)
    limit = "MAX_ATTENTION_WEIGHTS"
    given = {"q": SENTENCE, "translation": SENTENCE}
    for path in ("/attention", "/attention.html"):
        monkeypatch.setattr(options, limit, weights)
        assert server.post(path, given).status_code == 200
        monkeypatch.setattr(options, limit, weights - 1)
        response = server.post(path, given)
        assert response.status_code == 413
        assert response.json()["error"].startswith(
            f"The attention of a sentence must have at most {weights - 1:,} weights."
            f" Received: {weights:,}."
        )
        monkeypatch.setattr(options, limit, hparams.num_heads * layers * s * s)
        assert server.post(path, {"q": SENTENCE}).status_code == 413
