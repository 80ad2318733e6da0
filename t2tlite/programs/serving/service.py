"""The state of the server: loading, ready or draining; and how a request waits for what
is computed of it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import time
from collections.abc import AsyncIterator, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, ParamSpec, TypeVar

from fastapi import Depends, Request

from t2tlite.programs.serving.batching import (
    Batcher,
    BatchFunction,
    Item,
    Job,
    Limits,
    Results,
    Value,
)
from t2tlite.programs.serving.errors import ClientGoneError, RequestError, log_failure
from t2tlite.programs.serving.metrics import Metrics
from t2tlite.programs.serving.models import Catalogue
from t2tlite.programs.serving.options import MAX_ATTENTION_QUEUE, ServerOptions

LOADING, READY, DRAINING = "loading", "ready", "draining"
BROKEN = "broken"  # shown, while requests are accepted as long as a thread is left
PREPARATION_THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """Knows whether requests are accepted, and computes them."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.metrics = Metrics()
        self.batcher = Batcher(options.max_queue, observe=self.metrics.observe_batch)
        # one request at a time, beside the others
        self.attention_batcher = Batcher(
            min(MAX_ATTENTION_QUEUE, options.max_queue),
            Limits(max_wait_s=0, window=1),
            self.metrics.observe_batch,
            workers=1,
        )
        self.metrics.watch(self._queue_length, lambda: self.active)
        self.status = LOADING
        self.active = 0  # requests that are being answered
        self.catalogue = Catalogue([])
        self._threads = ThreadPoolExecutor(PREPARATION_THREADS, "t2t-serve preparation")

    @property
    def _batchers(self) -> tuple[Batcher, ...]:
        return self.batcher, self.attention_batcher

    def _queue_length(self) -> int:
        return sum(batcher.queue_length for batcher in self._batchers)

    @property
    def shown_status(self) -> str:
        """What /ready shows: the status, or BROKEN if a thread that computes has
        ended.
        """
        dead = any(batcher.dead_workers for batcher in self._batchers)
        return BROKEN if dead and self.status == READY else self.status

    def ready(self, catalogue: Catalogue) -> None:
        """Accepts requests for these models from now on."""
        self.catalogue = catalogue
        if self.status == LOADING:
            self.status = READY

    def drain(self) -> None:
        """Accepts no more requests; those accepted are still answered."""
        self.status = DRAINING

    def stop(self) -> None:
        """Ends the threads."""
        for batcher in self._batchers:
            batcher.stop()
        self._threads.shutdown()

    def check_ready(self) -> None:
        """RequestError 503 while the models are loaded and while the server drains."""
        if self.status != READY:
            doing = "loading its models" if self.status == LOADING else "shutting down"
            raise RequestError(503, f"The server is {doing}. Try again later.", 5)

    def check_key(self, received: bytes | None) -> None:
        """RequestError if an API key is needed and this is not it: 400 without one, 403
        with another.
        """
        if not self.options.api_key:
            return
        if not received:
            raise RequestError(
                400,
                "An API key is required: the field api_key, or Authorization: Bearer"
                " KEY.",
            )
        if not hmac.compare_digest(received, self.options.api_key.encode()):
            raise RequestError(403, "The API key is not valid.")

    def check_size(
        self, texts: Sequence[str], count: int | None = None, status: int = 413
    ) -> None:
        """RequestError if the texts are too many, or together longer than a request may
        be.

        A blank text counts as a character. `count` is how many there are for the limit,
        by default all.
        """
        characters = sum(max(1, len(text)) for text in texts)
        for what, unit, size, limit in (
            (
                "A request",
                "texts",
                len(texts) if count is None else count,
                self.options.max_texts,
            ),
            (
                "The text of a request",
                "characters",
                characters,
                self.options.max_characters,
            ),
        ):
            if size > limit:
                problem = (
                    f"{what} must have at most {limit:,} {unit}. Received: {size:,}."
                )
                raise RequestError(status, f"{problem} Split it into several requests.")

    async def in_thread(
        self, function: Callable[P, T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Calls a function in a thread, so that meanwhile the event loop answers
        others.
        """
        call = functools.partial(function, *args, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    async def compute(
        self,
        request: Request,
        function: BatchFunction[Item, Value],
        items: Sequence[Item],
        tokens: Sequence[int],
        batcher: Batcher | None = None,
    ) -> list[Value]:
        """The result of each item, in order. Raises RequestError 503, 504, or 499 if
        the client went away.
        """
        values = self.stream(function, items, tokens, request, batcher)
        return [value async for value in values]

    async def stream(
        self,
        function: BatchFunction[Item, Value],
        items: Sequence[Item],
        tokens: Sequence[int],
        request: Request | None = None,
        batcher: Batcher | None = None,
    ) -> AsyncIterator[Value]:
        """The result of each item, in order, as soon as it and those before it are
        computed, by default by the threads that translate.

        With `request`, raises RequestError 499 if its client goes away; FastAPI ends a
        response that streams.
        """
        if not items:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Results[Value] | Exception] = asyncio.Queue()

        def deliver(part: Results[Value] | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, part)

        job = Job(function, items, tokens, deliver)
        deadline = time.monotonic() + self.options.timeout_s
        batcher = batcher or self.batcher
        batcher.submit(job)
        watch = (
            None
            if request is None
            else asyncio.ensure_future(_report_disconnect(request, arrived))
        )
        waiting: Results[Value] = {}
        try:
            for index in range(len(items)):
                while index not in waiting:
                    waiting |= await self._next_part(arrived, deadline)
                yield waiting.pop(index)
        finally:
            batcher.cancel(job)
            if watch is not None:
                watch.cancel()

    async def _next_part(
        self, arrived: asyncio.Queue[Results[Value] | Exception], deadline: float
    ) -> Results[Value]:
        """The results that arrive next; RequestError if they are errors, or do not
        arrive in time.
        """
        try:
            part = await asyncio.wait_for(arrived.get(), deadline - time.monotonic())
        except asyncio.TimeoutError:
            problem = (
                f"The request was not done after {self.options.timeout_s:g} seconds."
            )
            raise RequestError(
                504, f"{problem} Send less text, or try again later."
            ) from None
        if isinstance(part, Exception):
            raise _failure(part)
        return part


async def service_of(request: Request) -> Service:
    """The service of the application that received the request."""
    service: Service = request.app.state.service
    return service


CurrentService = Annotated[Service, Depends(service_of)]  # a parameter of an endpoint


async def _report_disconnect(
    request: Request, arrived: asyncio.Queue[Results[Value] | Exception]
) -> None:
    """Puts an error into the queue when the client, whose body was read before, has
    closed the connection.
    """
    while (await request.receive())["type"] != "http.disconnect":
        pass
    arrived.put_nowait(ClientGoneError())


def _failure(error: Exception) -> RequestError:
    """Maps a worker's exception to a response: ValueError is shown (400), others are
    logged (500).
    """
    if isinstance(error, RequestError):
        return error
    if isinstance(error, ValueError):  # ours: what is required, what was received
        return RequestError(400, str(error))
    log_failure(error)
    return RequestError(
        500, "The server could not compute this request; its log says why."
    )
