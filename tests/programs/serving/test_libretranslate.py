"""LibreTranslate's API, with its Python client and by hand."""

from __future__ import annotations

import pytest
from libretranslatepy import LibreTranslateAPI
from running import running, served

SENTENCE = "red cat sees dog"


@pytest.fixture(scope="module")
def keyed(translator):
    with running([served(translator)], api_key="sesame", cors_origins=("https://example.org",)) as running_server:
        yield running_server


def test_the_python_client(server, translator):
    client = LibreTranslateAPI(server.url)
    assert client.translate(SENTENCE, "en", "de") == translator.translate([SENTENCE])[0]
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    assert client.detect("the cat is on it")[0] == {"language": "en", "confidence": 100.0}


@pytest.mark.parametrize(
    "how",
    [
        {"json": {"q": SENTENCE, "source": "en", "target": "de"}},
        {"data": {"q": SENTENCE, "source": "en", "target": "de"}},
        {"files": {"q": (None, SENTENCE), "source": (None, "en"), "target": (None, "de")}},
        {"params": {"q": SENTENCE, "source": "en", "target": "de"}},
    ],
)
def test_json_forms_and_parameters(server, translator, how):
    response = server.post("/translate", **how)
    assert response.json() == {"translatedText": translator.translate([SENTENCE])[0]}


def test_lists_and_alternatives(server, translator):
    texts = [SENTENCE, "bird likes fish"]
    request = {"q": texts, "source": "en", "target": "de", "alternatives": 2}
    response = server.post("/translate", request).json()
    outputs = translator.decode(texts, translator.options(return_beams=4))
    assert response["translatedText"] == [each[0].text for each in outputs]
    assert response["alternatives"] == [[output.text for output in each[1:3]] for each in outputs]


def test_html_keeps_its_tags(server, translator):
    request = {"q": f"<p>{SENTENCE}</p><script>cat</script>", "source": "en", "target": "de", "format": "html"}
    expected = f"<p>{translator.translate([SENTENCE])[0]}</p><script>cat</script>"
    assert server.post("/translate", request).json() == {"translatedText": expected}


def test_settings(server):
    response = server.get("/frontend/settings").json()
    assert response["charLimit"] == 20000
    assert response["keyRequired"] is False
    assert response["language"] == {
        "source": {"code": "en", "name": "English"},
        "target": {"code": "de", "name": "German"},
    }


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"q": ""}, "The field q is required."),
        ({"source": None}, "The field source is required."),
        ({"target": "fr"}, "No model translates en to fr. Language pairs served: en-de."),
        ({"source": "auto", "target": "fr"}, "No model translates to fr. GET /languages lists the languages."),
        ({"format": "pdf"}, "format must be text or html. Received: 'pdf'."),
        ({"q": [1]}, "q must be a string or a list of strings."),
        ({"q": "a" * 20_001}, "The text of a request must have at most 20,000 characters. Received: 20,001."),
        ({"alternatives": -1}, "alternatives must be a whole number of 0 or more. Received: '-1'."),
        ({"alternatives": 16}, "n_best must be from 1 to beam_size, and beam_size at most 16. Received: n_best=17"),
    ],
)
def test_mistakes_have_status_400_and_a_sentence(server, change, message):
    response = server.post("/translate", {"q": SENTENCE, "source": "en", "target": "de", **change})
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_an_api_key_is_required_where_the_server_has_one(keyed):
    request = {"q": SENTENCE, "source": "en", "target": "de"}
    assert keyed.post("/translate", request).status_code == 400
    refused = keyed.post("/translate", {**request, "api_key": "open"})
    assert (refused.status_code, refused.json()) == (403, {"error": "The API key is not valid."})
    assert keyed.post("/translate", {**request, "api_key": "sesame"}).status_code == 200
    assert LibreTranslateAPI(keyed.url, "sesame").translate(SENTENCE, "en", "de")
    assert keyed.get("/frontend/settings").json()["keyRequired"] is True
    assert keyed.post("/v1/translate", {"q": SENTENCE}).status_code == 400
    for header in ("Bearer sesame", "sesame"):
        assert keyed.post("/v1/translate", {"q": SENTENCE}, headers={"Authorization": header}).status_code == 200
    assert keyed.get("/v1/attention.html", params={"q": SENTENCE}).status_code == 400
    assert keyed.get("/v1/attention.html", params={"q": SENTENCE, "api_key": "sesame"}).status_code == 200


def test_other_sites_may_call_only_if_they_are_named(server, keyed):
    request = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    assert "access-control-allow-origin" not in server.get("/languages", headers=request).headers
    response = keyed.get("/languages", headers=request).headers
    assert response["access-control-allow-origin"] == "https://example.org"
    response = keyed.get("/languages", headers={"Origin": "https://example.com"}).headers
    assert "access-control-allow-origin" not in response
