"""What /metrics shows, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
)

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)


class ServerMetrics:
    """Counts requests, refused connections and batches, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "t2tlite_requests",
            "Requests answered.",
            ["path", "method", "status"],
            registry=self._registry,
        )
        self._refusals = Counter(
            "t2tlite_refused_connections",
            "Connections ended with an error, for what was sent or for its slowness.",
            ["status"],
            registry=self._registry,
        )
        self._latency = self._histogram(
            "request_seconds",
            "From a request to the end of its answer.",
            SECONDS,
            "path",
        )
        self._sentences = self._histogram(
            "batch_sentences", "Sentences of a batch.", SENTENCES
        )
        self._tokens = self._histogram(
            "batch_tokens", "Source tokens of a batch, without padding.", TOKENS
        )
        self._seconds = self._histogram(
            "batch_seconds", "Time to compute a batch.", SECONDS
        )
        self._queue = Gauge(
            "t2tlite_queue_sentences", "Sentences that wait.", registry=self._registry
        )
        self._active = Gauge(
            "t2tlite_active_requests",
            "Requests being answered.",
            registry=self._registry,
        )

    def _histogram(
        self, name: str, meaning: str, buckets: tuple[float, ...], *labels: str
    ) -> Histogram:
        return Histogram(
            f"t2tlite_{name}",
            meaning,
            labels,
            buckets=buckets,
            registry=self._registry,
        )

    def watch(self, queue_length: Callable[[], int], active: Callable[[], int]) -> None:
        """Shows what the functions return: the number of sentences that wait, and of
        requests that are being answered.
        """
        self._queue.set_function(queue_length)
        self._active.set_function(active)

    def observe_batch(self, sentences: int, tokens: int, seconds: float) -> None:
        """Counts a batch."""
        self._sentences.observe(sentences)
        self._tokens.observe(tokens)
        self._seconds.observe(seconds)

    def observe_request(
        self, path: str, method: str, status: int, seconds: float
    ) -> None:
        """Counts a request."""
        self._requests.labels(path, method, str(status)).inc()
        self._latency.labels(path).observe(seconds)

    def observe_refusal(self, status: int) -> None:
        """Counts a connection that ends with an error."""
        self._refusals.labels(str(status)).inc()

    def text(self) -> tuple[bytes, str]:
        """What /metrics answers, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
