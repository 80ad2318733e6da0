"""The state of the server (loading, ready or draining), the steps of a request that
endpoints share (it is checked, read, queued and computed), and who may send one: this
server's own pages, programs, and pages of sites that it names, by an address that it
knows.
"""

import asyncio
import contextlib
import hmac
import time
from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import Annotated, Any, TypeVar

from fastapi import Depends, Request
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException

from t2tlite.programs.serving import requests
from t2tlite.programs.serving.batching import Batcher, Limits, Results, Work
from t2tlite.programs.serving.metrics import ServerMetrics
from t2tlite.programs.serving.models import Catalogue
from t2tlite.programs.serving.options import (
    DEFAULT_PORTS,
    MAX_ATTENTION_QUEUE,
    ServerOptions,
    host_name,
    is_address,
)
from t2tlite.programs.serving.requests import SHOWN, Bodies, Body
from t2tlite.programs.serving.schemas import TextRequest

LOADING, READY, DRAINING = "loading", "ready", "draining"
CHECK_S = 1.0  # time between looks whether the client of a request has gone

T = TypeVar("T")


class Service:
    """The models, the queues, and the rules for requests."""

    def __init__(self, options: ServerOptions) -> None:
        self.options = options
        self.status = LOADING
        self.catalogue = Catalogue([])
        self.metrics = ServerMetrics(self._queue_length)
        self.batcher = Batcher(options.max_queue, observe=self.metrics.observe_batch)
        # one request at a time, beside the others
        self.attention_batcher = Batcher(
            min(MAX_ATTENTION_QUEUE, options.max_queue),
            Limits(max_wait_s=0, window=1),
            self.metrics.observe_batch,
            workers=1,
        )
        self._bodies = Bodies()

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

    # checks

    def check_ready(self) -> None:
        """HTTPException 503 while the models are loaded and while the server drains."""
        if self.status != READY:
            doing = "loading its models" if self.status == LOADING else "shutting down"
            message = f"The server is {doing}. Try again later."
            raise HTTPException(503, message, {"Retry-After": "5"})

    def _check_key(self, received: bytes) -> None:
        if not self.options.api_key:
            return
        if not received:
            raise HTTPException(
                400,
                "An API key is required: the field api_key, or Authorization: Bearer"
                " KEY.",
            )
        if not hmac.compare_digest(received, self.options.api_key.encode()):
            raise HTTPException(403, "The API key is not valid.")

    def _check_size(self, body: TextRequest) -> None:
        texts = body.texts()
        characters = sum(max(1, len(text)) for text in texts)
        check_request = partial(requests.check_limit, "A request", status=400)
        check_request(len(texts), self.options.max_texts, "texts")
        check_request(characters, self.options.max_characters, "characters")

    # a request

    async def read(
        self,
        request: Request,
        kind: type[Body],
        prepare: Callable[[Body, Catalogue], T],
    ) -> T:
        """What `prepare` makes of a request in JSON, a form, or the address, in a
        thread, while the event loop answers others. Raises HTTPException.

        An API key of the header is checked before the body is read.
        """
        key = _key_of_header(request)
        if key:
            self._check_key(key)

        def prepared() -> T:
            fields = requests.fields_of(content, request)
            if not key:
                api_key = fields.get("api_key")
                received = api_key if isinstance(api_key, str) else ""
                self._check_key(received.encode("utf-8", "replace"))
            body = requests.checked(fields, kind)
            self._check_size(body)
            return prepare(body, self.catalogue)

        async with self._bodies.read(request, self.options.timeout_s) as content:
            return await asyncio.to_thread(prepared)

    async def compute(
        self, request: Request, work: Work, batcher: Batcher | None = None
    ) -> list[Any]:
        """The result of each item, in order. Raises as `stream`."""
        return [value async for value in self.stream(work, request, batcher)]

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
        while True:
            left = deadline - time.monotonic()
            try:
                async with asyncio.timeout(min(left, CHECK_S)):
                    part = await arrived.get()
                    break
            except TimeoutError:
                if request is not None and await request.is_disconnected():
                    raise requests.client_gone() from None
                if left <= CHECK_S:
                    raise HTTPException(
                        504,
                        f"The request was not done after {self.options.timeout_s:g}"
                        " seconds. Send less text, or try again later.",
                    ) from None
        if isinstance(part, BaseException):
            raise _answerable(part)
        return part


