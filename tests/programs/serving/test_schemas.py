"""The answer of each endpoint is what its schema and /openapi.json describe."""

from __future__ import annotations

import re

import pytest
from pydantic import TypeAdapter
from running import parser_of, running, served

from t2tlite.programs.serving import languages, libretranslate, schemas

PAIR = {"source": "en", "target": "de"}
TEXT = "red cat sees dog"


@pytest.fixture(scope="module")
def both(translator):
    with running(
        [served(translator), served(parser_of(translator), "en", "tree")]
    ) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/v1/models", None, schemas.ModelsResponse),
        ("/v1/translate", {"q": [TEXT, ""], "n_best": 2}, schemas.TranslateResponse),
        ("/v1/translate", {"q": TEXT, "alignments": True}, schemas.TranslateResponse),
        ("/v1/score", {"pairs": [[TEXT, "katze"]]}, schemas.ScoreResponse),
        ("/v1/attention", {"q": TEXT}, schemas.AttentionResponse),
        ("/v1/parse", {"q": ["a cat .", " "]}, schemas.ParseResponse),
        (
            "/translate",
            {"q": TEXT, **PAIR, "source": "auto", "alternatives": 1},
            libretranslate.LibreTranslateResponse,
        ),
        (
            "/translate",
            {"q": [TEXT], **PAIR, "alternatives": 1},
            libretranslate.LibreTranslateResponse,
        ),
        ("/detect", {"q": TEXT}, list[languages.LibreDetection]),
        ("/detect", {"q": [TEXT]}, list[list[languages.LibreDetection]]),
        ("/languages", None, list[libretranslate.LibreLanguage]),
        ("/frontend/settings", None, libretranslate.LibreSettings),
        ("/health", None, schemas.StatusResponse),
        ("/ready", None, schemas.StatusResponse),
    ],
)
def test_answer_is_what_the_schema_describes(both, path, body, kind):
    response = both.get(path) if body is None else both.post(path, body)
    assert response.status_code == 200, response.text
    adapter = TypeAdapter(kind)
    # refuses fields that the schema lacks
    content = adapter.validate_json(response.content, strict=False)
    kept = adapter.dump_python(
        content, mode="json", exclude_none=path.endswith("/translate")
    )
    assert kept == response.json()
    described = both.get("/openapi.json").json()["paths"][path][
        "get" if body is None else "post"
    ]
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    names = re.findall(r"schemas/(\w+)", str(schema))
    assert names
    assert all(name in str(kind) for name in names)
    if body is not None:
        taken = described["requestBody"]["content"]["application/json"]["schema"]
        assert set(body) <= set(taken["properties"])
        assert set(taken["required"]) <= set(body)


def test_lists_are_described_where_they_are_taken(both):
    paths = both.get("/openapi.json").json()["paths"]
    for path in ("/translate", "/detect", "/v1/translate", "/v1/parse"):
        q = paths[path]["post"]["requestBody"]["content"]["application/json"]["schema"][
            "properties"
        ]["q"]
        assert [choice["type"] for choice in q["anyOf"]] == ["string", "array"]


def test_missing_number_is_no_answer():
    with pytest.raises(ValueError, match="log_prob\n  Input should be a valid number"):
        schemas.TranslationHypothesis(text="a", score=0.0, log_prob=None)
    with pytest.raises(ValueError, match="log_prob\n  Input should be a finite number"):
        schemas.PairScore(log_prob=float("-inf"))
