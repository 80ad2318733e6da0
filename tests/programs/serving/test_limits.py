"""What one request may cost others, and who may send requests."""

from __future__ import annotations

import json
import re
import socket
import time
import tracemalloc
from pathlib import Path

import httpx
import pytest
from running import running, served

from t2tlite.programs.documents.sentences import split_text
from t2tlite.programs.serving import models, own_api
from t2tlite.programs.serving.app import check_sender
from t2tlite.programs.serving.batching import Limits
from t2tlite.programs.serving.languages import detect_each
from t2tlite.programs.serving.libretranslate import LibreTranslateRequest
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.requests import (
    RequestError,
    form_fields,
    from_body,
    log_failure,
)
from t2tlite.programs.serving.schemas import (
    ScoreRequest,
    TranslateRequest,
)
from t2tlite.run_folder import RunFolder

REPOSITORY = Path(__file__).resolve().parents[3]
SENTENCE = "red cat sees dog"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data; boundary=x"
LIMIT_S = 3  # of CPU time, for what took 5 to 44 seconds, and takes some 0.05


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
        RequestError, match="The body must be a form in UTF-8, or JSON"
    ) as refused:
        form_fields(body + b"--x--\r\n", MULTIPART)
    assert refused.value.status == 400
    assert time.process_time() - started < LIMIT_S


@pytest.mark.parametrize(
    "content_type", ["multipart/form-data", "multipart/form-data; boundary="]
)
def test_multipart_form_without_a_boundary_is_refused(content_type):
    with pytest.raises(RequestError, match="The body must be a form in UTF-8, or JSON"):
        form_fields(part(NAMED) + b"--x--\r\n", content_type)


def test_multipart_form_has_its_fields():
    file = (
        'Content-Disposition: form-data; name="q"; filename="f.txt"\r\nContent-Type:'
        " text/plain"
    )
    body = (
        part(NAMED, "é")
        + part(file, "b")
        + part(NAMED.replace("q", "source"), "en")
        + b"--x--\r\n"
    )
    assert form_fields(body, MULTIPART) == {"q": ["é", "b"], "source": "en"}


def test_charset_of_a_multipart_form_is_used():
    body = part(NAMED).replace(b"\r\na\r\n", b"\r\ncaf\xe9\r\n") + b"--x--\r\n"
    assert form_fields(body, f"{MULTIPART}; charset=ISO-8859-1") == {"q": "café"}


# what "ö" and "“" are in each encoding, by the tables of Unicode and of WHATWG
@pytest.mark.parametrize(
    "charset", ["", "; charset=UTF-8", ';Charset="utf-8"', "; charset=utf8"]
)
@pytest.mark.parametrize("body", [b"q=\xc3\xb6+\xe2\x80\x9c", b"q=%C3%B6+%E2%80%9C"])
def test_form_is_in_utf_8(charset, body):
    assert form_fields(body, FORM + charset) == {"q": "ö “"}


@pytest.mark.parametrize("charset", ["ISO-8859-1", "windows-1252", '"latin1"'])
@pytest.mark.parametrize("body", [b"q=\xf6+\x93", b"q=%F6+%93"])
def test_form_is_in_the_charset_that_it_names(charset, body):
    assert form_fields(body, f"{FORM}; charset={charset}") == {"q": "ö “"}


@pytest.mark.parametrize(
    ("body", "charset", "status", "message"),
    [
        (b"q=caf\xe9", "", 400, "The body must be a form in UTF-8"),
        (b"q=caf%E9", "", 400, "The body must be a form in UTF-8"),
        (b"q=a\xc3", "; charset=UTF-8", 400, "The body must be a form in UTF-8"),
        (b"q=\x81", "; charset=ISO-8859-1", 400, "a form in the charset of its"),
        (
            b"q=a",
            "; charset=UTF-16",
            415,
            "UTF-8, ISO-8859-1 or Windows-1252. Received: 'UTF-16'",
        ),
        (b"q=a", "; charset=rot13", 415, "Received: 'rot13'"),
    ],
)
def test_form_in_another_encoding_is_refused(body, charset, status, message):
    with pytest.raises(RequestError, match=message) as refused:
        form_fields(body, FORM + charset)
    assert refused.value.status == status


