"""Clients of an HTTP server, and what they measure."""

from __future__ import annotations

import asyncio
import collections
import dataclasses
import re
import statistics
import time
from collections.abc import Awaitable, Callable

JSON = "application/json"


class Client:
    """A kept connection, on which requests are sent one after the other."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def post(
        self, path: str, body: bytes, content_type: str = JSON
    ) -> tuple[int, bytes]:
        """Sends a request and returns status and body; ConnectionError or
        IncompleteReadError if none comes.
        """
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port
            )
        self._writer.write(self._head(path, len(body), content_type).encode() + body)
        await self._writer.drain()
        return await self._answer()

    async def get(self, path: str) -> tuple[int, bytes]:
        """Asks for a page, over a connection of its own."""
        self.close()
        self._reader, self._writer = await asyncio.open_connection(
            "127.0.0.1", self._port
        )
        self._writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await self._answer()

    async def break_off(self, path: str, body: bytes) -> None:
        """Sends a request and closes the connection without waiting for the answer."""
        self.close()
        _, writer = await asyncio.open_connection("127.0.0.1", self._port)
        writer.write(self._head(path, len(body), JSON).encode() + body)
        await writer.drain()
        await asyncio.sleep(0.005)
        writer.close()

    @staticmethod
    def _head(path: str, length: int, content_type: str) -> str:
        lines = (
            f"POST {path} HTTP/1.1",
            "Host: localhost",
            f"Content-Type: {content_type}",
            f"Content-Length: {length}",
        )
        return "\r\n".join(lines) + "\r\n\r\n"

    async def _answer(self) -> tuple[int, bytes]:
        assert self._reader
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", head, re.IGNORECASE)
        body = await self._reader.readexactly(int(length[1]) if length else 0)
        if b"connection: close" in head.lower():
            self.close()
        return int(head.split(b" ", 2)[1]), body

    def close(self) -> None:
        if self._writer:
            self._writer.close()
            self._reader = self._writer = None


@dataclasses.dataclass(frozen=True)
class Load:
    """The measurements of several clients."""

    statuses: collections.Counter[int]
    bodies: list[bytes]
    seconds: float
    latencies: list[float]

    @property
    def per_second(self) -> float:
        return len(self.bodies) / self.seconds

    def __str__(self) -> str:
        ranks = statistics.quantiles(self.latencies, n=100)
        return (
            f"{self.per_second:.1f} requests/s, median {1000 * ranks[49]:.0f} ms, 95%"
            f" {1000 * ranks[94]:.0f} ms"
        )


async def load(
    clients: int,
    count: int,
    work: Callable[[Client, int], Awaitable[tuple[int, bytes]]],
    port: int,
) -> Load:
    """Lets clients do work 0, 1, ... count - 1, each the next one when it is done with
    one.
    """
    numbers = iter(range(count))
    statuses: collections.Counter[int] = collections.Counter()
    bodies, latencies = [b""] * count, [0.0] * count

    async def run(client: Client) -> None:
        for number in numbers:
            started = time.monotonic()
            status, bodies[number] = await work(client, number)
            latencies[number] = time.monotonic() - started
            statuses[status] += 1
        client.close()

    started = time.monotonic()
    await asyncio.gather(*(run(Client(port)) for _ in range(clients)))
    return Load(statuses, bodies, time.monotonic() - started, latencies)
