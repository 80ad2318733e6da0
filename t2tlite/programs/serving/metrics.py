"""What /metrics shows, for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)
TOKENS = (16, 32, 64, 128, 256, 512, 1024, 2048)


class ServerMetrics:
    """Counts requests, refused connections and batches, in a registry of its own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        named: dict[str, Any] = {"namespace": "t2tlite", "registry": self.registry}
        self._requests = Counter(
            "requests", "Requests answered.", ["path", "method", "status"], **named
        )
        self.refusals = Counter(
            "refused_connections",
            "Connections ended with an error, for what was sent or for its slowness.",
            ["status"],
            **named,
        )
        self._latency = Histogram(
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
        self._queue = Gauge("queue_sentences", "Sentences that wait.", **named)
        self._active = Gauge("active_requests", "Requests being answered.", **named)

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
