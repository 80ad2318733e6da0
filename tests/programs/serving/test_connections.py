"""What a client's connection may send, keep and wait for; without a model."""

import asyncio
import contextlib
import signal
import sys
import threading
import time
from collections.abc import AsyncIterator

import httpx
import pytest
from raw_peers import FORM, HEALTH, HOST, LONG, Peer, get, server_of, until
from running import WAIT_S
from starlette.responses import StreamingResponse

from t2tlite.programs.serving import server as server_module

SOON_S = 20.0  # in which a server that does not wait answers, on a busy machine
CHUNKED = HOST + b"Transfer-Encoding: chunked\r\nContent-Type: %s\r\n\r\n"


@pytest.fixture(scope="module")
def quick():
    """A server whose limit of time is short. It is reached only by clients that then
    wait for the server, since any client can be slow.
    """
    with server_of(head_s=0.5) as server:
        yield server


@pytest.fixture(scope="module")
def patient():
    """A server that waits for its clients for longer than a test takes."""
    with server_of(head_s=WAIT_S) as server:
        yield server


def test_early_refusal_keeps_the_connection(patient):
    with Peer(patient, b"POST /nothing HTTP/1.1\r\n" + HOST) as peer:
        peer.send(b"Content-Length: 4000000\r\n\r\n")
        for _ in range(40):
            peer.send(b"x" * 100_000)
        assert peer.answer(b'"}').startswith(b"HTTP/1.1 404 Not Found\r\n")
        peer.send(HEALTH)
        assert peer.answer(b"}").startswith(b"HTTP/1.1 200 OK\r\n")


def test_early_refusal_reaches_a_client_that_keeps_no_connection(patient):
    """As Python's urllib."""
    head = b"POST /nothing HTTP/1.1\r\nConnection: close\r\n" + HOST
    with Peer(patient, head + b"Content-Length: 9000000\r\n\r\n") as peer:
        for _ in range(90):
            peer.send(b"x" * 100_000)
        answer = peer.rest()
    assert answer.startswith(b"HTTP/1.1 404 Not Found\r\n")
    assert not answer.endswith(b"reset")


