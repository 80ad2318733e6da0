"""The answer of each endpoint is what its schema and /openapi.json describe."""

import re

import pytest
from pydantic import TypeAdapter
from running import parser_of, running, served

from t2tlite.programs.serving import schemas

PAIR = {"source": "en", "target": "de"}
TEXT = "red cat sees dog"


@pytest.fixture(scope="module")
def both(translator):
    models = [served(translator), served(parser_of(translator), "en", "tree")]
    with running(models) as server:
        yield server


@pytest.mark.parametrize(
    ("path", "body", "kind"),
    [
        ("/translate", {"q": [TEXT, ""], "target": "de"}, schemas.TranslateResponse),
        ("/translate", {"q": ["a .", " "], "target": "tree", "segments": True}, schemas.TranslateResponse),
        ("/translate", {"q": TEXT, "source": "auto", "target": "de"}, schemas.TranslateResponse),
        ("/translate", {"q": [TEXT], **PAIR, "alternatives": 1}, schemas.TranslateResponse),
        ("/attention", {"q": TEXT, **PAIR}, schemas.AttentionResponse),
        ("/detect", {"q": TEXT}, list[schemas.Detection]),
        ("/detect", {"q": [TEXT]}, list[list[schemas.Detection]]),
        ("/languages", None, list[schemas.Language]),
        ("/frontend/settings", None, schemas.Settings),
        ("/ready", None, schemas.StatusResponse),
    ],
)  # fmt: skip
def test_answer_is_what_the_schema_describes(both, path, body, kind):
    response = both.get(path) if body is None else both.post(path, body)
    assert response.status_code == 200, response.text
    adapter = TypeAdapter(kind)
    # refuses fields that the schema lacks
    content = adapter.validate_json(response.content, strict=False)
    without_none = path == "/translate"
    kept = adapter.dump_python(content, mode="json", exclude_none=without_none)
    assert kept == response.json()
    methods = both.get("/openapi.json").json()["paths"][path]
    described = methods["get" if body is None else "post"]
    schema = described["responses"]["200"]["content"]["application/json"]["schema"]
    names = re.findall(r"schemas/(\w+)", str(schema))
    assert names
    assert all(name in str(kind) for name in names)
    if body is not None:
        taken = described["requestBody"]["content"]["application/json"]["schema"]
        assert set(body) <= set(taken["properties"])
        assert set(taken["required"]) <= set(body)