def test_form_may_be_a_file():
    """With a BOM, and a line end that an editor put behind it."""
    fields = {"q": "Größe", "target": "de"}
    for end in ("\n", "\r\n"):
        body = f"\ufeffq=Größe&target=de{end}".encode()
        assert form_fields(body, FORM) == fields


def test_address_must_be_in_utf_8(server):
    address = "/translate?source=en&target=de&q="
    assert server.post(address + "caf%C3%A9").status_code == 200
    response = server.post(address + "caf%E9")
    assert response.status_code == 400
    assert response.json()["error"].startswith("The address must have at most 1000")


def test_log_escapes_and_cuts_what_a_client_may_have_written(caplog):
    try:
        try:
            raise ValueError("\x1b[31msecret\nINFO: all is well" + "a" * 1000)
        except ValueError as error:
            raise KeyError("q") from error
    except KeyError as error:
        log_failure(error)
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == "A request failed."
    assert r"ValueError: '\x1b[31msecret\nINFO: all is well" in record.getMessage()
    assert max(map(len, lines)) < 200
    assert "Traceback (most recent call last):" in lines


@pytest.mark.parametrize("name", ["name*=utf-8''q", "name*0=q", 'filename="q"'])
def test_multipart_part_without_a_plain_name_is_refused(server, name):
    body = part(f"Content-Disposition: form-data; {name}") + b"--x--\r\n"
    assert server.send("/translate", body, MULTIPART).status_code == 400


@pytest.mark.parametrize(
    "piece",
    [".", " ", ". ", "A. ", "1. ", "\n", "a\n", '."', "- ", "! ", "‹", "‘", "「a。", "!(",
     "a. “", "(a.) ", "a😀", "* ", "\u00a0", "a\u200b"],
)  # fmt: skip
def test_sentences_of_hostile_text_are_found_in_linear_time(piece):
    text = (piece * 200_000)[:200_000]
    started = time.process_time()
    split = split_text(text)
    assert split.join([segment.sentence for segment in split.segments]) == text
    assert time.process_time() - started < LIMIT_S


def test_languages_of_many_texts_are_detected_in_time():
    """As many as a request may have, long and short ones."""
    texts = [f"{number:06} the cat is on the table, oh so red" for number in range(487)]
    started = time.process_time()
    detect_each(texts, ["de", "en", "fr"])
    assert time.process_time() - started < LIMIT_S
    started = time.process_time()
    detect_each(["The cat is here."] * 1000, ["de", "en", "fr"])
    assert time.process_time() - started < LIMIT_S


def test_blank_texts_count(server):
    for path, body in (
        ("/v1/translate", {"q": [""] * 1001}),
        ("/v1/score", {"pairs": [["", ""]] * 1001}),
        (
            "/translate",
            {"q": [""] * 1001, "source": "en", "target": "de", "alternatives": 15},
        ),
    ):
        response = server.post(path, body)
        assert response.status_code == (400 if path == "/translate" else 413)
        message = (
            "A request must have at most 1,000 texts. Received: 1,001. Split it into"
            " several requests."
        )
        assert response.json() == {"error": message}


def test_blank_text_counts_as_a_character(translator):
    with running([served(translator)], max_characters=3) as small:
        assert small.post("/v1/translate", {"q": ["", "", ""]}).status_code == 200
        response = small.post("/v1/translate", {"q": [""] * 4})
        assert response.json()["error"].startswith(
            "The text of a request must have at most 3 characters. Received: 4."
        )


def test_hypotheses_of_a_request_are_bounded(server):
    libretranslate = {"source": "en", "target": "de", "alternatives": 15}
    for path, options in (
        ("/v1/translate", {"n_best": 16}),
        ("/translate", libretranslate),
    ):
        response = server.post(path, {"q": "a\n" * 1251, **options})
        assert response.status_code == 413
        message = (
            "A request must have at most 20,000 hypotheses. Received: 1,251 sentences"
            " with 16 each."
        )
        assert response.json()["error"].startswith(message)


