"""The requests that docs/serving-api.md shows, sent to a server of a model and a parser."""

import json
import shlex
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from running import parser_of, running, served

PAGE = Path(__file__).resolve().parents[3] / "docs" / "serving-api.md"
REQUESTS = [
    line
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("curl ")
]


@pytest.fixture(scope="module")
def both(translator):
    models = [served(translator), served(parser_of(translator), "en", "tree")]
    with running(models) as running_server:
        yield running_server


@pytest.mark.parametrize("line", REQUESTS)
def test_a_documented_request_is_answered(both, line):
    """Those without a target need a server of one model, so the target is added."""
    _, _, address, *words = shlex.split(line)
    options = list(zip(words[::2], words[1::2], strict=True))
    fields = {"source": "en", "target": "de"}
    sent_as_json = False
    for name, value in options:
        if name == "--json":
            fields |= json.loads(value)
            sent_as_json = True
        elif name == "-d":
            field, _, content = value.partition("=")
            fields[field] = content
    path = urlsplit(address).path
    how = {"json": fields} if sent_as_json else {"data": fields}
    response = both.post(path, **how)
    assert response.status_code == 200, response.text
    assert '"error"' not in response.text


def test_every_path_is_documented(both):
    text = PAGE.read_text(encoding="utf-8")
    for path in both.get("/openapi.json").json()["paths"]:
        assert f"`{path}`" in text
