"""A client that wants to stop t2t-serve: every way that is known to make a server work,
wait or remember.
"""

import contextlib
import itertools
import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import httpx

TIMEOUT_S = 180  # far above that of the server
JSON, FORM, PARTS = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data; boundary=x",
)
MANY = 1100  # connections at a time
SENDERS = 3  # connections that send complete requests at the same time
WORDS = "cat " * 500  # about as many tokens as a sentence may have


class Request(NamedTuple):
    """A request that is complete, and ends within the server's limits or is refused."""

    path: str
    body: bytes
    content_type: str = JSON


def _json(path: str, **body: object) -> Request:
    return Request(path, json.dumps(body).encode())


def _form(body: bytes, content_type: str = PARTS) -> Request:
    return Request("/translate", body, content_type)


def _expensive_reading() -> Iterator[Request]:
    """Bodies that took long to parse, to check, or to split."""
    part = b'--x\r\nContent-Disposition: form-data; name="q"%s\r\n\r\na\r\n'
    parameters = b"".join(b'; a%d="b"' % i for i in range(60_000))
    nested = b"".join(
        b"--x\r\nContent-Type: multipart/mixed; boundary=x%d\r\n\r\n--x%d\r\n" % (i, i)
        for i in range(12_000)
    )
    yield _form(part % parameters + b"--x--\r\n")
    yield _form(part % b"" * 16_000 + b"--x--\r\n")
    yield _form(nested + b"--x--\r\n")
    yield _form(b"q=%41&" * 150_000, FORM)
    yield _form(b"q=" + b"%2e" * 300_000 + b"&source=en&target=de", FORM)
    for piece in (".", " ", "A. ", "1. ", "a\n", "。", '."'):
        yield _json("/translate", q=(piece * 20_000)[:20_000])
    for piece in ("<a '", "<!--", "<script>", "<a>", "&amp", "<p>a"):
        yield _json(
            "/translate",
            q=(piece * 20_000)[:20_000],
            source="auto",
            target="de",
            format="html",
        )
    for piece in ("<b></b>", "<b>Ab! ", "<b>\x01 ", "<b>a</b> "):
        # as many tags as are put around words
        for characters, alternatives in ((19_000, 0), (8_000, 7)):
            options = {
                "source": "en",
                "target": "de",
                "format": "html",
                "alternatives": alternatives,
            }
            yield _json("/translate", q=(piece * 20_000)[:characters] + "a", **options)
    yield _json("/translate", q=[1] * 300_000)
    yield _json("/translate", q="a", **{f"a{i}": 1 for i in range(60_000)})
    yield Request("/translate", b"[" * 1_000_000)
    yield Request("/translate", b'{"q": ' + b"1" * 1_000_000 + b"}")
    yield _json("/detect", q=["ab 猫"] * 4_000)


def _expensive_computing() -> Iterator[Request]:
    """Bodies that make searches long or wide, or fill the queue."""
    yield _json("/translate", q=[""] * 200_000)
    yield _json("/translate", q=[WORDS] * 4)
    yield _json("/translate", q=[""] * 1_000, source="en", target="de", alternatives=15)
    yield _json("/translate", q="red\n" * 4_000)
    yield _json("/translate", q="a\n" * 10_000, alternatives=15, segments=True)
    yield _json("/translate", q="a\n" * 1_250, alternatives=15, segments=True)
    yield _json(
        "/translate", q="a\n" * 1_250, alternatives=15, segments=True, alignments=True
    )
    yield _json(
        "/translate", q="cat " * 120, alternatives=15, segments=True, alignments=True
    )
    yield _json("/translate", q=["dog " * 30] * 150, beam_size=16)
    for beam_size, words in ((16, 1_000), (16, 120), (16, 30), (8, 60), (4, 120)):
        yield _json(
            "/translate",
            q="cat " * words,
            beam_size=beam_size,
            alpha=random.Random(words).random(),
        )
    yield _json("/attention", q="cat " * 120)
    yield _json("/attention", q="cat " * 120, translation="hund " * 90)


