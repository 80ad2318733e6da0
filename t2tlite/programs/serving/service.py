"""The state of the server (loading, ready or draining), its metrics, and the steps of a
request that endpoints share: it is checked, read, queued and computed.
"""

import asyncio
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException

from t2tlite.programs.serving import options, requests
from t2tlite.programs.serving.batching import Batcher, Results, Work
from t2tlite.programs.serving.models import Catalogue

LOADING, READY, DRAINING = "loading", "ready", "draining"
CHECK_S = 1.0  # time between looks whether the client of a request has gone
SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)

T = TypeVar("T")


class ServerMetrics:
    """Counts requests, refused connections and batches, in a registry of its own."""

    def __init__(self, queue_length: Callable[[], int]) -> None:
        self.active = 0  # requests that are being answered
        self.registry = CollectorRegistry()
        named: dict[str, Any] = {"namespace": "t2tlite", "registry": self.registry}
        self.requests = Counter(
            "requests", "Requests answered.", ["path", "method", "status"], **named
        )
        self.refusals = Counter(
            "refused_connections",
            "Connections ended with an error.",
            ["status"],
            **named,
        )
        timed: dict[str, Any] = {"buckets": SECONDS, **named}
        self.latency = Histogram(
            "request_seconds", "Until the end of an answer.", ["path"], **timed
        )
        self._seconds = Histogram("batch_seconds", "Time to compute a batch.", **timed)
        self._sentences = Histogram(
            "batch_sentences", "Sentences of a batch.", buckets=SENTENCES, **named
        )
        queue = Gauge("queue_sentences", "Sentences that wait.", **named)
        queue.set_function(queue_length)
        active = Gauge("active_requests", "Requests being answered.", **named)
        active.set_function(lambda: self.active)

    def observe_batch(self, sentences: int, seconds: float) -> None:
        """Counts a batch."""
        self._sentences.observe(sentences)
        self._seconds.observe(seconds)


class Service:
    """The models, the queues, and the rules for requests."""

    def __init__(self, server: options.ServerOptions) -> None:
        self.options = server
        self.status = LOADING
        self.catalogue = Catalogue([])
        self.metrics = ServerMetrics(self._queue_length)
        self.batcher = Batcher(server.max_queue, self.metrics.observe_batch)
        # one request at a time, beside the others
        self.attention_batcher = Batcher(
            min(options.MAX_ATTENTION_QUEUE, server.max_queue),
            self.metrics.observe_batch,
            workers=1,
            max_wait_s=0,
            window=1,
        )
        self._bodies = requests.Bodies()

    def _queue_length(self) -> int:
        return self.batcher.queue_length + self.attention_batcher.queue_length

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
        self.batcher.stop()
        self.attention_batcher.stop()

    def _check_key(self, received: bytes) -> None:
        if not self.options.api_key:
            return
        if not received:
            message = "An API key is required, as api_key or Authorization: Bearer KEY."
            raise HTTPException(400, message)
        if not hmac.compare_digest(received, self.options.api_key.encode()):
            raise HTTPException(403, "The API key is not valid.")

    async def read(
        self,
        request: Request,
        kind: type[requests.Body],
        prepare: Callable[[requests.Body, Catalogue], T],
    ) -> T:
        """What `prepare` makes of a request in JSON, a form, or the address, in a
        thread, while the event loop answers others. Raises HTTPException.

        An API key of the header is checked before the body is read.
        """
        # Bearer KEY, or KEY alone
        first, _, rest = request.headers.get("authorization", "").partition(" ")
        key = (rest.strip() or first).encode("latin-1")  # Starlette decodes headers so
        if key:
            self._check_key(key)

        def prepared() -> T:
            fields = requests.fields_of(content, request)
            if not key:
                api_key = fields.get("api_key")
                received = api_key if isinstance(api_key, str) else ""
                self._check_key(received.encode("utf-8", "replace"))
            body = requests.checked(fields, kind)
            texts = body.texts()
            characters = sum(max(1, len(text)) for text in texts)
            for unit, size, limit in (
                ("texts", len(texts), self.options.max_texts),
                ("characters", characters, self.options.max_characters),
            ):
                requests.check_limit("A request", size, limit, unit, status=400)
            return prepare(body, self.catalogue)

        async with self._bodies.read(request, self.options.timeout_s) as content:
            return await asyncio.to_thread(prepared)

    async def stream(
        self,
        work: Work,
        request: Request | None = None,
        batcher: Batcher | None = None,
    ) -> AsyncIterator[Any]:
        """The result of each item, in order, as soon as it and those before it are
        computed, by default by the threads that translate.

        Raises HTTPException 503, 504, or with `request` 499 if its client goes away;
        FastAPI ends a response that streams.
        """
        if not work.items:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Results] = asyncio.Queue()

        def deliver(part: Results) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, part)

        deadline = time.monotonic() + self.options.timeout_s
        batcher = batcher or self.batcher
        batcher.submit(work, deliver)
        waiting: dict[int, Any] = {}
        try:
            for index in range(len(work.items)):
                while index not in waiting:
                    waiting |= await self._next_part(arrived, deadline, request)
                yield waiting.pop(index)
        finally:
            batcher.cancel(work)

    async def _next_part(
        self,
        arrived: asyncio.Queue[Results],
        deadline: float,
        request: Request | None,
    ) -> dict[int, Any]:
        """The results that arrive next. Raises HTTPException for an error, after the
        deadline, or if the client of the request has gone.
        """
        part: Results | None = None
        while part is None:
            left = deadline - time.monotonic()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(min(left, CHECK_S)):
                    part = await arrived.get()
                    break
            if request is not None and await request.is_disconnected():
                raise requests.client_gone()
            if left <= CHECK_S:
                seconds = f"{self.options.timeout_s:g} seconds"
                message = f"The request was not done after {seconds}. Send less text."
                raise HTTPException(504, message)
        if isinstance(part, HTTPException):
            raise part
        if isinstance(part, ValueError):  # ours: what is required, what was received
            raise HTTPException(400, str(part))
        if isinstance(part, BaseException):
            requests.log_failure(part)
            log = "The server could not compute this request; its log says why."
            raise HTTPException(500, log)
        return part


async def service_for(request: Request) -> Service:
    """The service, for a request that it may answer. Raises HTTPException otherwise,
    before the body is read: what is accepted is answered.
    """
    service: Service = request.app.state.service
    requests.check_sender(request.headers, service.options)
    if service.status != READY:
        doing = "loading its models" if service.status == LOADING else "shutting down"
        message = f"The server is {doing}. Try again later."
        raise HTTPException(503, message, {"Retry-After": "5"})
    return service


ServiceFor = Annotated[Service, Depends(service_for)]  # a parameter of an endpoint