def _key_of_header(request: Request) -> bytes:
    """The API key of the header, `Bearer KEY` or KEY alone; empty if there is none."""
    first, _, rest = request.headers.get("authorization", "").partition(" ")
    return (rest.strip() or first).encode("latin-1")  # Starlette decodes headers so


def _answerable(error: BaseException) -> HTTPException:
    """The answer to a thread's error: a ValueError is shown (400), others are logged
    (500).
    """
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, ValueError):  # ours: what is required, what was received
        return HTTPException(400, str(error))
    log = "The server could not compute this request; its log says why."
    requests.log_failure(error)
    return HTTPException(500, log)


# who may send requests


async def service_for(request: Request) -> Service:
    """The service, for a request that it may answer. Raises HTTPException otherwise,
    before the body is read: what is accepted is answered.
    """
    service: Service = request.app.state.service
    check_sender(request.headers, service.options)
    service.check_ready()
    return service


ServiceFor = Annotated[Service, Depends(service_for)]  # a parameter of an endpoint


def check_sender(headers: Headers, options: ServerOptions) -> None:
    """Raises HTTPException if another site's page in a browser may have sent the
    request, unless --cors_origins names the site.

    A page can send simple requests to any address. The browser names the site: in
    Sec-Fetch-Site, or on connections without TLS in Origin, which every POST has. A
    page whose own name resolves to this server (DNS rebinding) sends that name as Host.
    The status is 400 for a host name that the server does not know, and 403 for another
    site or an origin that is not one.
    """
    host = headers.get("host", "")
    if host and not is_known_host(host, options):
        raise HTTPException(
            400,
            f"The server does not know the host {host[:SHOWN]!r}. Use its IP address,"
            " or start it with --allowed_hosts.",
        )
    origin = headers.get("origin")
    if origin in options.cors_origins or "*" in options.cors_origins:
        return
    site = headers.get("sec-fetch-site")
    if site is None and origin is not None and not _is_own(origin, headers, options):
        site = "cross-site"
    if site not in (None, "same-origin", "none"):
        sender = "another site" if origin is None else repr(origin[:SHOWN])
        raise HTTPException(
            403,
            f"Pages of other sites may not send requests. Received: one of {sender}, to"
            f" {host[:SHOWN]!r}. --cors_origins names sites whose pages may; a proxy"
            " before the server must send it the Host that it received.",
        )


def _is_own(origin: str, headers: Headers, options: ServerOptions) -> bool:
    """Whether an origin is that of the server's own pages: at the host of the request,
    or at the host that a proxy received.

    A page of another site cannot send X-Forwarded-Host. A page whose name resolves to
    the proxy can send its own name, but not a name that the server knows.
    """
    scheme, _, place = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme)
    if port is None:
        return False
    hosts = [headers.get("host", "")]
    forwarded = headers.get("x-forwarded-host", "").partition(",")[0].strip()
    if forwarded and is_known_host(forwarded, options):
        hosts.append(forwarded)
    own_places = [host.lower().removesuffix(port) for host in hosts]
    return place.removesuffix(port) in own_places


def is_known_host(host: str, options: ServerOptions) -> bool:
    """Whether a Host header has a name of this server, or an IP address."""
    if "*" in options.allowed_hosts:
        return True
    name = host_name(host)
    if name in ("localhost", options.host.lower()) or is_address(name):
        return True
    for allowed in options.allowed_hosts:
        is_below = allowed.startswith("*.") and name.endswith(allowed[1:])
        if name == allowed or is_below:
            return True
    return False
