"""Bounds on what clients' connections may cost: on what a connection sends, on how long
the server waits for it, on what it leaves unread, and on all connections together.
uvicorn's protocol with httptools reads and writes; this file closes what exceeds the
limits.

A connection is in one of three stages, by what the client has sent of its request:

    HEAD --head complete--> BODY --body complete--> COMPLETE --first byte--> HEAD
"""

from __future__ import annotations

import asyncio
import ctypes
import heapq
import http
import sys
import time
from typing import Any

import httptools
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import (
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from t2tlite.programs.serving.metrics import Metrics
from t2tlite.programs.serving.options import ConnectionLimits
from t2tlite.programs.serving.requests import RequestError, error_response

HEAD, BODY, COMPLETE = "head", "body", "complete"
READ_BYTES = 1 << 16  # of a connection at a time: the event loop parses them at once
# a search for free memory is worth while after this fall of bytes kept for clients
TRIMMED_BYTES = 1 << 25
EVICTED_AT_ONCE = 16  # so that a flood of connections does not sort them for each
NOT_HTTP = RequestError(
    400,
    "This is not a request of HTTP/1.1. Characters outside ASCII must be"
    " percent-encoded in an address.",
)
LONG_HEAD = RequestError(431, "The head of a request is too long. Send less in it.")
SMALL_CHUNKS = RequestError(
    400, "The chunks of a body are too small. Send larger ones, or Content-Length."
)
SLOW_HEAD = RequestError(408, "The head of the request did not arrive in time.")
TOO_MANY = RequestError(
    503, "The server has too many connections. Try again later.", retry_after="5"
)


class Connections(ServerState):
    """All connections of a server, their limits, and the metrics that count
    refusals.
    """

    def __init__(self, limits: ConnectionLimits, metrics: Metrics) -> None:
        super().__init__()
        self.limits = limits
        self.metrics = metrics
        self.open: set[BoundedProtocol] = set()
        # the most bytes kept for clients since memory was given back to the system
        self._peak_bytes = 0

    @property
    def sending(self) -> bool:
        """Whether a part of an answer waits for its client to read."""
        return any(connection.unsent_bytes() for connection in self.open)

    def make_room(self, new: BoundedProtocol) -> None:
        """Closes connections if `new` is one too many: those that have made the server
        wait for longest, or `new` if the server computes for all others.
        """
        if len(self.open) <= self.limits.connections:
            return
        waiting = []
        for connection in self.open:
            if connection is not new and connection.waits_for_client():
                waiting.append(connection)
        if not waiting:
            new.refuse(TOO_MANY)
        key = BoundedProtocol.closing_order
        for connection in heapq.nsmallest(EVICTED_AT_ONCE, waiting, key):
            connection.drop()

    def close_overdue(self) -> None:
        """Closes the connections whose clients are too slow. If the unread answers are
        too long together, closes those that were last read from the longest ago.
        """
        now = time.monotonic()
        for connection in list(self.open):
            connection.close_if_overdue(now)
        unread = [connection for connection in self.open if connection.unsent_bytes()]
        unread.sort(key=BoundedProtocol.last_progress)
        unsent = sum(connection.unsent_bytes() for connection in unread)
        for connection in unread:
            if unsent <= self.limits.unsent_bytes:
                break
            unsent -= connection.unsent_bytes()
            connection.drop()
        kept = unsent + sum(connection.body_bytes for connection in self.open)
        self._peak_bytes = max(self._peak_bytes, kept)
        if self._peak_bytes > kept + TRIMMED_BYTES:
            self._peak_bytes = kept
            loop = asyncio.get_running_loop()
            # a moment later, when the memory of the connections is free
            loop.call_later(1, loop.run_in_executor, None, give_back_memory)


class UntilClose(int):
    """The number of bytes, in uvicorn's sums, of an answer that ends with its
    connection.
    """

    def __lt__(self, sent: int) -> bool:
        return False

    def __sub__(self, sent: int) -> UntilClose:
        return self


class AnswerTransport(asyncio.Transport):
    """The transport that an answer is written to. Closing it lets the client read the
    answer.
    """

    def __init__(self, connection: BoundedProtocol) -> None:
        super().__init__()
        self._connection = connection

    def write(self, data: bytes | bytearray | memoryview) -> None:
        """Sends data."""
        self._connection.transport.write(data)

    def is_closing(self) -> bool:
        """Whether the connection ends."""
        return self._connection.transport.is_closing()

    def close(self) -> None:
        """Ends the connection when the answer is sent."""
        self._connection.finish()


class BoundedProtocol(HttpToolsProtocol):
    """uvicorn's protocol, within limits. A client that exceeds a limit gets an answer,
    if no other answer is under way, and the connection ends.
    """

    def __init__(
        self,
        config: Config,
        server_state: Connections,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._shared = server_state
        self._limits = server_state.limits
        self._stage = HEAD
        self._since = time.monotonic()  # of the stage, or of the last answer
        self._answers = 0  # that the client got
        self._unanswered: list[RequestResponseCycle] = []
        # of the request that is being read
        self._received = 0  # all bytes that were sent for it
        self._head_bytes = 0
        self.body_bytes = 0
        self._chunks = 0
        self._keep_alive = False  # whether the client wants it
        self._problem = NOT_HTTP
        # of answers that wait in the transport
        self._unsent = 0
        self._progress = self._sending_since = self._since
        # the end of the connection
        self._ends = False  # after the answers under way
        self._discards = False  # everything else that is received
        self._linger_until: float | None = None

    # what the transport calls

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Makes room for the connection, or refuses it."""
        super().connection_made(transport)
        if hasattr(transport, "max_size"):
            transport.max_size = READ_BYTES
        self._shared.open.add(self)
        self._shared.make_room(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """Tells unanswered requests that the client is gone."""
        self._shared.open.discard(self)
        for cycle in self._unanswered:
            _disconnect(cycle)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Reads what the client sends, up to the limits."""
        self._received += len(data)
        if self._discards:
            if self._received > self._limits.linger_bytes:
                self.drop()
            return
        self._unset_keepalive_if_required()
        try:
            self.parser.feed_data(data)
        except httptools.HttpParserUpgrade as upgrade:
            self._read_without_upgrade(data[upgrade.args[0] :])
        except httptools.HttpParserError:
            self.refuse(self._problem)
        # the parser calls nothing for white space and extensions of chunks
        if self._stage != BODY and self._received > self._limits.head_bytes:
            self.refuse(LONG_HEAD)
        elif self._received > 2 * (self._limits.head_bytes + self.body_bytes):
            self.refuse(SMALL_CHUNKS)

    def shutdown(self) -> None:
        """Ends the connection after the answers under way."""
        self._ends = True
        super().shutdown()

    def _read_without_upgrade(self, rest: bytes) -> None:
        """Reads a request that offers another protocol, such as HTTP/2, without the
        offer. The parser has stopped after its head.
        """
        lines = [self.parser.get_method() + b" " + self.url + b" HTTP/1.1"]
        for name, value in self.headers:
            if name not in (b"connection", b"upgrade"):
                lines.append(name + b": " + value)
        self.parser = httptools.HttpRequestParser(self)
        self.data_received(b"\r\n".join([*lines, b"", rest]))

    # what the parser calls; an exception ends the parsing

    def on_message_begin(self) -> None:
        """Begins a request."""
        if len(self.pipeline) >= self._limits.pipelined:
            raise ValueError("too many requests at once")
        self._enter(HEAD)
        self._head_bytes = self.body_bytes = self._chunks = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        """Counts the address, or a part of it."""
        self._count_head(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Counts a field of the header, or of the trailer, which is not used."""
        self._count_head(len(name) + len(value) + len(": \r\n"))
        if len(self.headers) >= self._limits.header_fields:
            self._problem = LONG_HEAD
            raise ValueError("too many header fields")
        if self._stage == HEAD:
            super().on_header(name, value)

    def on_headers_complete(self) -> None:
        """Lets the application answer. The connection is kept only if the request is
        complete when the answer begins.
        """
        if self.parser.should_upgrade():
            if self.parser.get_method() == b"CONNECT":
                raise ValueError("not a proxy")
            return
        super().on_headers_complete()
        self._enter(BODY)
        self.cycle.transport = AnswerTransport(self)
        self._keep_alive = self.cycle.keep_alive
        if self.parser.get_http_version() != "1.1":  # others have no chunks
            self.cycle.chunked_encoding = self._keep_alive = False
            self.cycle.expected_content_length = UntilClose()
        self.cycle.keep_alive = False
        self._unanswered.append(self.cycle)

    def on_chunk_header(self) -> None:
        """Counts a chunk of the body."""
        self._chunks += 1
        allowed = self.body_bytes // self._limits.chunk_bytes
        if self._chunks > self._limits.small_chunks + allowed:
            self._problem = SMALL_CHUNKS
            raise ValueError("too many chunks")

    def on_body(self, body: bytes) -> None:
        """Counts a part of the body."""
        self.body_bytes += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        """Ends a request."""
        if self.parser.should_upgrade():
            return
        self._enter(COMPLETE)
        self._received = 0
        if not self.cycle.response_started and not self._ends:
            self.cycle.keep_alive = self._keep_alive
        super().on_message_complete()

    # answers

    def on_response_complete(self) -> None:
        """Waits for the next request, unless the connection ends."""
        self._answers += 1
        self._since = time.monotonic()
        self._unanswered = [
            cycle for cycle in self._unanswered if not cycle.response_complete
        ]
        # else uvicorn would begin with the next request
        if self._linger_until is None:
            super().on_response_complete()

    def refuse(self, problem: RequestError) -> None:
        """Answers that what is being read is refused, and ends the connection."""
        if self._discards or self.transport.is_closing():
            return
        if self._stage == BODY and (self.pipeline or self.cycle.response_started):
            self.drop()
            return
        if self._stage != BODY and self._is_answering():
            self._ends = self._discards = True
            self.cycle.keep_alive = False
            return
        for cycle in self._unanswered:
            _disconnect(cycle)
        self._shared.metrics.observe_refusal(problem.status)
        self.transport.write(_as_bytes(problem))
        self._linger()

    def finish(self) -> None:
        """Ends the connection when the client has read what was written."""
        if self._stage == COMPLETE and not self._discards:
            self.transport.close()
        else:
            self._linger()

    def drop(self) -> None:
        """Ends the connection at once."""
        self._shared.open.discard(self)
        self.transport.abort()

    # what the server asks

    def unsent_bytes(self) -> int:
        """The number of bytes of answers that the system has not accepted yet."""
        return self.transport.get_write_buffer_size()

    def waits_for_client(self) -> bool:
        """Whether the client must send or read something next."""
        return (
            self._stage == BODY or not self._is_answering() or self.unsent_bytes() > 0
        )

    def last_progress(self) -> float:
        """When the client last began a request, or read something of its answer."""
        self._observe_sending(time.monotonic())
        return self._progress if self._unsent else self._since

    def closing_order(self) -> tuple[bool, float]:
        """A key that sorts connections to close: first those that were never answered,
        then those that have made the server wait for longest.
        """
        return self._answers > 0, self.last_progress()

    def close_if_overdue(self, now: float) -> None:
        """Ends the connection if its client is too slow."""
        self._observe_sending(now)
        if self._unsent:
            if (
                now > self._progress + self._limits.stalled_s
                or now > self._sending_since + self._limits.sending_s
            ):
                self.drop()
        elif self._linger_until is not None:
            if now > self._linger_until:
                self.drop()
        elif self._stage != BODY and not self._is_answering():
            if now <= self._since + self._limits.head_s:
                return
            if self._received:
                self.refuse(SLOW_HEAD)
            else:  # a connection between requests
                self.transport.close()

    def _observe_sending(self, now: float) -> None:
        unsent = self.unsent_bytes()
        if not self._unsent:
            self._sending_since = now
        if unsent != self._unsent:
            self._progress = now
        self._unsent = unsent

    def _is_answering(self) -> bool:
        return any(not cycle.disconnected for cycle in self._unanswered)

    def _enter(self, stage: str) -> None:
        self._stage = stage
        self._since = time.monotonic()

    def _count_head(self, size: int) -> None:
        self._head_bytes += size
        if self._head_bytes > self._limits.head_bytes:
            self._problem = LONG_HEAD
            raise ValueError("too long a head")

    def _linger(self) -> None:
        """Ends the server's side of the connection, and discards what the client still
        sends: closing the socket before that could destroy the answer.
        """
        self._discards = True
        self._received = 0
        self._linger_until = time.monotonic() + self._limits.linger_s
        self.flow.resume_reading()
        self.transport.write_eof()


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Tells a request that its client does not wait for the answer."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()


def _as_bytes(problem: RequestError) -> bytes:
    """A whole response, after which the connection ends."""
    response = error_response(problem)
    phrase = http.HTTPStatus(problem.status).phrase
    lines = [f"HTTP/1.1 {problem.status} {phrase}".encode()]
    for name, value in response.raw_headers:
        lines.append(name + b": " + value)
    lines += [b"connection: close", b"", bytes(response.body)]
    return b"\r\n".join(lines)


def give_back_memory() -> None:
    """Gives free memory back to the system. glibc keeps the memory of long messages,
    since it lies between blocks in use.
    """
    if sys.platform != "linux":
        return
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:  # other C libraries do without
        trim(0)
