"""Connections to a server without models, byte by byte."""

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Iterator
from typing import Self

from running import WAIT_S, Running, running
from starlette.responses import Response

from t2tlite.programs.serving.connections import ConnectionLimits

HOST = b"Host: localhost\r\n"
HEALTH = b"GET /health HTTP/1.1\r\n" + HOST + b"\r\n"
LONG = 8 << 20  # bytes of an answer, more than the system keeps for both sides
FORM = b"application/x-www-form-urlencoded"


@contextlib.contextmanager
def server_of(**limits: float) -> Iterator[Running]:
    """A server without models, but with a long answer and one that waits."""
    gate = threading.Event()

    async def long() -> Response:
        return Response(b"x" * LONG)

    async def wait() -> Response:
        await asyncio.to_thread(gate.wait, WAIT_S)
        return Response()

    with running([], ConnectionLimits(**limits)) as server:
        app = server.server.config.app
        app.add_api_route("/long", long)
        app.add_api_route("/wait", wait)
        try:
            yield server
        finally:
            gate.set()


class Peer:
    """A client's connection."""

    def __init__(self, server: Running, sent: bytes = b"") -> None:
        self.socket = socket.socket()
        self.socket.settimeout(WAIT_S)
        # else the system decides how much of an answer it keeps
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 16)
        self.socket.connect(("127.0.0.1", server.port))
        self.socket.sendall(sent)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, content: bytes) -> None:
        self.socket.sendall(content)

    def answer(self, end: bytes) -> bytes:
        """What the server sends, up to this end."""
        received = b""
        while not received.endswith(end):
            part = self.socket.recv(1 << 16)
            assert part, received
            received += part
        return received

    def rest(self) -> bytes:
        """What the server sends until it closes the connection; `reset` if it does so
        at once.
        """
        parts = []
        try:
            while part := self.socket.recv(1 << 16):
                parts.append(part)
        except ConnectionResetError:
            parts.append(b"reset")
        return b"".join(parts)


def until(condition):
    deadline = time.monotonic() + WAIT_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def get(path: bytes) -> bytes:
    return b"GET " + path + b" HTTP/1.1\r\n" + HOST + b"\r\n"
