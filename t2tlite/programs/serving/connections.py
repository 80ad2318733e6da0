"""Bounds on what connections may cost: uvicorn's protocol reads and writes, and this
closes the connections whose clients send too much, or let the server wait too long.
"""

import asyncio
import contextlib
import dataclasses
import heapq
import re
import time

from starlette.exceptions import HTTPException
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol
from uvicorn.server import ServerState

from t2tlite.programs.serving.requests import error_response
from t2tlite.programs.serving.service import ServerMetrics

# bytes of a request beyond twice its body
HEAD_BYTES = 1 << 16
HEADER_FIELDS = 100
PIPELINED = 16  # requests that are sent before the first one is answered
# Java's clients offer HTTP/2; with the offer, the parser would end before the body
OFFER = re.compile(rb"\r\nUpgrade: h2c(?=\r\n)")
NOT_HTTP = HTTPException(400, "This is not HTTP/1.1, with an address in ASCII.")
LONG_HEAD = HTTPException(431, "The head of a request is too long.")
TOO_MANY = HTTPException(
    503,
    "The server has too many connections. Try again later.",
    {"Retry-After": "5"},
)


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """What all connections may cost, and how long the server waits for a client."""

    connections: int = 1000
    unsent_bytes: int = 1 << 28  # of answers that are not read
    head_s: float = 10.0  # to send a head, from the connection or the last answer
    sending_s: float = 300.0  # to read an answer


class Connections(ServerState):
    """All connections of a server, and their limits."""

    connections: "set[BoundedProtocol]"  # type: ignore[assignment]

    def __init__(self, limits: ConnectionLimits, metrics: ServerMetrics) -> None:
        super().__init__()
        self.limits = limits
        self.metrics = metrics

    def unsent_bytes(self) -> int:
        """The bytes of answers that wait for their clients to read."""
        return sum(connection.unsent_bytes() for connection in self.connections)

    def make_room(self, new: "BoundedProtocol") -> None:
        """Closes connections if `new` is one too many: those that have made the server
        wait for longest, or `new` if the server computes for all others.
        """
        if len(self.connections) <= self.limits.connections:
            return
        waiting = []
        for connection in self.connections:
            if connection is not new and connection.waits_for_client():
                waiting.append(connection)
        if not waiting:
            new.refuse(TOO_MANY)
        # several, so that a flood of connections does not sort them for each
        count = 1 + self.limits.connections // 64
        for connection in heapq.nsmallest(count, waiting, BoundedProtocol.order):
            connection.drop()

    def close_overdue(self) -> None:
        """Closes the connections whose clients are too slow, and, while too many bytes
        of answers are unread, those that have waited for longest.
        """
        now = time.monotonic()
        unread = []
        for connection in list(self.connections):
            if not connection.waits_for_client():
                connection.since = now
            elif connection.since < now - connection.patience_s():
                connection.drop()
            elif connection.unsent_bytes():
                unread.append(connection)
        unread.sort(key=BoundedProtocol.order)
        excess = self.unsent_bytes() - self.limits.unsent_bytes
        for connection in unread:
            if excess <= 0:
                return
            excess -= connection.unsent_bytes()
            connection.drop()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, within limits."""

    server_state: Connections
    task: asyncio.Task[None] | None = None  # that answers a request

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room for the connection, or refuses it."""
        super().connection_made(transport)
        self.since = time.monotonic()  # that the server waits for the client
        self._excess = 0  # bytes since the last answer, less twice those of bodies
        self._discards = False
        self.url = b""
        self.headers = []
        self.server_state.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Ends what is done for the client."""
        super().connection_lost(exc)
        if self.task is not None:
            self.task.cancel()

    def data_received(self, data: bytes) -> None:
        """Reads what the client sends, up to the limits."""
        if self._discards:
            return
        if not self._is_answering():
            data = OFFER.sub(b"", data, count=1)
        self._excess += len(data)
        super().data_received(data)
        if (
            self._excess > HEAD_BYTES
            or self._has_long_head()
            or len(self.pipeline) > PIPELINED
        ):
            self.refuse(LONG_HEAD)

    def on_message_begin(self) -> None:
        """Begins a request."""
        self.since = time.monotonic()
        self._excess = max(0, self._excess)
        super().on_message_begin()
        self.scope["state"]["connection"] = self

    def on_headers_complete(self) -> None:
        """Lets the application answer; an exception ends the parsing."""
        if self._has_long_head():
            raise ValueError("too long a head")
        super().on_headers_complete()
        self.cycle.transport = self  # type: ignore[assignment]

    def on_body(self, body: bytes) -> None:
        """Counts a part of the body."""
        self._excess -= 2 * len(body)
        super().on_body(body)

    def on_response_complete(self) -> None:
        """Begins to wait for the next request."""
        self.since = time.monotonic()
        self._excess = 0
        super().on_response_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuses what cannot be parsed."""
        self.refuse(LONG_HEAD if self._has_long_head() else NOT_HTTP)

    def refuse(self, problem: HTTPException) -> None:
        """Answers with an error, unless another answer is under way, and ends the
        connection.
        """
        if self._discards or self.transport.is_closing():
            return
        self.server_state.metrics.refusals.labels(problem.status_code).inc()
        if self._is_answering():
            self.drop()
        else:
            self.transport.write(_as_bytes(problem))
            self._linger()

    def _linger(self) -> None:
        """Discards what the client still sends, until it closes the connection or its
        time is over: closing the socket before that could destroy the answer.
        """
        self._discards = True
        with contextlib.suppress(OSError):  # the client is gone
            self.transport.write_eof()

    # the transport of an answer

    def write(self, data: bytes) -> None:
        """Sends data, unless the connection has ended, which asyncio would log."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self.transport.is_closing()

    def close(self) -> None:
        """Ends the connection behind an answer."""
        if self.cycle.more_body:
            self._linger()
        else:
            self.transport.close()

    # what the server asks

    def drop(self) -> None:
        """Ends the connection at once."""
        self.connections.discard(self)
        self.transport.abort()

    def unsent_bytes(self) -> int:
        """The bytes of answers that the system has not accepted yet."""
        return self.transport.get_write_buffer_size()

    def waits_for_client(self) -> bool:
        """Whether the client must send or read something next."""
        is_complete = self._is_answering() and not self.cycle.more_body
        return not is_complete or self.unsent_bytes() > 0

    def patience_s(self) -> float:
        """How long the server waits for this client."""
        if self.unsent_bytes() or self._is_answering():
            return self.server_state.limits.sending_s
        return self.server_state.limits.head_s

    def order(self) -> tuple[bool, float]:
        """A key that sorts connections to close: first those without a request, then
        those that have made the server wait for longest.
        """
        return self.cycle is not None, self.since

    def _has_long_head(self) -> bool:
        size = len(self.url)
        for name, value in self.headers:
            size += len(name) + len(value)
        return size > HEAD_BYTES or len(self.headers) > HEADER_FIELDS

    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete


def _as_bytes(problem: HTTPException) -> bytes:
    """A whole response, after which the connection ends."""
    response = error_response(problem)
    parts = [STATUS_LINE[problem.status_code]]
    for name, value in response.raw_headers:
        parts += [name, b": ", value, b"\r\n"]
    parts += [b"connection: close\r\n\r\n", bytes(response.body)]
    return b"".join(parts)
