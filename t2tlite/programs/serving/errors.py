"""Errors of requests, as they are reported to the client."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is answered with {"error": message} and a status; with Retry-After if it may be repeated."""

    def __init__(self, status: int, message: str, retry_after_s: int | None = None) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s
