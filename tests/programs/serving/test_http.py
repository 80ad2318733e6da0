"""What HTTP asks of a server: methods, versions, and the length of bodies; without a
model.
"""

import contextlib
import json
import threading

import httpx
import pytest
from raw_peers import FORM, HEALTH, HOST, LONG, Peer, get, server_of
from running import WAIT_S, running, served

from t2tlite.programs.serving import options, requests

PAGES = ("/", "/docs", "/openapi.json")
DETECT = b"POST /detect HTTP/1.1\r\n" + HOST + b"Content-Type: " + FORM + b"\r\n"


@pytest.fixture(scope="module")
def server():
    with server_of() as server:
        yield server


def test_head_is_answered_as_get_without_a_body():
    with running([]) as server:
        methods_of = server.get("/openapi.json").json()["paths"]
        paths = [path for path, methods in methods_of.items() if "get" in methods]
        assert "/health" in paths
        for path in (*PAGES, *paths, "/nothing"):
            got = server.get(path)
            head = httpx.head(server.url + path)
            assert head.status_code == got.status_code, path
            assert head.content == b""
            assert head.headers["content-type"] == got.headers["content-type"]
            if path != "/metrics":  # which counts these requests
                assert head.headers["content-length"] == str(len(got.content))


def test_connection_goes_on_after_head(server):
    with Peer(server, HEALTH.replace(b"GET", b"HEAD") + HEALTH) as peer:
        first, second = peer.answer(b"}").split(b"HTTP/1.1 200 OK\r\n")[1:]
    assert first.endswith(b"\r\n\r\n")
    assert second.endswith(b'{"status":"ok"}')


@pytest.mark.parametrize(
    ("method", "path", "allowed"),
    [
        ("HEAD", "/translate", "POST"),
        ("GET", "/translate", "POST"),
        # browsers send no Origin with a GET, such as that of an image
        ("GET", "/attention.html", "POST"),
        ("POST", "/health", "GET"),
        ("DELETE", "/languages", "GET"),
    ],
)
def test_other_methods_are_told_what_a_path_takes(server, method, path, allowed):
    response = httpx.request(method, server.url + path)
    assert response.status_code == 405
    assert response.headers["allow"] == allowed
    if method != "HEAD":
        message = "Method Not Allowed. The page /docs lists what there is."
        assert response.json() == {"error": message}


def test_http_1_0_has_other_answers_whole(server):
    with Peer(server, get(b"/long").replace(b"1.1", b"1.0")) as peer:
        head, _, content = peer.rest().partition(b"\r\n\r\n")
    assert content == b"x" * LONG
    assert b"content-length: %d\r\n" % LONG in head


def test_bodies_that_do_not_end_are_bounded_together(monkeypatch):
    """The ones that began first are given up."""
    size = 50_000
    monkeypatch.setattr(options, "MAX_BODIES_BYTES", 3 * size + 1000)
    head = DETECT + b"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n" % (2 * size)
    with server_of() as server, contextlib.ExitStack() as stack:
        peers: list[Peer] = []
        for _ in range(5):
            peers.append(stack.enter_context(Peer(server, head)))
            peers[-1].answer(b"Continue\r\n\r\n")
        for peer in peers:
            peer.send(b"q=a&x=".ljust(size, b"x"))
        for peer in peers[:2]:
            answer = peer.answer(b'"}')
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b"must arrive within 60 s, sooner under load." in answer
        assert server.send("/detect", b"q=a", FORM.decode()).status_code == 200
        # the last one, which is whole now, is too much for those before it
        peers[-1].send(b"x" * size)
        assert peers[-1].answer(b"[]").startswith(b"HTTP/1.1 200 ")
        assert peers[2].answer(b'"}').startswith(b"HTTP/1.1 408 ")


def test_whole_bodies_that_wait_to_be_parsed_are_bounded_too(monkeypatch):
    gate = threading.Event()
    parsing = threading.Event()

    def parsed_later(body, request, kind):
        parsing.set()
        assert gate.wait(WAIT_S)
        return kind(q="a")

    monkeypatch.setattr(options, "MAX_BODIES_BYTES", 100_000)
    monkeypatch.setattr(requests, "body_of", parsed_later)
    body = b"q=a&x=".ljust(60_000, b"x")
    request = DETECT + b"Content-Length: %d\r\n\r\n" % len(body) + body
    with server_of() as server, contextlib.ExitStack() as stack:
        stack.callback(gate.set)
        first = stack.enter_context(Peer(server, request))
        assert parsing.wait(WAIT_S)
        with Peer(server, request) as peer:
            assert peer.answer(b'"}').startswith(b"HTTP/1.1 408 ")
        gate.set()
        assert first.answer(b"[]").startswith(b"HTTP/1.1 200 ")


def test_no_answer_is_longer_than_the_limit(translator, monkeypatch):
    monkeypatch.setattr(options, "MAX_ANSWER_BYTES", 20)
    text = "red cat. " * 20
    with running([served(translator)]) as server:
        response = server.post("/translate", {"q": text})
        assert response.status_code == 413
        error = response.json()["error"]
        assert "An answer must have at most" in error
        lines = server.post("/translate", {"q": text, "stream": True}).text
        assert "must have at most 20 bytes" in lines.splitlines()[-1]
        assert server.get("/health").status_code == 200


def test_access_log_has_neither_texts_nor_keys(capfd):
    with running([], access_log=True, api_key="sesame") as server:
        body = {"q": "secret", "api_key": "sesame", "glossary": {"secret": "a"}}
        server.post("/translate?q=secret", body)
        server.get("/translate/?q=secret")  # no redirect
        httpx.head(server.url + "/health")
    printed = capfd.readouterr().err
    assert "secret" not in printed
    assert "sesame" not in printed
    records = [json.loads(line) for line in printed.splitlines()]
    keys = {"time", "method", "path", "status", "milliseconds"}
    assert all(set(record) == keys for record in records)
    assert [(each["method"], each["path"], each["status"]) for each in records] == [
        ("POST", "/translate", 400),
        ("GET", "other", 404),
        ("HEAD", "/health", 200),
    ]
