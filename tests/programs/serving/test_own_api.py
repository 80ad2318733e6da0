"""Our own API, as a client sees it; outputs are those of the model's decoder."""

from __future__ import annotations

import json
import re
import threading

import httpx
import pytest
from running import running, served

SENTENCES = [
    "red cat sees dog",
    "bird likes fish now",
    "mouse hears horse",
    "dog bites white cat often",
]


def translate(server, content):
    response = server.post("/v1/translate", content)
    assert response.status_code == 200, response.text
    return response.json()["translations"]


def test_segments_keep_white_space_and_have_hypotheses(server, translator):
    text = "red cat sees dog.  Bird likes fish\n\n mouse hears horse "
    answer = translate(server, {"q": text, "n_best": 2})[0]
    assert [(s["before"], s["source"]) for s in answer["segments"]] == [
        ("", "red cat sees dog."),
        ("  ", "Bird likes fish"),
        ("\n\n ", "mouse hears horse"),
    ]
    expected = translator.decode(
        [s["source"] for s in answer["segments"]], translator.options(return_beams=4)
    )
    for segment, outputs in zip(answer["segments"], expected, strict=True):
        assert [hypothesis["text"] for hypothesis in segment["hypotheses"]] == [
            output.text for output in outputs[:2]
        ]
        for hypothesis, output in zip(segment["hypotheses"], outputs, strict=False):
            assert hypothesis["score"] == pytest.approx(output.score, rel=1e-3)
            assert hypothesis["log_prob"] == pytest.approx(output.log_prob, rel=1e-3)
    best = [s["hypotheses"][0]["text"] for s in answer["segments"]]
    assert answer["text"] == f"{best[0]}  {best[1]}\n\n {best[2]} "
    assert answer["after"] == " "


def test_a_list_is_answered_in_its_order(server, translator):
    expected = translator.translate(SENTENCES)
    outputs = translate(server, {"q": SENTENCES, "source": "en", "target": "de"})
    assert [output["text"] for output in outputs] == expected


def test_blank_texts_stay_blank(server):
    response = translate(server, {"q": ["", " \n "]})
    assert response == [
        {"text": "", "segments": [], "after": ""},
        {"text": " \n ", "segments": [], "after": " \n "},
    ]
    assert translate(server, {"q": []}) == []


def test_concurrent_clients_get_their_own_answers(server, translator):
    expected, response = translator.translate(SENTENCES), {}

    def ask(number):
        response[number] = translate(server, {"q": SENTENCES[number % 4]})[0]["text"]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert response == {number: expected[number % 4] for number in range(16)}
    batches = server.get("/metrics").text
    assert "t2tlite_batch_sentences_count" in batches


def test_a_stream_has_a_line_for_each_segment_in_order(server, translator):
    text = ".  ".join(sentence.capitalize() for sentence in SENTENCES) + "\n"
    with httpx.stream(
        "POST",
        f"{server.url}/v1/translate",
        json={"q": text, "stream": True},
        timeout=60,
    ) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        first, *segments, last = [json.loads(line) for line in response.iter_lines()]
    whole = translate(server, {"q": text})[0]
    assert first == {"segments": 4}
    assert last == {"after": "\n"}
    assert [segment.pop("index") for segment in segments] == [0, 1, 2, 3]
    assert [s["hypotheses"][0]["text"] for s in segments] == [
        s["hypotheses"][0]["text"] for s in whole["segments"]
    ]
    assert [s["before"] for s in segments] == ["", "  ", "  ", "  "]


def test_alignments_are_of_each_hypothesis_if_wanted(server):
    """The colour goes behind its noun, and the verb to the end."""
    body = {"q": "red cat sees dog\nmouse hears horse", "alignments": True}
    answer = translate(server, {**body, "n_best": 2})[0]
    assert [
        segment["hypotheses"][0]["alignment"] for segment in answer["segments"]
    ] == [
        "1-0 0-1 3-2 2-3",
        "0-0 2-1 1-2",
    ]
    for hypothesis in answer["segments"][0]["hypotheses"]:
        assert len(hypothesis["alignment"].split()) == len(hypothesis["text"].split())
    with httpx.stream(
        "POST", f"{server.url}/v1/translate", json={**body, "stream": True}, timeout=60
    ) as response:
        _, *segments, _ = [json.loads(line) for line in response.iter_lines()]
    assert [s["hypotheses"][0]["alignment"] for s in segments] == [
        "1-0 0-1 3-2 2-3",
        "0-0 2-1 1-2",
    ]
    assert (
        "alignment"
        not in translate(server, {"q": body["q"]})[0]["segments"][0]["hypotheses"][0]
    )


def test_scores_are_the_models(server, translator):
    pairs = [["red cat sees dog", "katze rot hund sieht"], ["red cat sees dog", "maus"]]
    response = server.post("/v1/score", {"pairs": pairs}).json()["scores"]
    expected = translator.score(*zip(*pairs, strict=True))
    assert [output["log_prob"] for output in response] == pytest.approx(
        expected, rel=1e-4
    )


