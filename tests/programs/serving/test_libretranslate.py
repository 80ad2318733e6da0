"""LibreTranslate's API, with its Python client and by hand."""

import dataclasses
import re

import pytest
from libretranslatepy import LibreTranslateAPI
from running import running, served

from t2tlite.programs.serving import options
from t2tlite.tasks.task import open_task

SENTENCE = "red cat sees dog"


@pytest.fixture(scope="module")
def keyed(translator):
    rules = {"api_key": "sesame", "cors_origins": ("https://example.org",)}
    with running([served(translator)], **rules) as running_server:
        yield running_server


def test_the_python_client(server, translator):
    client = LibreTranslateAPI(server.url)
    assert client.translate(SENTENCE, "en", "de") == translator.translate(SENTENCE)
    assert client.languages() == [
        {"code": "de", "name": "German", "targets": []},
        {"code": "en", "name": "English", "targets": ["de"]},
    ]
    best = client.detect("the cat is on it")[0]
    assert best == {"language": "en", "confidence": 100.0}


PAIR = {"source": "en", "target": "de"}
FIELDS = {"q": SENTENCE, **PAIR}


@pytest.mark.parametrize("how", ["json", "data", "files", "params"])
def test_json_forms_and_parameters(server, translator, how):
    fields = FIELDS
    if how == "files":
        fields = {name: (None, value) for name, value in FIELDS.items()}
    response = server.post("/translate", **{how: fields})
    assert response.json() == {"translatedText": translator.translate([SENTENCE])[0]}


def test_codes_of_clients_are_compared_as_bcp_47_does(translator):
    models = [served(translator, "en", target) for target in ("de", "pt-BR", "zh-Hans")]
    with running([*models, served(translator, "de", "en")]) as several:
        codes = [language["code"] for language in several.get("/languages").json()]
        assert codes == ["de", "en", "pt-BR", "zh-Hans"]
        translation = translator.translate(SENTENCE)
        for pair in ("EN de", "en-US de", "en pt_br", "en pt", "en pb", "en zh"):
            source, target = pair.split()
            request = {"q": SENTENCE, "source": source, "target": target}
            body = several.post("/translate", request).json()
            assert body == {"translatedText": translation}
        request = {"q": "The cat sleeps.", "source": "Auto", "target": "en-GB"}
        answer = several.post("/translate", request).json()
        assert answer["translatedText"] == "The cat sleeps."
        assert answer["detectedLanguage"]["language"] == "en"
        request = {"q": SENTENCE, "source": "en", "target": "pt-PT"}
        answer = several.post("/translate", request)
        assert answer.status_code == 400
        assert "Received: source en, target pt-PT." in answer.json()["error"]


def test_raw_utf_8_is_a_form_at_every_endpoint(server, translator):
    """As curl -d and wget --post-data send it."""
    sentence = "Größe: the café is open."
    body = f"q={sentence}&source=en&target=de".encode()
    response = server.send("/translate", body, "application/x-www-form-urlencoded")
    assert response.json() == {"translatedText": translator.translate(sentence)}
    response = server.send("/detect", body, "application/x-www-form-urlencoded")
    assert response.json()[0]["language"] in ("en", "de")


def test_lists_and_alternatives(server, translator):
    texts = [SENTENCE, "bird likes fish"]
    request = {"q": texts, "source": "en", "target": "de", "alternatives": 2}
    response = server.post("/translate", request).json()
    outputs = translator.decode(texts, translator.options(return_beams=4))
    assert response["translatedText"] == [each[0].text for each in outputs]
    alternatives = [[output.text for output in each[1:3]] for each in outputs]
    assert response["alternatives"] == alternatives


def translate_html(server, text, **more):
    request = {"q": text, **PAIR, "format": "html", **more}
    response = server.post("/translate", request)
    assert response.status_code == 200, response.text
    return response.json()


def test_inline_tags_enclose_the_words_aligned_to_theirs(server):
    """In the tiny run's language the colour goes behind its noun, and the verb to the
    end.
    """
    texts = [
        "<p><b>red</b> cat <i>sees</i> dog<br>fish</p>",
        "<a href='x'>mouse hears</a> horse",
        "no tag",
    ]
    first, second, _ = translate_html(server, texts)["translatedText"]
    assert first.startswith("<p>katze <b>rot</b> hund <i>sieht</i><br>")
    assert second == "<a href='x'>maus pferd hoert</a>"


