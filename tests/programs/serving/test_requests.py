"""Bodies in JSON and as forms: what is read, what is refused, and at what cost."""

import json
import time
import tracemalloc

import pytest
from starlette.exceptions import HTTPException

from t2tlite.programs.serving.requests import form_fields

LIMIT_S = 3  # of CPU time, for what took 5 to 44 seconds, and takes about 0.05
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"


def part(headers: str, value: str = "a") -> bytes:
    return f"--x\r\n{headers}\r\n\r\n{value}\r\n".encode()


NAMED = 'Content-Disposition: form-data; name="q"'
PARAMETERS = "".join(f'; a{i}="b"' for i in range(80_000))
NESTED = "".join(
    f"--x\r\nContent-Type: multipart/mixed; boundary=x{i}\r\n\r\n--x{i}\r\n"
    for i in range(20_000)
)


@pytest.mark.parametrize(
    "body",
    [
        part(NAMED + PARAMETERS),
        part(NAMED) * 16_000,
        NESTED.encode(),
        part(NAMED) + part("A: b\r\n" * 100_000 + NAMED),
    ],
    ids=["parameters", "parts", "nested", "headers"],
)
def test_hostile_multipart_form_is_refused_at_once(body):
    started = time.process_time()
    with pytest.raises(
        HTTPException, match="A form or an address must have"
    ) as refused:
        form_fields(body + b"--x--\r\n", MULTIPART)
    assert refused.value.status_code == 400
    assert time.process_time() - started < LIMIT_S


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary="]
)
def test_multipart_form_without_a_boundary_is_refused(content_type):
    with pytest.raises(HTTPException, match="A form or an address must have"):
        form_fields(part(NAMED) + b"--x--\r\n", content_type)


def test_multipart_form_has_its_fields():
    source = NAMED.replace("q", "source")
    body = part(NAMED, "é") + part(source, "en") + b"--x--\r\n"
    assert form_fields(body, MULTIPART) == {"q": "é", "source": "en"}


@pytest.mark.parametrize("body", [b"q=\xc3\xb6+\xe2\x80\x9c", b"q=%C3%B6+%E2%80%9C"])
def test_form_is_in_utf_8(body):
    assert form_fields(body) == {"q": "ö “"}


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("charset", ["", "; charset=UTF-8", ';Charset="utf8"'])
def test_form_may_be_a_file(server, end, charset):
    """With a BOM, and a line end that an editor put behind it."""
    body = f"\ufeffq=Größe&source=en&target=de{end}".encode()
    assert server.send("/translate", body, FORM + charset).status_code == 200


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        (b"q=caf\xe9", {}, 400),
        (b"q=caf%E9", {}, 400),
        (b"q=a&source=en&q=b", {}, 400),
        (b"q=a", {"Content-Type": f"{FORM}; charset=ISO-8859-1"}, 415),
        (b"q=a", {"Content-Type": f"{FORM}; charset=["}, 415),
        (b'{"q": "a"}', {"Content-Type": "application/json; charset=utf-16"}, 415),
        (b"q=a", {"Content-Encoding": "gzip"}, 415),
        (b"", {"Content-Encoding": "deflate"}, 415),
        (b'{"q": "cat"}', {"Content-Type": "text/plain"}, 415),
        (b'{"q": "cat"}', {"Content-Type": ""}, 415),
    ],
)
def test_body_in_another_encoding_or_format_is_refused(server, body, headers, status):
    headers = {"Content-Type": FORM, **headers}
    response = server.post("/translate", content=body, headers=headers)
    assert response.status_code == status
    assert "in UTF-8" in response.json()["error"]


def test_address_must_be_in_utf_8(server):
    address = "/translate?source=en&target=de&q="
    assert server.post(address + "caf%C3%A9").status_code == 200
    response = server.post(address + "caf%E9")
    assert response.status_code == 400
    assert "up to 1000 different fields, in UTF-8" in response.json()["error"]


@pytest.mark.parametrize(
    "name", ["name*=utf-8''q", "name*0=q", 'filename="q"', 'name="q"; filename="q"']
)
def test_multipart_part_without_a_plain_name_is_refused(server, name):
    body = part(f"Content-Disposition: form-data; {name}") + b"--x--\r\n"
    assert server.send("/translate", body, MULTIPART).status_code == 400


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"q": [1] * 300_000}, "q[0]"),
        ({"q": "a", "glossary": {str(i): 1 for i in range(80_000)}}, "glossary[0]"),
    ],
)
def test_check_of_a_body_stops_at_the_first_mistake(server, body, place):
    body = json.dumps(body).encode()
    tracemalloc.start()
    response = server.send("/translate", body)
    assert response.status_code == 400
    assert response.json()["error"] == f"{place} must be a valid string. Received: 1."
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 << 20  # 525 MB where each entry makes a record