def hostile_requests() -> list[Request]:
    """All of these, of both kinds in turn."""
    both = itertools.zip_longest(_expensive_reading(), _expensive_computing())
    return [request for pair in both for request in pair if request is not None]


def send(client: httpx.Client, request: Request) -> None:
    """Sends a request; a server that fails at it raises an AssertionError."""
    response = client.post(
        request.path,
        content=request.body,
        headers={"Content-Type": request.content_type},
    )
    assert response.status_code < 500 or response.status_code in (503, 504), (
        request.body[:80],
        response.text,
    )


# of the server at a port, until the event is set
Attack = Callable[[int, threading.Event], None]


def send_requests(requests: list[Request]) -> Attack:
    """The requests one after the other, again and again."""

    def attack(port: int, end: threading.Event) -> None:
        with httpx.Client(
            base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S
        ) as client:
            for request in itertools.cycle(requests):
                if end.is_set():
                    return
                send(client, request)

    return attack


def ask_for_pages(port: int, end: threading.Event) -> None:
    """Pages with as many weights as a sentence may have, and long addresses."""
    pages = [_json("/attention.html", q=WORDS[:480], translation=WORDS[:480])] * 30
    with (
        ThreadPoolExecutor(len(pages)) as threads,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=TIMEOUT_S) as client,
    ):
        while not end.wait(0.2):
            list(threads.map(lambda page: send(client, page), pages))
            for path in ("/translate?" + "q=a&" * 12_000, "/docs"):
                assert client.get(path).status_code < 500 or end.is_set()


def head(path: str, length: int, content_type: str = JSON) -> bytes:
    """The head of a request."""
    lines = (
        f"POST {path} HTTP/1.1",
        "Host: localhost",
        f"Content-Type: {content_type}",
        f"Content-Length: {length}",
    )
    return "\r\n".join([*lines, "", ""]).encode()


class Connections:
    """Connections to a port, which the server may close at any time."""

    def __init__(self, port: int, ends: contextlib.ExitStack) -> None:
        self._port, self._ends = port, ends
        self.open: list[socket.socket] = []

    def add(self, content: bytes) -> None:
        """One more, on which this is sent."""
        with contextlib.suppress(ConnectionError):
            connection = socket.create_connection(("127.0.0.1", self._port), TIMEOUT_S)
            self.open.append(self._ends.enter_context(connection))
            connection.sendall(content)

    def send(self, content: bytes) -> None:
        """Sends this on each."""
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.send(content, socket.MSG_DONTWAIT)

    def read(self, size: int) -> None:
        """Reads so many bytes of each answer, if they are there."""
        for connection in self.open:
            with contextlib.suppress(OSError):
                connection.recv(size, socket.MSG_DONTWAIT)


def keep_connections_open(port: int, end: threading.Event) -> None:
    """A hundred connections that send nothing, half a head, or a body byte by byte."""
    with contextlib.ExitStack() as ends:
        silent, slow = Connections(port, ends), Connections(port, ends)
        for _ in range(25):
            silent.add(b"")
            silent.add(head("/translate", 1 << 20))
            slow.add(b"POST /translate HTTP/1.1\r\nHost: loc")
            slow.add(head("/detect", 9000))
        while not end.wait(0.5):
            slow.send(b" ")


def leave_bodies_unfinished(port: int, end: threading.Event) -> None:
    """Bodies as long as they may be, without their last bytes."""
    content = head("/translate", 1 << 20) + b"x" * ((1 << 20) - 100)
    while not end.is_set():
        with contextlib.ExitStack() as ends:
            connections = Connections(port, ends)
            for _ in range(150):
                if end.is_set():
                    return
                connections.add(content)
            end.wait(5)