def test_attention_takes_the_given_or_the_models_translation(server, translator):
    for blank in ("\u200b", " "):
        body = {"q": SENTENCES[0], "translation": blank}
        response = server.post("/v1/attention", body).json()
        assert response["translation"] == translator.translate(SENTENCES[:1])[0]
    assert [word["text"] for word in response["source_words"]] == SENTENCES[0].split()
    assert all(sum(row) == pytest.approx(1, rel=1e-4) for row in response["weights"])
    response = server.post(
        "/v1/attention", {"q": SENTENCES[0], "translation": "katze maus"}
    ).json()
    assert [
        (word["text"], word["start"], word["end"]) for word in response["target_words"]
    ] == [
        ("katze", 0, 5),
        ("maus", 6, 10),
    ]
    page = server.post("/v1/attention.html", data={"q": SENTENCES[0]})
    assert page.headers["content-type"].startswith("text/html")
    assert "Cross-attention" in page.text
    assert translator.run not in page.text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"q": " "}, "q must be a sentence, .* Received: a blank one. Send"),
        ({"q": "\u200b"}, "q must be a sentence, .* Received: a blank one. Send"),
        (
            {"q": "red\ncat"},
            "q must be a sentence, .* Received: one with a line break.",
        ),
        (
            {"q": "red", "translation": "rot\rrot"},
            "translation must be a sentence, .* Received: one with a line break.",
        ),
    ],
)
def test_attention_is_of_one_sentence(server, body, message):
    for path in ("/v1/attention", "/v1/attention.html"):
        response = server.post(path, body)
        assert response.status_code == 400
        assert re.match(message, response.json()["error"])
        response = server.post(path, {"q": "red", "unknown": 1})
        assert response.json()["error"].startswith("There is no field 'unknown'.")
    refused = server.send(
        "/v1/attention", b"q=red", "application/x-www-form-urlencoded"
    )
    assert refused.status_code == 415
    assert refused.json()["error"].endswith(
        "Received: application/x-www-form-urlencoded. With curl, send it by --json."
    )


def test_the_model_is_described(server):
    model = server.get("/v1/models").json()["models"][0]
    assert {**model, "step": 0} == {
        "source": "en", "target": "de", "source_name": "English", "target_name": "German", "task": "translation",
        "problem": "twenty_words", "step": 0, "beam_size": 4, "alpha": 0.6, "max_characters": 20000,
        "max_beam_size": 16, "examples": [],
    }  # fmt: skip


def test_the_pages_need_no_other_host(server):
    for path in ("/", "/docs"):
        page = server.get(path)
        assert page.status_code == 200
        assert (
            re.findall(
                r"://|https?:|\bsrc\s*=|url\(|@import|<link(?! rel=\"icon\")", page.text
            )
            == []
        )
    assert "default-src 'none'" in server.get("/").text


def test_the_description_names_every_field(server):
    response = server.get("/openapi.json").json()
    assert set(response["paths"]) == {
        "/v1/models", "/v1/translate", "/v1/score", "/v1/parse", "/v1/attention", "/v1/attention.html", "/translate",
        "/detect", "/languages", "/frontend/settings", "/health", "/ready", "/metrics",
    }  # fmt: skip
    request = response["paths"]["/v1/translate"]["post"]["requestBody"]["content"][
        "application/json"
    ]["schema"]
    assert set(request["properties"]) == {
        "q",
        "source",
        "target",
        "n_best",
        "beam_size",
        "alpha",
        "alignments",
        "stream",
    }
    assert all("description" in field for field in request["properties"].values())
    assert response["paths"]["/v1/translate"]["post"]["responses"]["503"][
        "description"
    ].startswith("The server is")


def test_a_beam_can_be_chosen_up_to_the_largest(server, translator):
    answer = translate(server, {"q": SENTENCES[0], "beam_size": 1})[0]["text"]
    assert answer == translator.translate(SENTENCES[:1], beam_size=1)[0]
    response = server.post("/v1/translate", {"q": "cat", "beam_size": 17})
    assert response.status_code == 400
    assert (
        response.json()["error"]
        == "beam_size must be less than or equal to 16. Received: 17."
    )


@pytest.fixture(scope="module")
def both_ways(translator):
    """The same model for two pairs, since another one would have to be trained."""
    with running(
        [served(translator), served(translator, "de", "en")]
    ) as running_server:
        yield running_server


def test_several_pairs_have_to_be_named(both_ways):
    assert len(both_ways.get("/v1/models").json()["models"]) == 2
    assert (
        both_ways.post("/v1/translate", {"q": "cat", "source": "de"}).status_code == 200
    )
    refused = both_ways.post("/v1/translate", {"q": "cat"})
    assert refused.status_code == 400
    required = "source and target must be one of the pairs served: en-de, de-en."
    assert refused.json() == {"error": f"{required} Received: neither. Give both."}
    refused = both_ways.post("/v1/parse", {"q": "cat"})
    assert refused.json()["error"].startswith("A parser must be served to parse.")


def test_auto_detects_the_source_among_the_pairs(both_ways):
    request = {"source": "auto", "target": "en", "q": "Die Katze ist hier"}
    response = both_ways.post("/translate", request).json()
    assert response["detectedLanguage"]["language"] == "de"
    first, *_ = both_ways.post("/detect", {"q": "The cat is here"}).json()
    assert first["language"] == "en"
    assert first["confidence"] > 95
