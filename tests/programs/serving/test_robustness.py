"""What clients do wrong, and what goes wrong: an answer of the right status, and
nothing that stops the server.
"""

import contextlib
import json
import random
import signal
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from malformed import MALFORMED, PATHS
from raw_peers import Peer, until
from running import WAIT_S, Changed, Gated, running, served

from t2tlite.programs.serving import app
from t2tlite.programs.serving.batching import WORKERS
from t2tlite.programs.serving.requests import failure
from t2tlite.vocabularies.normalisation import is_blank

SENTENCE = "red cat sees dog"


@contextlib.contextmanager
def slow_server(translator, **options):
    """A server whose translator waits, and the translator."""
    slow = Gated(translator)
    with running([served(slow)], **options) as server:
        try:
            yield server, slow
        finally:
            slow.gate.set()


def occupy(server, slow, clients):
    """Requests that keep all threads of the server computing."""
    requests = []
    while len(requests) < WORKERS:
        requests.append(clients.submit(server.post, "/translate", {"q": SENTENCE}))
        until(lambda: len(slow.seen) == len(requests))
    return requests


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "The body must be JSON. Received: EOF while parsing"),
        (b"[]", "The body must be a JSON object. Received: []."),
        (b"{}", "The field q is required. It is missing or empty."),
        (b'{"q": ["a", null]}', "q[1] must be a valid string. Received: null."),
        (b'{"q": {"a": 1}}', 'q must be a valid string. Received: {"a": 1}.'),
        (b'{"q": "a", "format": "pdf"}', "format must be 'text' or 'html'. Received: \"pdf\"."),
        (b'{"q": "a", "alternatives": "two"}', 'parse string as an integer. Received: "two".'),
        (b'{"q": "a", "alternatives": 16}', "alternatives must be less than 16. Received: 16."),
        (b'{"q": "a", "alternatives": "' + b"9" * 5000 + b'"}', 'exceeded maximum size. Received: "999'),
        (b'{"q": "a", "alternatives": 1e400}', "alternatives must be a finite number. Received: Infinity."),
        (b'{"q": "a", "beam_size": 0}', "beam_size must be greater than or equal to 1. Received: 0."),
        (b'{"q": "a", "alpha": NaN}', "alpha must be"),
        (b'{"q": "a", "alpha": 1e400}', "alpha must be less than or equal to 10. Received: Infinity."),
        (b'{"q": "\\ud800"}', "The body must be JSON. Received: unexpected end of hex"),
        (b'{"q": "\xff"}', "The body must be JSON. Received: "),
        (b"[" * 100_000, "recursion limit exceeded"),
        (b'{"q": "a", "target": "tree"}', "pairs served: en-de. Received: source missing, target tree."),
        (b'{"q": "a", "source": "auto", "target": "fr"}', "Received: source auto, target fr."),
    ],
)  # fmt: skip
def test_a_bad_body_has_status_400_and_says_what_is_wrong(server, body, message):
    response = server.send("/translate", body)
    assert response.status_code == 400
    assert message in response.json()["error"]


def test_a_body_of_too_many_bytes_is_refused(server):
    message = "The body of a request must have at most 1,048,576 bytes."
    body = b'{"q": "' + b"a" * 2_000_000
    # with and without a length
    for content in (body, (body[at : at + 65536] for at in range(0, len(body), 65536))):
        response = server.send("/translate", content)
        assert response.status_code == 413
        assert response.json()["error"].startswith(message)


def test_strange_text_is_translated(server):
    for text in (
        "\u0000", "a\u0000b", "\ufffe", "👩‍👩‍👧", "\u202e abc", "▁", "\u200b", "é" * 50, "%s{0}<script>"
    ):  # fmt: skip
        response = server.post("/translate", {"q": text})
        assert response.status_code == 200, text
        response = server.post("/attention", {"q": text})
        assert response.status_code == (400 if is_blank(text) else 200), text


def test_damaged_requests_never_have_status_500(server):
    """The long version is benchmarks/serving_load.py."""
    draw = random.Random(1)
    form, parts = "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"
    types = ["application/json", form, parts, "text/plain", "é"]
    with httpx.Client(base_url=server.url, timeout=60) as client:
        for path in PATHS:
            for body in MALFORMED:
                headers = {"Content-Type": draw.choice(types).encode()}
                response = client.post(path, content=body, headers=headers)
                case = path, body[:40], headers, response.text
                if path == "/detect" and response.status_code == 200:
                    continue  # it ignores other fields than q
                assert 400 <= response.status_code < 500, case
                assert set(response.json()) == {"error"}
                assert "Traceback" not in response.text
                assert ".py" not in response.text
    assert server.get("/health").json() == {"status": "ok"}


def test_a_request_that_takes_too_long_has_status_504(translator):
    error = b'{"error":"The request was not done after 0.3 seconds.'
    with slow_server(translator, timeout_s=0.3) as (server, _):
        for stream in (False, True):
            body = json.dumps({"q": SENTENCE, "stream": stream}).encode()
            lines = [
                b"POST /translate HTTP/1.1",
                b"Connection: close",
                b"Content-Type: application/json",
                b"Content-Length: %d" % len(body),
            ]
            # at once, since the body must arrive in this time too
            with Peer(server, b"\r\n".join([*lines, b"", body])) as peer:
                head, _, content = peer.rest().partition(b"\r\n\r\n")
            assert error in content
            assert head.startswith(b"HTTP/1.1 200 " if stream else b"HTTP/1.1 504 ")


