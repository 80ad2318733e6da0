"""The state of the server: loading, ready or draining; and how a request waits for the worker thread."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import hmac
import logging
import time
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Any

from t2tlite.programs.serving.batching import Batcher, Job, Limits, Results, Work
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.metrics import Metrics
from t2tlite.programs.serving.served_model import Catalogue

if TYPE_CHECKING:
    from fastapi import Request

LOADING, READY, DRAINING = "loading", "ready", "draining"
LONGEST_S = 86_400
CLIENT_GONE = 499  # the status that logs and metrics show; nobody receives it
logger = logging.getLogger("t2tlite.programs.serving")


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServiceOptions:
    """What a server allows; the defaults of t2t-serve's flags."""

    max_characters: int = 20_000  # of a request's texts
    max_body_bytes: int = 1 << 20
    timeout_s: float = 60.0  # that a request may take
    max_beam_size: int = 16
    api_key: str = ""  # "": none is needed
    cors_origins: tuple[str, ...] = ()  # from which other sites' pages may call; "*" for all
    limits: Limits = dataclasses.field(default_factory=Limits)

    def __post_init__(self) -> None:
        for name, value in (("max_characters", self.max_characters), ("max_queue", self.limits.max_queue)):
            if value < 1:
                raise ValueError(f"--{name} must be at least 1. Received: {value}.")
        if not 0 < self.timeout_s < LONGEST_S:
            raise ValueError(
                f"--timeout_s must be more than 0 and less than {LONGEST_S:,}. Received: {self.timeout_s}."
            )


class Service:
    """Knows whether requests are accepted, and computes them."""

    def __init__(self, options: ServiceOptions) -> None:
        self.options = options
        self.metrics = Metrics()
        self.batcher = Batcher(options.limits, self.metrics.observe_batch)
        self.metrics.watch(lambda: self.batcher.queue_length, lambda: self.active)
        self.status = LOADING
        self.active = 0  # requests that are being answered
        self.catalogue = Catalogue([])

    def ready(self, catalogue: Catalogue) -> None:
        """Accepts requests for these models from now on."""
        self.catalogue = catalogue
        if self.status == LOADING:
            self.status = READY

    def drain(self) -> None:
        """Accepts no more requests; those accepted are still answered."""
        self.status = DRAINING

    def check_ready(self) -> None:
        """RequestError 503 while the models are loaded and while the server drains."""
        if self.status != READY:
            doing = "loading its models" if self.status == LOADING else "shutting down"
            raise RequestError(503, f"The server is {doing}. Try again later.", 5)

    def check_key(self, received: str | None) -> None:
        """RequestError if an API key is needed and this is not it: 400 without one, 403 with another."""
        if not self.options.api_key:
            return
        if not received:
            raise RequestError(400, "An API key is required: the field api_key, or Authorization: Bearer KEY.")
        if not hmac.compare_digest(received.encode("utf-8", "replace"), self.options.api_key.encode()):
            raise RequestError(403, "The API key is not valid.")

    def check_characters(self, texts: Sequence[str], status: int = 413) -> None:
        """RequestError if the texts together are longer than a request may be."""
        count = sum(map(len, texts))
        if count > self.options.max_characters:
            raise RequestError(
                status,
                f"The text of a request must have at most {self.options.max_characters:,} characters. Received: "
                f"{count:,}. Split it into several requests.",
            )

    async def compute(self, request: Request, work: Work, items: Sequence[Any], tokens: Sequence[int]) -> list[Any]:
        """The result of each item, in order. Raises RequestError 503, 504, or 499 if the client went away."""
        results: list[Any] = [None] * len(items)
        gone = asyncio.ensure_future(_disconnected(request))
        try:
            async for index, value in self._results(work, items, tokens, gone):
                results[index] = value
        finally:
            gone.cancel()
        return results

    async def stream(self, work: Work, items: Sequence[Any], tokens: Sequence[int]) -> AsyncIterator[tuple[int, Any]]:
        """(index, result) of each item, in order, as soon as it and those before it are computed."""
        waiting: dict[int, Any] = {}
        following = 0
        async for index, value in self._results(work, items, tokens):
            waiting[index] = value
            while following in waiting:
                yield following, waiting.pop(following)
                following += 1

    async def _results(
        self, work: Work, items: Sequence[Any], tokens: Sequence[int], gone: asyncio.Future[None] | None = None
    ) -> AsyncIterator[tuple[int, Any]]:
        if not items:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Results | Exception] = asyncio.Queue()

        def put(found: Results | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, found)

        job = Job(work, items, tokens, put, put)
        deadline = time.monotonic() + self.options.timeout_s
        self.batcher.submit(job)
        try:
            left = len(items)
            while left:
                found = await _first(arrived, gone, deadline - time.monotonic(), self.options.timeout_s)
                if isinstance(found, Exception):
                    raise _failure(found)
                left -= len(found.indices)
                for pair in zip(found.indices, found.values, strict=True):
                    yield pair
        finally:
            self.batcher.cancel(job)


async def _first(
    arrived: asyncio.Queue[Results | Exception], gone: asyncio.Future[None] | None, seconds: float, allowed: float
) -> Results | Exception:
    """What arrives first; RequestError if the client goes away before, or the time is over."""
    next_one = asyncio.ensure_future(arrived.get())
    waited: list[asyncio.Future[Any]] = [next_one] if gone is None else [next_one, gone]
    try:
        done, _ = await asyncio.wait(waited, timeout=max(0.0, seconds), return_when=asyncio.FIRST_COMPLETED)
    finally:
        if not next_one.done():
            next_one.cancel()
    if next_one in done:
        return next_one.result()
    if done:
        raise RequestError(CLIENT_GONE, "The client closed the connection.")
    raise RequestError(504, f"The request was not done after {allowed:g} seconds. Send less text, or try again later.")


async def _disconnected(request: Request) -> None:
    """Returns when the client has closed the connection; the request's body has been read before."""
    while (await request.receive())["type"] != "http.disconnect":
        pass


def _failure(error: Exception) -> RequestError:
    """What a client is told of an error in the worker: a ValueError's message, nothing of any other."""
    if isinstance(error, ValueError):  # ours: what is required, what was received
        return RequestError(400, str(error))
    logger.error("A request failed.", exc_info=error)
    return RequestError(500, "The server could not compute this request; its log says why.")
