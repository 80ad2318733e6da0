"""The state of the server (loading, ready or draining), and the steps of a request that
endpoints share: it is checked, read, queued and computed.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import hmac
import time
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, ParamSpec, TypeVar

from fastapi import Depends, Request

from t2tlite.programs.serving import requests
from t2tlite.programs.serving.batching import (
    Batcher,
    Item,
    Limits,
    Results,
    Value,
    Work,
)
from t2tlite.programs.serving.metrics import ServerMetrics
from t2tlite.programs.serving.models import Catalogue
from t2tlite.programs.serving.options import MAX_ATTENTION_QUEUE, ServerOptions
from t2tlite.programs.serving.requests import (
    Bodies,
    Body,
    RequestError,
    client_gone,
    log_failure,
)
from t2tlite.programs.serving.schemas import TextRequest

LOADING, READY, DRAINING = "loading", "ready", "draining"
BROKEN = "broken"  # shown by /ready; a request is accepted while a thread is left
PREPARATION_THREADS = 2

P = ParamSpec("P")
T = TypeVar("T")


class Service:
    """The models, the queues, and the rules for requests."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.metrics = ServerMetrics()
        self.batcher = Batcher(options.max_queue, observe=self.metrics.observe_batch)
        # one request at a time, beside the others
        self.attention_batcher = Batcher(
            min(MAX_ATTENTION_QUEUE, options.max_queue),
            Limits(max_wait_s=0, window=1),
            self.metrics.observe_batch,
            workers=1,
        )
        self._batchers = [self.batcher, self.attention_batcher]
        self.metrics.watch(self._queue_length, lambda: self.active)
        self._bodies = Bodies()
        self.status = LOADING
        self.active = 0  # requests that are being answered
        self.catalogue = Catalogue([])
        self._threads = ThreadPoolExecutor(PREPARATION_THREADS, "t2t-serve preparation")

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
        """Refuses further requests; those accepted are still answered."""
        self.status = DRAINING

    def stop(self) -> None:
        """Ends the threads."""
        for batcher in self._batchers:
            batcher.stop()
        self._threads.shutdown()

    # checks

    def check_ready(self) -> None:
        """RequestError 503 while the models are loaded and while the server drains."""
        if self.status != READY:
            doing = "loading its models" if self.status == LOADING else "shutting down"
            raise RequestError(
                503, f"The server is {doing}. Try again later.", retry_after="5"
            )

    def check_key(self, received: bytes) -> None:
        """Raises RequestError if the server has an API key: 400 if none is received,
        403 if another is.
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

    def check_size(self, body: TextRequest) -> None:
        """Raises RequestError if a request has too many texts or characters. A blank
        text counts as a character.
        """
        texts = body.texts()
        characters = sum(max(1, len(text)) for text in texts)
        for name, size, limit in (
            ("texts", len(texts), self.options.max_texts),
            ("characters", characters, self.options.max_characters),
        ):
            if size > limit:
                raise RequestError(
                    400,
                    f"A request must have at most {limit:,} {name}. Received:"
                    f" {size:,}. Split it into several requests.",
                )

    # bodies

    async def read(self, request: Request, kind: type[Body]) -> Body:
        """Reads a request in JSON, a form, or the address, and checks it in a thread.
        Raises RequestError.

        An API key of the header is checked before the body is read.
        """
        key = _key_of_header(request)
        if key:
            self.check_key(key)

        def parsed(received: bytearray) -> Body:
            fields = requests.fields_of(received, request)
            if not key:
                self.check_key(str(fields.get("api_key", "")).encode())
            body = requests.checked(fields, kind)
            self.check_size(body)
            return body

        async with self._bodies.read(request, self.options.timeout_s) as received:
            return await self.in_thread(parsed, received)

    async def in_thread(
        self, function: Callable[P, T], *args: P.args, **named: P.kwargs
    ) -> T:
        """Calls a function in a thread, while the event loop answers others."""
        call = functools.partial(function, *args, **named)
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)

    # results

    async def compute(
        self,
        request: Request,
        work: Work[Item, Value],
        batcher: Batcher | None = None,
    ) -> list[Value]:
        """The result of each item, in order. Raises RequestError 503, 504, or 499 if
        the client went away.
        """
        return [value async for value in self.stream(work, request, batcher)]

    async def stream(
        self,
        work: Work[Item, Value],
        request: Request | None = None,
        batcher: Batcher | None = None,
    ) -> AsyncIterator[Value]:
        """The result of each item, in order, as soon as it and those before it are
        computed, by default by the threads that translate.

        With `request`, raises RequestError 499 if its client goes away; FastAPI ends a
        response that streams.
        """
        if not work.items:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Results[Value] | Exception] = asyncio.Queue()

        def deliver(part: Results[Value] | Exception) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, part)

        deadline = time.monotonic() + self.options.timeout_s
        batcher = batcher or self.batcher
        batcher.submit(work, deliver)
        watch = None
        if request is not None:
            watch = asyncio.ensure_future(_report_disconnect(request, deliver))
        waiting: Results[Value] = {}
        try:
            for index in range(len(work.items)):
                while index not in waiting:
                    left = deadline - time.monotonic()
                    part = await asyncio.wait_for(arrived.get(), left)
                    if isinstance(part, Exception):
                        raise _request_error(part)
                    waiting |= part
                yield waiting.pop(index)
        except TimeoutError:
            raise RequestError(
                504,
                f"The request was not done after {self.options.timeout_s:g} seconds."
                " Send less text, or try again later.",
            ) from None
        finally:
            batcher.cancel(work)
            if watch is not None:
                watch.cancel()


async def service_of(request: Request) -> Service:
    """The service of the application that received the request."""
    service: Service = request.app.state.service
    return service


CurrentService = Annotated[Service, Depends(service_of)]  # a parameter of an endpoint


def _key_of_header(request: Request) -> bytes:
    """The API key of the header, `Bearer KEY` or KEY alone; empty if there is none."""
    first, _, rest = request.headers.get("authorization", "").partition(" ")
    return (rest.strip() or first).encode("latin-1")  # Starlette decodes headers so


async def _report_disconnect(
    request: Request, deliver: Callable[[Exception], None]
) -> None:
    """Delivers an error when the client has closed the connection; the body was read
    before.
    """
    while (await request.receive())["type"] != "http.disconnect":
        pass
    deliver(client_gone())


def _request_error(error: Exception) -> RequestError:
    """Maps a worker's exception to a response: a ValueError is shown (400), others are
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
