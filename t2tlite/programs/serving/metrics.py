"""What /metrics shows, for Prometheus."""

from __future__ import annotations

import functools
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


class Metrics:
    """Counts requests and batches, in a registry of its own."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        histogram = functools.partial(Histogram, registry=registry)
        labels = ["path", "method", "status"]
        self._requests = Counter(
            "t2tlite_requests", "Requests answered.", labels, registry=registry
        )
        meaning = "From a request to the end of its answer."
        self._latency = histogram(
            "t2tlite_request_seconds", meaning, ["path"], buckets=SECONDS
        )
        self._sentences = histogram(
            "t2tlite_batch_sentences", "Sentences of a batch.", buckets=SENTENCES
        )
        meaning = "Source tokens of a batch, without padding."
        self._tokens = histogram("t2tlite_batch_tokens", meaning, buckets=TOKENS)
        self._seconds = histogram(
            "t2tlite_batch_seconds", "That a batch took to compute.", buckets=SECONDS
        )
        self._queue = Gauge(
            "t2tlite_queue_sentences", "Sentences that wait.", registry=registry
        )
        self._active = Gauge(
            "t2tlite_active_requests", "Requests being answered.", registry=registry
        )

    def watch(self, queue_length: Callable[[], int], active: Callable[[], int]) -> None:
        """Shows what the functions return: the sentences that wait, the requests that
        are being answered.
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

    def text(self) -> tuple[bytes, str]:
        """What /metrics answers, and its content type."""
        return generate_latest(self._registry), CONTENT_TYPE_LATEST
