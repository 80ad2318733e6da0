"""A run served by CTranslate2: the same answers as with TensorFlow."""

import shutil

import pytest
from running import running

from t2tlite.programs.serving.models import ServedPair, load_catalogue
from t2tlite.programs.serving.options import ServedRunOptions

SENTENCES = [
    "red cat sees dog",
    "bird likes fish now",
    "mouse hears horse",
    "dog bites white cat often",
]


@pytest.fixture(scope="module")
def server(tiny_run, tmp_path_factory):
    pytest.importorskip("ctranslate2")
    run = shutil.copytree(tiny_run.run, tmp_path_factory.mktemp("served") / "run")
    options = ServedRunOptions(
        output_dir=(str(run),), engine="ctranslate2", decode_hparams="beam_size=2"
    )
    models = load_catalogue(options, [ServedPair(str(run), "en", "de")]).models
    # the server's threads each compute a batch
    assert [model.translator.engine.threads for model in models] == [1]
    with running(models) as running_server:
        yield running_server


@pytest.mark.parametrize(
    "options", [{}, {"beam_size": 1}, {"beam_size": 4, "alpha": 1.0}], ids=str
)
def test_translations_are_those_of_tensorflow(server, translator, options):
    body = {"q": SENTENCES, "segments": True, **options}
    response = server.post("/translate", body).json()
    expected = translator.n_best(SENTENCES, 1, **{"beam_size": 2, **options})
    assert response["translatedText"] == [best.text for (best,) in expected]
    for segments, (best,) in zip(response["segments"], expected, strict=True):
        (hypothesis,) = segments[0]["hypotheses"]
        assert hypothesis["text"] == best.text
        assert hypothesis["score"] == pytest.approx(best.score, abs=1e-4)
        assert hypothesis["log_prob"] == pytest.approx(best.log_prob, abs=1e-4)


def test_attention_is_computed_by_tensorflow(server):
    body = {"q": SENTENCES[0], "translation": "katze rot hund sieht"}
    response = server.post("/attention", body).json()
    assert [word["text"] for word in response["source_words"]] == SENTENCES[0].split()
    assert len(response["weights"]) == 4


@pytest.mark.parametrize(
    ("fields", "received"),
    [({"alignments": True}, "en-de."), ({"glossary": {"a": "b"}}, "glossary. Leave")],
)
def test_what_needs_tensorflow_is_refused(server, fields, received):
    response = server.post("/translate", {"q": SENTENCES[0], **fields})
    assert response.status_code == 400
    assert f"Received: {received}" in response.json()["error"]


def test_text_between_tags_is_translated_by_itself(server, translator):
    text = "<p><b>red cat sees dog</b> mouse hears horse</p>"
    request = {"q": text, "source": "en", "target": "de", "format": "html"}
    bold, rest = translator.translate(
        ["red cat sees dog", "mouse hears horse"], beam_size=2
    )
    assert server.post("/translate", request).json() == {
        "translatedText": f"<p><b>{bold}</b> {rest}</p>"
    }