def test_inline_tags_are_in_every_alternative(server, translator):
    plain = [output.text for output in translator.n_best([SENTENCE], 2)[0]]
    answer = translate_html(server, "<b>red</b> cat sees dog", alternatives=1)
    texts = [answer["translatedText"], *answer["alternatives"]]
    assert [re.sub("</?b>", "", text) for text in texts] == plain
    assert [text.count("<b>rot</b>") for text in texts] == [1, 1]


# A model that has learned sentences has no clear translation of the word `red` alone:
# any words may be there.
IN_PIECES = "<b>[a-z ]+</b> katze hund sieht"


def test_what_is_translated_in_pieces(server, translator, monkeypatch):
    """Too many tags times alternatives, and what has no words of the text."""
    monkeypatch.setattr(options, "MAX_PLACED_TAGS", 3)
    text = "<b>red</b> cat sees dog"
    answer = translate_html(server, text)
    assert answer == {"translatedText": "katze <b>rot</b> hund sieht"}
    answer = translate_html(server, text, alternatives=1)
    assert re.fullmatch(IN_PIECES, answer["translatedText"])
    assert len(answer["alternatives"]) == 1
    monkeypatch.setattr(translator, "task", open_task("pronunciation", {}))
    answer = translate_html(server, text)
    assert re.fullmatch("<b>[a-z ]+</b> [a-z ]+", answer["translatedText"])


def test_sentence_too_long_with_its_tags(server, translator, monkeypatch):
    tokens = len(translator.source_encoder.encode(SENTENCE))
    monkeypatch.setattr(options, "MAX_SERVED_TOKENS", tokens - 1)
    answer = translate_html(server, "<b>red</b> cat sees dog")
    assert re.fullmatch(IN_PIECES, answer["translatedText"])
    body = {"q": f"<p>{SENTENCE}</p>", **PAIR, "format": "html"}
    response = server.post("/translate", body)
    assert response.status_code == 413
    message = f"A sentence must have at most {tokens - 1} tokens."
    assert message in response.json()["error"]


def test_tag_of_a_language_has_no_place_in_alignments(translator):
    """The word `red` as the tag: without it, tags are put around the words that are
    aligned to those that the client sent.
    """
    with running([dataclasses.replace(served(translator), tag="red")]) as tagged:
        answer = translate_html(tagged, "<b>cat</b> sees dog")
        assert answer == {"translatedText": "<b>katze</b> rot hund sieht"}


def test_text_without_letters_stays_as_it_is(server, translator):
    text = f"=====\n{SENTENCE} 😀\n* * *\n\u200b"
    answer = server.post("/translate", {"q": text, "segments": True}).json()
    expected = text.replace(SENTENCE, translator.translate([SENTENCE])[0])
    assert answer["translatedText"] == expected
    assert [segment["source"] for segment in answer["segments"]] == [SENTENCE]


@pytest.fixture(scope="module")
def from_two_languages(translator):
    """A server of English and French to German, by the same model."""
    models = [served(translator, "en", "de"), served(translator, "fr", "de")]
    with running(models) as running_server:
        yield running_server


ENGLISH = "The dog sees a bird in the garden of the neighbor."
FRENCH = "Le chien voit un oiseau dans le jardin du voisin."
GERMAN = "Der Hund sieht einen Vogel im Garten des Nachbarn."


def test_each_text_of_a_list_has_its_language(from_two_languages, translator):
    texts = [ENGLISH, FRENCH, GERMAN, "Oui", "====="]
    request = {"q": texts, "source": "auto", "target": "de", "alternatives": 1}
    answer = from_two_languages.post("/translate", request).json()
    languages = [each["language"] for each in answer["detectedLanguage"]]
    assert languages[:3] == ["en", "fr", "de"]
    first, second = translator.translate([ENGLISH, FRENCH])
    assert answer["translatedText"][:3] == [first, second, GERMAN]
    assert answer["translatedText"][4] == "====="
    assert answer["alternatives"][2] == [GERMAN]
    detected = from_two_languages.post("/detect", {"q": texts}).json()
    assert [each[0]["language"] for each in detected] == languages
    (ranked,) = from_two_languages.post("/detect", {"q": [FRENCH]}).json()
    assert ranked == from_two_languages.post("/detect", {"q": FRENCH}).json()