def test_full_queue_has_status_503_and_retry_after(translator):
    with (
        slow_server(translator, max_queue=2) as (server, slow),
        ThreadPoolExecutor(4) as clients,
    ):
        requests = occupy(server, slow, clients)
        requests.append(
            clients.submit(server.post, "/translate", {"q": [SENTENCE] * 3})
        )
        requests.append(clients.submit(server.post, "/translate", {"q": SENTENCE}))
        until(lambda: server.service.batcher.queue_length() == 4)
        response = server.post("/translate", {"q": SENTENCE})
        assert (response.status_code, response.headers["retry-after"]) == (503, "1")
        slow.gate.set()
        assert {output.result().status_code for output in requests} == {200}


@contextlib.contextmanager
def connected(server, length):
    """A connection on which the head of a request to translate was sent, with the
    length of its body.
    """
    lines = ["POST /translate HTTP/1.1", "Host: localhost"]
    lines += ["Content-Type: application/json", f"Content-Length: {length}", "", ""]
    with Peer(server, "\r\n".join(lines).encode()) as peer:
        yield peer.socket


def test_client_that_leaves_within_its_body_is_no_failure(translator, caplog):
    with running([served(translator)]) as server:
        with connected(server, 100) as connection:
            connection.sendall(b"{")
            until(lambda: server.service.metrics.active == 1)
        until(lambda: server.service.metrics.active == 0)
        assert 'path="/translate",status="499"} 1.0' in server.get("/metrics").text
    assert caplog.text == ""


@pytest.mark.parametrize("stream", [False, True])
def test_request_of_a_client_that_left_is_not_computed(translator, stream):
    with slow_server(translator) as (server, slow), ThreadPoolExecutor(4) as clients:
        requests = occupy(server, slow, clients)
        body = json.dumps({"q": "bird likes fish", "stream": stream}).encode()
        with connected(server, len(body)) as connection:
            connection.sendall(body)
            until(lambda: server.service.batcher.queue_length() == 1)
        until(lambda: server.service.batcher.queue_length() == 0)
        slow.gate.set()
        assert {output.result().status_code for output in requests} == {200}
    assert slow.seen == [SENTENCE] * WORKERS


def test_accepted_requests_are_answered_after_sigterm(translator):
    """The long version, with a process and 64 clients, is
    benchmarks/serving_load.py.
    """
    with slow_server(translator) as (server, slow), ThreadPoolExecutor(8) as clients:
        requests = [
            clients.submit(server.post, "/translate", {"q": f"{SENTENCE} {i}"})
            for i in range(8)
        ]
        until(lambda: server.service.metrics.active == 8)
        server.server.handle_exit(signal.SIGTERM, None)
        response = server.get("/ready")
        assert (response.status_code, response.json()) == (503, {"status": "draining"})
        response = server.post("/translate", {"q": SENTENCE})
        assert (response.status_code, response.headers["retry-after"]) == (503, "5")
        assert response.json() == {
            "error": "The server is shutting down. Try again later."
        }
        slow.gate.set()
        assert [output.result().status_code for output in requests] == [200] * 8
        server.thread.join(WAIT_S)
        assert not server.thread.is_alive()


def test_a_server_that_loads_says_so():
    with running(None) as server:
        assert server.get("/ready").status_code == 503
        assert server.get("/health").status_code == 200
        response = server.get("/frontend/settings")
        assert response.json() == {
            "error": "The server is loading its models. Try again later."
        }


@pytest.mark.parametrize("path", ["/translate", "/frontend/settings"])
def test_unexpected_error_is_logged_and_counted(translator, monkeypatch, caplog, path):
    """Of a thread that computes, and of an endpoint."""

    def fail(*_, **__):
        raise RuntimeError("a secret of /home/someone")

    monkeypatch.setattr(app.schemas, "Settings", fail)
    method = "POST" if path == "/translate" else "GET"
    with running([served(Changed(translator, decode=fail))]) as server:
        json = {"q": SENTENCE}
        response = httpx.request(method, server.url + path, json=json, timeout=WAIT_S)
        assert response.status_code == 500
        assert response.json()["error"].endswith("this request; its log says why.")
        assert response.headers["x-content-type-options"] == "nosniff"
        labels = f'method="{method}",path="{path}",status="500"'
        assert f"t2tlite_requests_total{{{labels}}} 1.0" in server.get("/metrics").text
    assert "a secret" in caplog.text


def test_log_escapes_and_cuts_what_a_client_may_have_written(caplog):
    try:
        raise ValueError("\x1b[31msecret\nINFO: all is well" + "a" * 1000)
    except ValueError as error:
        failure(error)
    (record,) = caplog.records
    lines = record.getMessage().splitlines()
    assert lines[0] == "A request failed."
    assert lines[-1].startswith(r"ValueError: '\x1b[31msecret\nINFO: all is well")
    assert max(map(len, lines)) < 200
    assert __file__ in lines[1]
