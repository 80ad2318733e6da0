"""What surrounds every request: it is counted and timed for /metrics, and an error of
the server is answered.
"""

import time
from collections.abc import Callable, Collection
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from t2tlite.programs.serving.requests import CLIENT_GONE, error_response, log_failure

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)
OTHER = "other"  # the path of requests to paths that do not exist
FAILURE = HTTPException(
    500, "The server could not answer this request; its log says why."
)


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
            "Connections ended with an error, for what was sent or for its slowness.",
            ["status"],
            **named,
        )
        self.latency = Histogram(
            "request_seconds",
            "From a request to the end of its answer.",
            ["path"],
            buckets=SECONDS,
            **named,
        )
        self._sentences = Histogram(
            "batch_sentences", "Sentences of a batch.", buckets=SENTENCES, **named
        )
        self._tokens = Histogram(
            "batch_tokens",
            "Source tokens of a batch, without padding.",
            buckets=TOKENS,
            **named,
        )
        self._seconds = Histogram(
            "batch_seconds", "Time to compute a batch.", buckets=SECONDS, **named
        )
        queue = Gauge("queue_sentences", "Sentences that wait.", **named)
        queue.set_function(queue_length)
        active = Gauge("active_requests", "Requests being answered.", **named)
        active.set_function(lambda: self.active)

    def observe_batch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Counts a batch."""
        self._sentences.observe(sentences)
        self._tokens.observe(tokens)
        self._seconds.observe(seconds)


class Watch:
    """An ASGI application around another, which answers HEAD as GET: uvicorn leaves out
    the body.
    """

    def __init__(
        self,
        app: ASGIApp,
        metrics: ServerMetrics,
        paths: Collection[str],
    ) -> None:
        self._app = app
        self._metrics = metrics
        self._paths = paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status: int | None = None
        method = scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET"}

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.active += 1
        try:
            await self._app(scope, receive, observed)
        except Exception as error:
            log_failure(error)
            if status is None:
                await error_response(FAILURE)(scope, receive, observed)
            else:  # uvicorn cuts off a response that is not complete
                status = 500
        finally:
            self._metrics.active -= 1
            path = scope["path"] if scope["path"] in self._paths else OTHER
            if method not in ("GET", "HEAD", "POST"):
                method = OTHER
            status = status or CLIENT_GONE
            self._metrics.requests.labels(path, method, str(status)).inc()
            self._metrics.latency.labels(path).observe(time.monotonic() - started)