@pytest.mark.parametrize(
    ("beam_size", "limit", "advice"),
    [
        (1, 512, "Split it."),
        (4, 512, "Split it."),
        (16, 128, "Split it, or ask for a beam_size below 16."),
    ],
)
def test_tokens_and_beam_size_of_a_sentence_are_bounded(
    translator, beam_size, limit, advice
):
    model = served(translator)
    assert model.search_token_counts(["cat " * (limit // 4)], beam_size)
    message = f"A sentence must have at most {limit} tokens. Received: one of 1"
    with pytest.raises(RequestError, match=re.escape(message)) as refused:
        model.search_token_counts(["zq" * 5000], beam_size)
    assert refused.value.status == 413
    assert refused.value.message.endswith(advice)


@pytest.mark.parametrize(
    ("kind", "content", "message"),
    [
        (
            TranslateRequest,
            {"q": [1] * 300_000},
            r"q\[0\] must be a string. Received: 1\.",
        ),
        (
            LibreTranslateRequest,
            {"q": [1] * 300_000, "source": "en", "target": "de"},
            r"q\[0\] must be",
        ),
        (
            ScoreRequest,
            {"pairs": [1] * 300_000},
            r"pairs\[0\] must be a valid tuple\. Received: 1\.",
        ),
        (
            TranslateRequest,
            {f"a{i}": 1 for i in range(60_000)},
            "There is no field 'a0'",
        ),
    ],
)
def test_check_of_a_body_stops_at_the_first_mistake(kind, content, message):
    body = json.dumps(content).encode()
    tracemalloc.start()
    with pytest.raises(RequestError, match=message):
        from_body(body, kind)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 30 << 20  # 525 MB where each entry makes a record


@pytest.mark.parametrize(
    "texts", [{"q": "zq" * 1000}, {"q": "cat", "translation": "zq" * 1000}]
)
def test_attention_to_too_many_tokens_has_status_413(server, texts):
    response = server.post("/v1/attention", texts)
    assert response.status_code == 413
    assert response.json()["error"].startswith(
        "A sentence must have at most 512 tokens. Received: one of "
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
    options = models.__name__ + ".MAX_ATTENTION_WEIGHTS"
    given = {"q": SENTENCE, "translation": SENTENCE}
    for path in ("/v1/attention", "/v1/attention.html"):
        monkeypatch.setattr(options, weights)
        assert server.post(path, given).status_code == 200
        monkeypatch.setattr(options, weights - 1)
        response = server.post(path, given)
        assert response.status_code == 413
        assert response.json()["error"] == (
            f"The attention of a sentence must have at most {weights - 1:,} weights."
            f" Received: {weights:,}, for {s} tokens and their translation of {t}. Send"
            " a shorter sentence."
        )
        monkeypatch.setattr(options, hparams.num_heads * layers * s * s)
        assert server.post(path, {"q": SENTENCE}).status_code == 413


def test_unhandled_error_is_counted_and_has_security_headers(
    translator, monkeypatch, caplog
):
    def fail(*_):
        raise RuntimeError("a secret of /home/someone")

    monkeypatch.setattr(own_api, "_description", fail)
    with running([served(translator)]) as server:
        response = server.get("/v1/models")
        assert response.status_code == 500
        assert response.json() == {
            "error": "The server could not answer this request; its log says why."
        }
        assert response.headers["x-content-type-options"] == "nosniff"
        assert (
            't2tlite_requests_total{method="GET",path="/v1/models",status="500"} 1.0'
            in server.get("/metrics").text
        )
    assert "a secret" in caplog.text


def test_bodies_of_other_types_are_not_computed(server):
    for path in ("/v1/translate", "/translate"):
        for content_type in ("text/plain", "application/x-json", ""):
            response = server.send(
                path, b'{"q": "cat", "source": "en", "target": "de"}', content_type
            )
            assert response.status_code == 415, (path, content_type)
            assert response.json()["error"].startswith(
                "The body must be JSON, with Content-Type: application/json"
            )


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"host": "localhost:5000"}, 0),
        ({"host": "192.168.1.2:5000"}, 0),
        ({"host": "[::1]:5000"}, 0),
        ({"host": "Translate.example.org"}, 0),
        ({"host": "evil.example"}, 400),
        ({"host": "127.0.0.1.evil.example:5000"}, 400),
        ({"host": "localhost:5000", "origin": "http://localhost:5000"}, 0),
        ({"host": "localhost", "origin": "https://friend.example"}, 0),
        ({"host": "localhost", "origin": "https://evil.example"}, 403),
        ({"host": "localhost", "origin": "null"}, 403),
        # what is not an origin
        ({"host": "localhost", "origin": "http://["}, 403),
        ({"host": "localhost", "origin": "http://"}, 403),
        ({"host": "localhost", "origin": "localhost"}, 403),
        ({"host": "localhost", "origin": ""}, 403),
        ({"host": "localhost", "origin": "http://localhost/"}, 403),
        ({"host": "localhost", "sec-fetch-site": "no such value"}, 403),
        ({"host": "localhost", "sec-fetch-site": "none"}, 0),
        # default ports
        ({"host": "localhost:443", "origin": "https://localhost"}, 0),
        ({"host": "localhost", "origin": "http://localhost:80"}, 0),
        ({"host": "localhost:80", "origin": "https://localhost"}, 403),
        # a proxy that sends the server's own address as Host
        (
            {
                "host": "127.0.0.1:5000",
                "x-forwarded-host": "Translate.example.org:8080",
                "origin": "http://translate.example.org:8080",
            },
            0,
        ),
        (
            {
                "host": "127.0.0.1:5000",
                "x-forwarded-host": "evil.example",
                "origin": "http://evil.example",
            },
            403,
        ),
        (
            {
                "host": "127.0.0.1:5000",
                "origin": "http://translate.example.org:8080",
            },
            403,
        ),
        (
            {
                "host": "127.0.0.1:5000",
                "origin": "https://translate.example.org",
                "sec-fetch-site": "same-origin",
            },
            0,
        ),
        ({"host": "localhost", "sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_requests_of_other_sites_are_refused(headers, status):
    options = ServerOptions(
        allowed_hosts=("translate.example.org",),
        cors_origins=("https://friend.example",),
    )
    if not status:
        check_sender(httpx.Headers(headers), options)
        return
    with pytest.raises(
        RequestError, match=r"does not know the host|Pages of other sites may not"
    ) as refused:
        check_sender(httpx.Headers(headers), options)
    assert refused.value.status == status


def test_documented_nginx_lets_the_pages_own_posts_through(translator):
    """What nginx sends: without a line of its configuration for it, Host is that of
    proxy_pass. Over plain HTTP a browser sends Origin, and no Sec-Fetch-Site.
    """
    text = (REPOSITORY / "docs" / "serving.md").read_text(encoding="utf-8")
    (location,) = re.findall(
        r"^location / \{\n(.*?)^\}", text, re.DOTALL | re.MULTILINE
    )
    lines = dict(
        re.findall(r"^ +proxy_set_header (\S+) (\S+);", location, re.MULTILINE)
    )
    public = "translate.example.org:8080"
    variables = {"$http_host": public, "$scheme": "http", "$remote_addr": "192.0.2.1"}
    sent = {"Host": re.search(r"proxy_pass http://(\S+);", location)[1]}
    sent |= {name: variables[value] for name, value in lines.items()}
    hosts = ("translate.example.org",)
    with running([served(translator)], allowed_hosts=hosts) as server:
        for origin, status in ((f"http://{public}", 200), ("http://evil.example", 403)):
            headers = {**sent, "Origin": origin}
            for path in ("/v1/translate", "/v1/attention.html"):
                response = server.post(path, {"q": SENTENCE}, headers=headers)
                assert response.status_code == status


def test_request_of_an_unknown_host_is_not_computed(server):
    response = server.post(
        "/v1/translate", {"q": SENTENCE}, headers={"Host": "evil.example"}
    )
    assert response.status_code == 400
    assert (
        "The server does not know the host 'evil.example'." in response.json()["error"]
    )
    assert server.get("/health", headers={"Host": "evil.example"}).status_code == 200


HEADERS = {
    "Origin": (
        b"http://[",
        b"http://[::1",
        b"[",
        b"\xff",
        b"null",
        b"://",
        b"x" * 9000,
    ),
    "Host": (
        b"[",
        b"[::1",
        b"]",
        b":",
        b"localhost:x",
        b"\xff",
        b"a b",
        b"@",
        b"1.2.3",
    ),
    "Sec-Fetch-Site": (b"[", b"\xff", b"Same-Origin"),
    "X-Forwarded-Host": (b"[", b"\xff", b",", b"localhost, ["),
    "X-Forwarded-For": (b"[", b"\xff", b","),
    "X-Forwarded-Proto": (b"[", b"\xff", b","),
    "Authorization": (b"[", b"\xff", b"Bearer", b"Bearer \xff", b"Basic x", b"\x80 "),
    "Content-Type": (
        b"[",
        b"\xff",
        b"application/json; charset=[",
        b"application/json; charset=utf-7",
        b"multipart/form-data",
        b"multipart/form-data; boundary=\xff",
        b"multipart/form-data; boundary=" + b"x" * 5000,
        b"application/x-www-form-urlencoded; charset=x",
    ),
    "Content-Length": (b"[", b"9" * 5000, b"-1", b"+3", b"0x9", b"1, 2"),
    "Accept": (b"[", b"\xff"),
    "Cookie": (b"[", b"\xff=\xff"),
}


@pytest.mark.parametrize("name", HEADERS)
def test_damaged_header_is_no_failure_of_the_server(translator, name):
    """It has a status below 500, also where a key is needed that it does not have."""
    body = b'{"q": "red cat", "source": "en", "target": "de"}'
    usual = {"Host": b"localhost", "Content-Type": b"application/json"}
    usual["Content-Length"] = str(len(body)).encode()
    with running([served(translator)], api_key="sesame") as server:
        for value in HEADERS[name]:
            for path in (b"/translate", b"/v1/attention.html", b"/nothing", b"/"):
                fields = {**usual, name: value}
                lines = [b"POST " + path + b" HTTP/1.1"]
                lines += [key.encode() + b": " + fields[key] for key in fields]
                with socket.create_connection(("127.0.0.1", server.port), 60) as sent:
                    sent.sendall(b"\r\n".join([*lines, b"", body]))
                    status = sent.recv(12)
                assert re.fullmatch(rb"HTTP/1.1 4\d\d?", status), (value, path, status)
        assert server.get("/ready").status_code == 200


def test_pages_are_framed_only_by_sites_that_may_send_requests(server, translator):
    """A page in a frame would translate the text of its address."""
    usual = "frame-ancestors 'self'"
    for path in ("/", "/docs", "/health", "/nothing"):
        assert server.get(path).headers["content-security-policy"] == usual
    origins = ("https://friend.example",)
    with running([served(translator)], cors_origins=origins) as friendly:
        policy = friendly.get("/").headers["content-security-policy"]
    assert policy == f"{usual} https://friend.example"


def test_api_key_may_have_any_letters(translator):
    with running([served(translator)], api_key="schlüssel") as keyed:
        for key, status in (("schlüssel", 200), ("schlussel", 403)):
            headers = {"Authorization": f"Bearer {key}".encode()}
            assert (
                keyed.post(
                    "/v1/translate", {"q": SENTENCE}, headers=headers
                ).status_code
                == status
            )


def test_api_key_is_checked_before_the_body(translator):
    with running([served(translator)], api_key="sesame") as keyed:
        for path in ("/translate", "/v1/translate"):
            assert (
                keyed.send(
                    path, b"x" * 2_000_000, MULTIPART, Authorization="wrong"
                ).status_code
                == 403
            )


def test_language_of_html_is_that_of_its_text(translator):
    with running(
        [
            served(translator),
            served(translator, "de", "en"),
            served(translator, "fr", "en"),
        ]
    ) as several:
        markup = (
            "<p class='the cat of this house is on the table and it was there'>" * 3
        )
        body = {
            "source": "auto",
            "target": "en",
            "q": f"{markup}Die Katze ist hier</p>",
            "format": "html",
        }
        assert (
            several.post("/translate", body).json()["detectedLanguage"]["language"]
            == "de"
        )


def test_wide_searches_have_smaller_batches():
    limits = Limits(batch_tokens=1024)
    assert [limits.tokens_at_width(width) for width in (1, 4, 8, 16)] == [
        1024,
        1024,
        512,
        256,
    ]