@pytest.mark.parametrize(
    ("content", "status"),
    [
        (b"GET /health?" + b"x" * 70_000 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 431),
        (b"GET /health HTTP/1.1\r\nX: " + b"x" * 300_000, 431),
        (b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 101 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n", 431),
        (b"\r\n" * 100_000, 431),
        (b"\x16\x03\x01\x02" * 20, 400),
        (b"CONNECT example.org:80 HTTP/1.1\r\n" + HOST + b"\r\n", 400),
    ],
    ids="address header fields field lines TLS CONNECT".split(),
)
def test_too_much_in_a_head_is_refused_and_counted(patient, content, status):
    refused = f't2tlite_refused_connections_total{{status="{status}"}} '
    before = patient.get("/metrics").text.partition(refused)[2].partition("\n")[0]
    with Peer(patient) as peer:
        with contextlib.suppress(ConnectionError):
            peer.send(content)
        answer = peer.rest()
    assert answer.startswith(b"HTTP/1.1 %d " % status)
    assert answer.endswith(b'"}')
    assert b"connection: close\r\n" in answer
    after = f"{refused}{float(before or 0) + 1}\n"
    assert after in patient.get("/metrics").text


@pytest.mark.parametrize("content", [b"1\r\nx\r\n" * 50_000, b"3;" + b"x" * 300_000])
def test_body_that_is_mostly_something_else_ends_the_connection(patient, content):
    with Peer(patient, b"POST /detect HTTP/1.1\r\n" + CHUNKED % FORM) as peer:
        with contextlib.suppress(ConnectionError):
            peer.send(content)
        assert peer.rest() in (b"", b"reset")


def test_chunks_of_usual_sizes_are_read(patient):
    body = b"q=" + b"a" * 100_000
    for size in (16, 1000, 100_000):
        pieces = (body[i : i + size] for i in range(0, len(body), size))
        response = patient.send("/detect", pieces, FORM.decode())
        assert response.json()["error"].startswith("A request must have at most")


def test_trailer_fields_are_not_header_fields(quick):
    body = CHUNKED % FORM + b"3\r\nq=a\r\n0\r\nX: y\r\n\r\n"
    with Peer(quick, b"POST /detect HTTP/1.1\r\n" + body) as peer:
        assert peer.rest().startswith(b"HTTP/1.1 200 OK\r\n")


@pytest.mark.parametrize("content", [b"", HEALTH[:-2], b"\r\n", HEALTH + b"\r\n"])
def test_head_must_arrive_in_time(quick, content):
    started = time.monotonic()
    with Peer(quick, content) as peer:
        peer.rest()
    assert 0.5 <= time.monotonic() - started < SOON_S


@pytest.mark.parametrize(
    "beginning",
    [b"GET /health HTTP/1.1\r\nX: ", b"POST /nothing HTTP/1.1\r\n" + CHUNKED % FORM],
)
def test_client_that_sends_without_end_is_closed(quick, beginning):
    deadline = time.monotonic() + SOON_S
    with Peer(quick, beginning) as peer, contextlib.suppress(ConnectionError):
        while time.monotonic() < deadline:
            peer.send(b"1\r\nx\r\n")
            time.sleep(0.02)
    assert time.monotonic() < deadline


@pytest.mark.skipif(sys.platform != "linux", reason="a setting of Linux")
def test_stream_that_is_not_read_ends(monkeypatch):
    monkeypatch.setattr(server_module, "STALLED_MS", 500)
    with server_of() as server:
        ended = threading.Event()

        async def lines() -> AsyncIterator[bytes]:
            try:
                while True:
                    yield b"x" * 10_000
                    await asyncio.sleep(0)
            finally:
                ended.set()

        async def stream() -> StreamingResponse:
            return StreamingResponse(lines())

        server.server.config.app.add_api_route("/stream", stream)
        with Peer(server, get(b"/stream")):
            assert ended.wait(WAIT_S)
        until(lambda: server.service.metrics.active == 0)


def test_answers_must_be_read_to_their_end_in_time():
    with server_of(sending_s=1.0) as server, Peer(server, get(b"/long")) as peer:
        size = 0
        deadline = time.monotonic() + WAIT_S
        with contextlib.suppress(ConnectionResetError):
            while part := peer.socket.recv(1 << 14):
                assert time.monotonic() < deadline
                size += len(part)
                time.sleep(0.02)
    assert 0 < size < LONG


def test_unread_answers_are_bounded_together():
    with server_of(unsent_bytes=2 * LONG) as server, contextlib.ExitStack() as stack:
        state = server.server.server_state
        peers = []
        request = get(b"/long").replace(b"1.1", b"1.0")  # one answer a connection
        for _ in range(4):
            peers.append(stack.enter_context(Peer(server, request)))
        until(lambda: state.total_requests == 4)
        until(lambda: len(state.connections) == 2)
        lengths = [len(peer.rest()) for peer in peers]
        assert sum(length > LONG for length in lengths) == 2
        assert server.get("/long").content == b"x" * LONG


def test_the_longest_idle_connection_makes_room():
    with server_of(connections=4) as server, contextlib.ExitStack() as stack:
        client = stack.enter_context(httpx.Client(base_url=server.url))
        for _ in range(20):
            stack.enter_context(Peer(server))
            assert server.get("/health").status_code == 200
            # one that was answered before is not taken for one that idles
            assert client.get("/health").status_code == 200
        until(lambda: len(server.server.server_state.connections) <= 4)


def test_a_slow_body_makes_room_too():
    beginning = b"POST /detect HTTP/1.1\r\n" + HOST + b"Content-Length: 9\r\n\r\n"
    with server_of(connections=4) as server, contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(Peer(server, beginning))
        assert server.get("/health").status_code == 200


def test_connections_that_are_computed_do_not_make_room():
    with server_of(connections=4) as server, contextlib.ExitStack() as stack:
        for _ in range(4):
            stack.enter_context(Peer(server, get(b"/wait")))
        until(lambda: server.service.metrics.active == 4)
        response = server.get("/health")
        assert response.status_code == 503
        assert response.headers["retry-after"] == "5"
        assert "The server has too many connections." in response.text
        assert server.service.metrics.active == 4


def test_answer_is_sent_to_its_end_after_sigterm():
    with server_of() as server, Peer(server, get(b"/long")) as peer:
        until(lambda: server.server.server_state.unsent_bytes())
        server.server.handle_exit(signal.SIGTERM, None)
        time.sleep(1.5)  # a server without requests ends after a second
        assert server.thread.is_alive()
        assert len(peer.rest()) > LONG
        server.thread.join(WAIT_S)
        assert not server.thread.is_alive()


def test_request_that_offers_another_protocol_keeps_its_body(patient):
    """As Java's client sends them."""
    offer = (
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: A\r\n"
    )
    form = b"Content-Length: 3\r\nContent-Type: " + FORM + b"\r\n\r\n"
    with Peer(patient, b"POST /detect HTTP/1.1\r\n" + HOST + offer + form) as peer:
        time.sleep(0.1)
        peer.send(b"q=a")
        peer.answer(b"[]")
        peer.send(b"POST /detect HTTP/1.1\r\n" + HOST + offer + form + b"q=a" + HEALTH)
        assert peer.answer(b"}").count(b"HTTP/1.1 200 OK\r\n") == 2


def test_requests_that_do_not_wait_for_answers_are_bounded(patient):
    with Peer(patient, HEALTH * 4) as peer:
        answers = b""
        while answers.count(b"HTTP/1.1 200 OK\r\n") < 4:
            answers += peer.answer(b"}")
    with Peer(patient, HEALTH * 1000) as peer:
        assert peer.rest().count(b"HTTP/1.1 ") < 1000


def test_mistakes_of_clients_are_not_logged(quick, caplog, capfd):
    part = "--x\r\nContent-Transfer-Encoding: secret\r\nContent-Disposition: form-data;"
    for body in (f'{part} name="q"\r\n\r\na\r\n--x--\r\n', "secret"):
        quick.send("/detect", body.encode(), "multipart/form-data; boundary=x")
    for content in (b"secret\r\n\r\n", get(b"/secret\x1b[31m"), HEALTH[:30]):
        with Peer(quick, content) as peer:
            peer.rest()
    assert caplog.text == ""
    assert capfd.readouterr().err == ""