def test_short_texts_have_the_language_of_the_whole_list(from_two_languages):
    request = {"q": ["No", FRENCH, "ok"], "source": "auto", "target": "de"}
    answer = from_two_languages.post("/translate", request).json()
    assert [each["language"] for each in answer["detectedLanguage"]] == ["fr"] * 3


def test_clear_short_texts_have_their_own_language(server):
    texts = ["Der Hund sieht die Katze im Garten.", "The dog sees the cat.", "Die Tür"]
    request = {"q": texts, "source": "auto", "target": "de"}
    answer = server.post("/translate", request).json()
    languages = [each["language"] for each in answer["detectedLanguage"]]
    assert languages == ["de", "en", "de"]
    assert answer["translatedText"][0] == texts[0]
    assert answer["translatedText"][1] != texts[1]


def test_a_byte_order_mark_before_json_is_skipped(server, translator):
    body = b'\xef\xbb\xbf{"q": "red cat", "source": "en", "target": "de"}'
    answer = server.send("/translate", body)
    assert answer.json()["translatedText"] == translator.translate("red cat")


def test_text_in_the_target_language_stays_as_it_is(server):
    for text, form in ((f"  {GERMAN}\n", "text"), (f"<p>{GERMAN} &amp;</p>", "html")):
        request = {"q": text, "source": "auto", "target": "de", "format": form}
        answer = server.post("/translate", request).json()
        assert answer["translatedText"] == text
        assert answer["detectedLanguage"]["language"] == "de"
        named = server.post("/translate", {**request, "source": "en"}).json()
        assert named["translatedText"] != text


def test_text_without_letters_needs_no_language(from_two_languages):
    texts = ["*** 😀", "12:30", "+49 30 1234", "https://a.b/c?d=e", "a.b@c.org 5"]
    request = {"q": texts, "source": "auto", "target": "de"}
    answer = from_two_languages.post("/translate", request).json()
    assert answer["translatedText"] == texts
    refused = from_two_languages.post("/translate", {**request, "q": "ok"})
    assert refused.status_code == 400
    assert "Set source to en or fr." in refused.json()["error"]


def test_hypotheses_are_bounded_over_all_languages(from_two_languages, monkeypatch):
    monkeypatch.setattr("t2tlite.programs.serving.options.MAX_HYPOTHESES", 7)
    request = {"q": [ENGLISH, FRENCH], "source": "auto", "target": "de"}
    assert from_two_languages.post("/translate", request).status_code == 200
    response = from_two_languages.post("/translate", {**request, "alternatives": 1})
    assert response.status_code == 413
    assert "at most 7 hypotheses. Received: 8." in response.json()["error"]


def test_an_api_key_is_required_where_the_server_has_one(keyed):
    assert LibreTranslateAPI(keyed.url, "sesame").translate(SENTENCE, "en", "de")
    assert keyed.get("/frontend/settings").json()["keyRequired"] is True
    for key, status in (("", 400), ("open", 403), ("sesame", 200)):
        body = {"q": SENTENCE, "api_key": key}
        assert keyed.post("/translate", body).status_code == status
        assert keyed.post("/attention.html", data=body).status_code == status
    for header, key in (("bearer sesame", ""), ("sesame", ""), ("Basic x", "sesame")):
        headers = {"Authorization": header}
        response = keyed.post("/translate", FIELDS | {"api_key": key}, headers=headers)
        assert response.status_code == 200


def test_other_sites_may_call_only_if_they_are_named(server, keyed):
    allowed = "access-control-allow-origin"
    named = {"Origin": "https://example.org", "Access-Control-Request-Method": "POST"}
    other = {"Origin": "https://example.com"}
    assert allowed not in server.get("/languages", headers=named).headers
    assert allowed not in keyed.get("/languages", headers=other).headers
    answer = keyed.get("/languages", headers=named)
    assert answer.headers[allowed] == "https://example.org"
