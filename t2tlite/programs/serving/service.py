"""The state of the server (loading, ready or draining), its metrics, and the steps of a
request that endpoints share: it is checked, read, queued and computed.
"""

import asyncio
import contextlib
import hmac
import re
from collections.abc import AsyncIterator, Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
)
from starlette.exceptions import HTTPException

from t2tlite import __version__
from t2tlite.programs.serving import options, requests
from t2tlite.programs.serving.batching import Batcher, Results, Work
from t2tlite.programs.serving.models import Catalogue

# a server that drains refuses further requests, and answers those that it accepted
LOADING, READY, DRAINING = "loading", "ready", "draining"

# before a key; a password of Basic is a proxy's
SCHEME = re.compile(r"^(bearer\b|basic .*)", re.I)

T = TypeVar("T")


class ServerMetrics:
    """Counts requests and refused connections, in a registry of its own, which also has
    the versions, and on Linux the memory and the CPU time of the process.
    """

    def __init__(self, batchers: Sequence[Batcher]) -> None:
        self.active = 0  # requests that are being answered
        self.registry = CollectorRegistry()
        named: dict[str, Any] = {"namespace": "t2tlite", "registry": self.registry}
        self.requests = Counter(
            "requests",
            "Requests answered.",
            ["path", "method", "status"],
            **named,
        )
        self.refusals = Counter(
            "refused_connections",
            "Connections ended with an error.",
            ["status"],
            **named,
        )
        self.latency = Histogram(
            "request_seconds",
            "Until the end of an answer.",
            ["path"],
            **named,
        )
        self.model_seconds = Histogram(
            "model_seconds",
            "Until a model is done.",
            ["model"],
            **named,
        )
        self.model_sentences = Counter(
            "model_sentences",
            "Sentences computed.",
            ["model"],
            **named,
        )
        build = Info("build", "Versions.", **named)
        build.info({"version": __version__, "tensorflow": version("tensorflow")})
        ProcessCollector(registry=self.registry)
        queue = Gauge("queue_sentences", "Sentences that wait.", **named)
        queue.set_function(lambda: sum(map(Batcher.queue_length, batchers)))
        active = Gauge("active_requests", "Requests being answered.", **named)
        active.set_function(lambda: self.active)


class Service:
    """The models, the queues, and the rules for requests."""

    def __init__(self, server: options.ServerOptions) -> None:
        self.options = server
        self.api_key = server.key()
        self.status = LOADING
        self.catalogue = Catalogue([])
        self.batcher = Batcher(server.max_queue)
        # one request at a time, beside the others
        self.attention_batcher = Batcher(
            options.MAX_ATTENTION_QUEUE,
            workers=1,
            max_wait_s=0,
            window=1,
        )
        self.metrics = ServerMetrics([self.batcher, self.attention_batcher])
        self._bodies = requests.Bodies()

    def ready(self, catalogue: Catalogue) -> None:
        """Accepts requests for these models from now on."""
        self.catalogue = catalogue
        self.status = READY

    def _check_key(self, received: bytes) -> None:
        key = self.api_key.encode()
        if key and not hmac.compare_digest(received, key):
            status = 403 if received else 400
            raise HTTPException(status, "A valid API key is required, as api_key.")

    async def read(
        self,
        request: Request,
        kind: type[requests.Body],
        prepare: Callable[[requests.Body, Catalogue], T],
    ) -> T:
        """What `prepare` makes of a request in JSON, a form, or the address, in a
        thread, while the event loop answers others. Raises HTTPException, also for a
        ValueError of `prepare`.

        An API key of the header is checked before the body is read.
        """
        header = request.headers.get("authorization", "")
        key = SCHEME.sub("", header).strip()
        if key:
            self._check_key(key.encode("latin-1"))  # as Starlette decodes headers

        def prepared() -> T:
            body = requests.body_of(content, request, kind)
            if not key:
                self._check_key(body.api_key.encode("utf-8", "replace"))
            sizes = [max(1, len(text)) for text in body.texts()]
            for unit, size, limit in (
                ("texts", len(sizes), self.options.max_texts),
                ("characters", sum(sizes), self.options.max_characters),
            ):
                requests.check_limit("A request", size, limit, unit, status=400)
            try:
                return prepare(body, self.catalogue)
            except ValueError as error:
                raise requests.answerable(error) from error

        async with self._bodies.read(request, self.options.timeout_s) as content:
            return await asyncio.to_thread(prepared)

    async def stream(
        self,
        work: Work,
        batcher: Batcher | None = None,
    ) -> AsyncIterator[Any]:
        """The result of each item, in order, as soon as it and those before it are
        computed, by default by the threads that translate.

        Raises HTTPException 503 if the queue is full, 504 after --timeout_s, 400 for a
        ValueError of a thread, and 500 for its other errors, which are logged.
        """
        if not work.items:
            return
        loop = asyncio.get_running_loop()
        arrived: asyncio.Queue[Results] = asyncio.Queue()

        def deliver(part: Results) -> None:
            with contextlib.suppress(RuntimeError):  # the loop has ended
                loop.call_soon_threadsafe(arrived.put_nowait, part)

        deadline = loop.time() + self.options.timeout_s
        batcher = batcher or self.batcher
        batcher.submit(work, deliver)
        results: dict[int, Any] = {}
        try:
            for index in range(len(work.items)):
                while index not in results:
                    results |= await self._next_part(arrived, deadline)
                yield results.pop(index)
        finally:
            batcher.cancel(work)

    async def _next_part(
        self,
        arrived: asyncio.Queue[Results],
        deadline: float,
    ) -> dict[int, Any]:
        """The results that arrive next."""
        try:
            async with asyncio.timeout_at(deadline):
                part = await arrived.get()
        except TimeoutError:
            seconds = f"{self.options.timeout_s:g} seconds"
            message = f"The request was not done after {seconds}."
            raise HTTPException(504, message) from None
        if isinstance(part, BaseException):
            raise requests.answerable(part)
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