def open_many_connections(port: int, end: threading.Event) -> None:
    """More connections than the server may open files, again and again."""
    while not end.is_set():
        with contextlib.ExitStack() as ends:
            connections = Connections(port, ends)
            for _ in range(MANY):
                if end.is_set():
                    return
                connections.add(b"")
            end.wait(5)


def send_tiny_chunks(port: int, end: threading.Event) -> None:
    """Bodies in chunks of a byte, to a path that does not exist and to one that
    does.
    """
    chunks = b"1\r\nx\r\n" * 20_000
    beginnings = []
    for path in ("/nothing", "/detect"):
        length = b"Content-Length: 0"
        beginning = head(path, 0, FORM).replace(length, b"Transfer-Encoding: chunked")
        beginnings.append(beginning)
    for beginning in itertools.cycle(beginnings):
        if end.is_set():
            return
        with (
            contextlib.suppress(ConnectionError),
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection,
        ):
            connection.sendall(beginning)
            while not end.is_set():
                connection.sendall(chunks)


def leave_answers_unread(port: int, end: threading.Event) -> None:
    """Streams and long answers that are asked for and not read; the connections are
    closed after some seconds.
    """
    streamed = json.dumps(
        {"q": "a\n" * 1_250, "stream": True, "alternatives": 15, "segments": True}
    ).encode()
    whole = json.dumps(
        {"q": "red. \n" * 500, "alternatives": 15, "segments": True}
    ).encode()
    while not end.is_set():
        with contextlib.ExitStack() as ends:
            connections = Connections(port, ends)
            for body in (streamed, whole, streamed):
                connections.add(head("/translate", len(body)) + body)
            end.wait(3)


def read_answers_slowly(port: int, end: threading.Event) -> None:
    """A hundred long answers, of which one byte is read at a time, or nothing."""
    body = json.dumps({"q": "cat " * 120, "translation": "hund " * 90}).encode()
    with contextlib.ExitStack() as ends:
        unread, slow = Connections(port, ends), Connections(port, ends)
        while not end.wait(0.5):
            slow.read(1)
            for connections in (unread, slow):
                if len(connections.open) < 50:
                    connections.add(head("/attention", len(body)) + body)


def break_off(port: int, end: threading.Event) -> None:
    """Requests whose client leaves at once, half-way through a body, or sends what is
    not HTTP; and many in a row.
    """
    body = json.dumps({"q": "red cat sees dog\n" * 500, "beam_size": 16}).encode()
    whole = head("/translate", len(body)) + body
    pipelined = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n" * 500
    long_head = b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 500_000
    for content in itertools.cycle(
        [whole, whole[: len(whole) // 2], b"\x16\x03\x01" * 400, pipelined, long_head]
    ):
        if end.wait(0.1):
            return
        with (
            contextlib.suppress(ConnectionError),  # the server may have closed it
            socket.create_connection(("127.0.0.1", port), TIMEOUT_S) as connection,
        ):
            connection.sendall(content)


def _rotations(requests: list[Request]) -> list[list[Request]]:
    """What each of the connections that send requests begins with: all requests, in
    another order.
    """
    starts = [len(requests) * number // SENDERS for number in range(SENDERS)]
    return [requests[start:] + requests[:start] for start in starts]


def first_requests() -> list[list[Request]]:
    """Every request for which the server builds a search or gets memory that it keeps,
    once, shared between the connections.
    """
    requests = list(_expensive_computing())
    return [requests[number::SENDERS] for number in range(SENDERS)]


def attacks() -> list[Attack]:
    """What a hostile client does at the same time: some connections send requests, the
    others misbehave.
    """
    senders = [send_requests(requests) for requests in _rotations(hostile_requests())]
    return [
        *senders,
        ask_for_pages,
        keep_connections_open,
        leave_bodies_unfinished,
        open_many_connections,
        send_tiny_chunks,
        leave_answers_unread,
        read_answers_slowly,
        break_off,
    ]
