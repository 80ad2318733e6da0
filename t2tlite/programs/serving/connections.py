"""All connections of the server: how much they may cost together, and which are closed
when that is too much.
"""

from __future__ import annotations

import asyncio
import ctypes
import dataclasses
import heapq
import time
from typing import Protocol

from uvicorn.server import ServerState

from t2tlite.programs.serving.errors import RequestError

# fewer bytes that clients no longer leave unread are not worth a search for free memory
TRIMMED_BYTES = 1 << 25
EVICTED_AT_ONCE = 16  # so that a flood of connections does not sort them for each
TOO_MANY = RequestError(
    503, "The server has too many connections. Try again later.", retry_after_s=5
)


@dataclasses.dataclass(frozen=True)
class ConnectionLimits:
    """What a connection may send, and how long the server waits for its client."""

    connections: int = 1000  # of all clients
    head_bytes: int = 1 << 16  # of the request line, the header and the trailer fields
    header_fields: int = 100
    pipelined: int = 16  # requests that are sent before the first one is answered
    # A body in chunks may have so many chunks, and one more for each so many bytes.
    small_chunks: int = 1000
    chunk_bytes: int = 16
    head_s: float = 10.0  # for a head, from the connection or the last answer
    linger_s: float = 2.0  # to read an answer that was sent before the request ended
    linger_bytes: int = 1 << 24  # that are discarded meanwhile
    # A client that reads nothing of its answer for `stalled_s`, or that has not read
    # all of it after `sending_s`, is dropped.
    stalled_s: float = 20.0
    sending_s: float = 300.0
    unsent_bytes: int = 1 << 28  # of the answers of all clients


class Connection(Protocol):
    """One of the connections, which keeps within its own limits."""

    answers: int  # that it got

    def unsent_bytes(self) -> int:
        """The bytes of answers that the client has not made room for."""

    def waits_for_client(self) -> bool:
        """Whether the client must send or read something next."""

    def last_progress(self) -> float:
        """When the client last began a request, or read something of its answer."""

    def close_if_overdue(self, now: float) -> None:
        """Ends the connection if its client is too slow."""

    def refuse(self, problem: RequestError) -> None:
        """Answers with a problem, and ends the connection."""

    def drop(self) -> None:
        """Ends the connection at once."""


class Connections(ServerState):
    """All connections of a server, and their limits."""

    def __init__(self, limits: ConnectionLimits) -> None:
        super().__init__()
        self.limits = limits
        self.open: set[Connection] = set()
        # the greatest number of unsent bytes since memory was given back to the system
        self._peak_bytes = 0

    @property
    def sending(self) -> bool:
        """Whether a client has not yet made room for all of its answer."""
        return any(connection.unsent_bytes() for connection in self.open)

    def make_room(self, new: Connection) -> None:
        """Closes connections if `new` is one too many: those that have made the server
        wait for longest, or `new` itself if the server computes for all others.
        """
        if len(self.open) <= self.limits.connections:
            return
        waiting = []
        for connection in self.open:
            if connection is not new and connection.waits_for_client():
                waiting.append(connection)
        if not waiting:
            new.refuse(TOO_MANY)
        for connection in heapq.nsmallest(EVICTED_AT_ONCE, waiting, _patience):
            connection.drop()

    def close_overdue(self) -> None:
        """Closes the connections whose clients are too slow. If the answers that are
        not read are too long together, closes those that nobody has read from for
        longest.
        """
        now = time.monotonic()
        for connection in list(self.open):
            connection.close_if_overdue(now)
        unread = [connection for connection in self.open if connection.unsent_bytes()]
        unread.sort(key=_last_progress)
        unsent = sum(connection.unsent_bytes() for connection in unread)
        self._peak_bytes = max(self._peak_bytes, unsent)
        for connection in unread:
            if unsent <= self.limits.unsent_bytes:
                break
            unsent -= connection.unsent_bytes()
            connection.drop()
        if self._peak_bytes > unsent + TRIMMED_BYTES:
            self._peak_bytes = unsent
            loop = asyncio.get_running_loop()
            # a moment later, when what the connections held is free
            loop.call_later(1, loop.run_in_executor, None, give_back_memory)


def give_back_memory() -> None:
    """Gives memory that is free back to the system. glibc keeps that of long answers,
    since it lies between blocks in use.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)


def _patience(connection: Connection) -> tuple[bool, float]:
    """A key by which those come first that are closed to make room: connections that
    were never answered, then those that have made the server wait for longest.
    """
    return connection.answers > 0, connection.last_progress()


def _last_progress(connection: Connection) -> float:
    return connection.last_progress()
