"""What the API answers beyond LibreTranslate's fields, as a client sees it; outputs are
those of the model's decoder.
"""

import json
import re
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
import tensorflow as tf
from prometheus_client.parser import text_string_to_metric_families
from running import Changed, running, served

import t2tlite
from t2tlite.decoding.glossary import open_glossary
from t2tlite.tasks.task import TextToTextTask

SENTENCES = [
    "red cat sees dog",
    "bird likes fish now",
    "mouse hears horse",
    "dog bites white cat often",
]
# what loads something from another host, in a page
ELSEWHERE = r"://|https?:|\bsrc\s*=|url\(|@import|<link(?! rel=\"icon\")"


def translate(server, q, **more):
    response = server.post("/translate", {"q": q, **more})
    assert response.status_code == 200, response.text
    return response.json()


def best(segments):
    return [segment["hypotheses"][0]["text"] for segment in segments]


def streamed(server, q, **more):
    """The lines of a stream."""
    body = {"q": q, "stream": True, **more}
    url = f"{server.url}/translate"
    with httpx.stream("POST", url, json=body, timeout=60) as response:
        assert response.headers["content-type"] == "application/x-ndjson"
        return [json.loads(line) for line in response.iter_lines()]


def test_glossaries_of_the_server_and_of_requests(translator):
    """A request's is in place of the server's, whatever is computed beside it."""
    servers = {"dog": "maus"}
    glossaries = [{}, {"dog": "vogel"}, {"dog": "Katzenklo", "fish": "vogel"}] * 5

    def ask(glossary):
        answer = translate(tagged, [*SENTENCES, "Dog bites cat"], glossary=glossary)
        return answer["translatedText"]

    model = served(translator, tag="red", glossary=open_glossary(servers))
    with running([model]) as tagged, ThreadPoolExecutor(16) as clients:
        answers = list(clients.map(ask, glossaries))
    sources = [f"red {each}" for each in [*SENTENCES, "dog bites cat"]]
    for glossary, answer in zip(glossaries, answers, strict=True):
        expected = translator.translate(sources, glossary=glossary or servers)
        assert answer[:4] == expected[:4]
        assert (glossary or servers)["dog"] in answer[4]


def test_segments_keep_white_space_and_have_hypotheses(server, translator):
    text = "red cat sees dog.  Bird likes fish\n\n mouse hears horse "
    answer = translate(server, text, alternatives=1, segments=True)
    assert [(s["before"], s["source"]) for s in answer["segments"]] == [
        ("", "red cat sees dog."),
        ("  ", "Bird likes fish"),
        ("\n\n ", "mouse hears horse"),
    ]
    sources = [s["source"] for s in answer["segments"]]
    expected = translator.decode(sources, translator.options(return_beams=4))
    for segment, outputs in zip(answer["segments"], expected, strict=True):
        assert [hypothesis["text"] for hypothesis in segment["hypotheses"]] == [
            output.text for output in outputs[:2]
        ]
        for hypothesis, output in zip(segment["hypotheses"], outputs, strict=False):
            assert hypothesis["score"] == pytest.approx(output.score, rel=1e-3)
            assert hypothesis["log_prob"] == pytest.approx(output.log_prob, rel=1e-3)
    first, second, third = best(answer["segments"])
    assert answer["translatedText"] == f"{first}  {second}\n\n {third} "


def test_segments_of_a_list_are_lists(server, translator):
    expected = translator.translate(SENTENCES)
    answer = translate(server, [*SENTENCES, " \n "], segments=True)
    assert answer["translatedText"] == [*expected, " \n "]
    *segments, blank = answer["segments"]
    assert [best(each) for each in segments] == [[text] for text in expected]
    assert blank == []


def test_segments_of_html_are_those_of_its_text(server):
    q = "<html lang=en><p>red cat sees dog</p><p>mouse <b>hears</b> horse</p>"
    answer = translate(server, q, format="html", segments=True)
    assert answer["translatedText"].startswith('<html lang="de"><p>')
    first, second = answer["segments"]
    sources = [first["source"], second["source"]]
    assert sources == ["red cat sees dog", "mouse hears horse"]
    (*lines, last) = streamed(server, q, format="html")
    assert lines == [{"segments": 2}, first, second]
    assert last == {"translatedText": answer["translatedText"]}


def test_numbers_are_for_models_that_compute_with_them(server, translator):
    assert translate(server, "1 2", segments=True)["segments"] == []
    computing = Changed(translator, task=TextToTextTask())
    with running([served(computing)]) as other:
        (segment,) = translate(other, "1 2", segments=True)["segments"]
    assert segment["source"] == "1 2"


def test_metrics_are_those_of_each_model_and_the_process(both_ways):
    for source, q in (
        ("de", "red cat sees dog.  Bird likes fish"),
        ("de", "dog"),
        ("en", "cat"),
    ):
        translate(both_ways, q, source=source)
    families = text_string_to_metric_families(both_ways.get("/metrics").text)
    samples = {}
    for family in families:
        for name, labels, value, *_ in family.samples:
            samples[name, *sorted(labels.values())] = value
    before = time.time() - samples["process_start_time_seconds",]
    assert 0 < samples["process_cpu_seconds_total",] < 8 * before
    assert samples["process_resident_memory_bytes",] > 10_000_000
    versions = sorted([t2tlite.__version__, tf.__version__])
    assert samples["t2tlite_build_info", *versions] == 1
    assert samples["t2tlite_requests_total", "/translate", "200", "POST"] == 3
    for model, requests, sentences in (("de-en", 2, 3), ("en-de", 1, 1)):
        assert samples["t2tlite_model_seconds_count", model] == requests
        assert samples["t2tlite_model_sentences_total", model] == sentences
        assert 0 < samples["t2tlite_model_seconds_sum", model] < 60


def test_a_stream_has_a_line_for_each_segment_in_order(server):
    text = ".  ".join(sentence.capitalize() for sentence in SENTENCES) + "\n"
    first, *segments, last = streamed(server, text)
    whole = translate(server, text, segments=True)
    assert first == {"segments": 4}
    assert segments == whole["segments"]
    assert last == {"translatedText": whole["translatedText"]}
    assert [segment["before"] for segment in segments] == ["", "  ", "  ", "  "]


def test_alignments_are_of_each_hypothesis_if_wanted(server):
    """The colour goes behind its noun, and the verb to the end."""
    text = "red cat sees dog\nmouse hears horse"
    answer = translate(server, text, alignments=True, alternatives=1)
    for segments in (answer["segments"], streamed(server, text, alignments=True)[1:-1]):
        alignments = [s["hypotheses"][0]["alignment"] for s in segments]
        assert alignments == ["1-0 0-1 3-2 2-3", "0-0 2-1 1-2"]
    for hypothesis in answer["segments"][0]["hypotheses"]:
        assert len(hypothesis["alignment"].split()) == len(hypothesis["text"].split())
    answer = translate(server, text, segments=True)
    assert "alignment" not in answer["segments"][0]["hypotheses"][0]


def test_attention_takes_the_given_or_the_models_translation(server, translator):
    for blank in ("\u200b", " "):
        body = {"q": SENTENCES[0], "translation": blank}
        response = server.post("/attention", body).json()
        assert response["translation"] == translator.translate(SENTENCES[:1])[0]
    assert [word["text"] for word in response["source_words"]] == SENTENCES[0].split()
    assert all(sum(row) == pytest.approx(1, rel=1e-4) for row in response["weights"])
    body = {"q": SENTENCES[0], "translation": "katze maus"}
    words = server.post("/attention", body).json()["target_words"]
    positions = [tuple(word.values()) for word in words]
    assert positions == [("katze", 0, 5), ("maus", 6, 10)]
    page = server.post("/attention.html", data={"q": SENTENCES[0]})
    assert page.headers["content-type"].startswith("text/html")
    assert "Cross-attention" in page.text
    assert translator.run not in page.text


@pytest.mark.parametrize(
    "body",
    [
        {"q": "\u200b"},
        {"q": ["red"]},
        {"q": "red\ncat"},
        {"q": "red", "translation": "a\rb"},
    ],
)
def test_attention_is_of_one_sentence(server, body):
    response = server.post("/attention", body)
    assert response.status_code == 400
    assert "must be a sentence: no list, not blank" in response.json()["error"]


def test_limits_defaults_and_models_are_described(server):
    settings = server.get("/frontend/settings").json()
    assert settings["charLimit"] == 20000
    assert settings["keyRequired"] is False
    (model,) = settings["models"]
    assert {**model, "step": 0} == {
        "source": "en", "target": "de", "problem": "twenty_words", "step": 0, "beam_size": 4, "alpha": 0.6, "examples": [],
    }  # fmt: skip


def test_the_pages_need_no_other_host(server):
    for path in ("/", "/docs"):
        page = server.get(path)
        assert page.status_code == 200
        assert not re.search(ELSEWHERE, page.text)
    assert "default-src 'none'" in server.get("/").text


def test_the_description_names_every_field(server):
    paths = server.get("/openapi.json").json()["paths"]
    content = paths["/translate"]["post"]["requestBody"]["content"]
    fields = content["application/json"]["schema"]["properties"]
    assert all("description" in field for field in fields.values())
    assert "default" in paths["/translate"]["post"]["responses"]


def test_a_search_can_be_chosen_within_limits(server, translator):
    answer = translate(server, SENTENCES[0], beam_size=1)["translatedText"]
    assert answer == translator.translate(SENTENCES[0], beam_size=1)
    for fields, message in (
        ({"beam_size": 17}, "beam_size must be less than or equal to 16. Received: 17"),
        ({"beam_size": 2, "alternatives": 2}, "alternatives must be at most 1, less"),
        ({"glossary": ["a"]}, 'glossary must be an object. Received: ["a"].'),
        ({"glossary": {"a": [1]}}, "glossary[a] must be a valid string. Received: [1]"),
        ({"glossary": {"a": "b", "a ": "c"}}, "the glossary, line 2: 'a \\tc'."),
        ({"glossary": {"\u200b": "a"}}, "one target for each source. Received: the"),
        ({"glossary": {"a": "b\tc"}}, "Received: the glossary, line 1: "),
    ):
        response = server.post("/translate", {"q": "cat", **fields})
        assert response.status_code == 400
        assert message in response.json()["error"]


@pytest.fixture
def both_ways(translator):
    """The same model for two pairs, since another one would have to be trained."""
    models = [served(translator), served(translator, "de", "en")]
    with running(models) as running_server:
        yield running_server


def test_several_pairs_have_to_be_named(both_ways):
    assert len(both_ways.get("/frontend/settings").json()["models"]) == 2
    assert translate(both_ways, "cat", source="de")
    for fields, received in (
        ({}, "source missing, target missing"),
        ({"target": "tree"}, "source missing, target tree"),
    ):
        response = both_ways.post("/translate", {"q": "cat", **fields})
        assert response.status_code == 400
        required = "source and target must be one of the pairs served: en-de, de-en."
        assert response.json() == {"error": f"{required} Received: {received}."}
