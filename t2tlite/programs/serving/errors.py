"""Errors of requests, as they are reported to the client."""

from __future__ import annotations

import logging
import traceback

from fastapi.responses import Response

from t2tlite.programs.serving.schemas import ErrorResponse

SHOWN = 80  # characters of a value of the client's in a message
CAUSES = 8  # of an error that are logged
CLIENT_GONE = 499  # the status that logs and metrics show; nobody receives it

logger = logging.getLogger("t2tlite.programs.serving")


class RequestError(Exception):
    """A request that is answered with {"error": message} and a status; with Retry-After
    if it may be repeated.
    """

    def __init__(
        self, status: int, message: str, retry_after_s: int | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.message, self.retry_after_s = status, message, retry_after_s


class ClientGoneError(RequestError):
    """A request whose client has closed the connection."""

    def __init__(self) -> None:
        super().__init__(CLIENT_GONE, "The client closed the connection.")


def error_response(error: RequestError) -> Response:
    """The response of an error."""
    # a lone surrogate has no bytes
    message = error.message.encode("utf-8", "replace").decode()
    headers = (
        {} if error.retry_after_s is None else {"Retry-After": str(error.retry_after_s)}
    )
    content = ErrorResponse(error=message).model_dump_json()
    return Response(content, error.status, headers, "application/json")


def log_failure(error: BaseException) -> None:
    """Logs an error of ours, its causes, and where they were raised.

    A message may hold text of a client's, which nobody shall write into the log: it is
    cut, and escaped so that it stays on its line.
    """
    lines = ["A request failed."]
    cause: BaseException | None = error
    while cause is not None and len(lines) <= CAUSES:
        frames = "".join(traceback.format_tb(cause.__traceback__))
        message = ascii(str(cause)[:SHOWN])
        lines.append(
            f"Traceback (most recent call last):\n{frames}"
            f"{type(cause).__name__}: {message}"
        )
        cause = cause.__cause__ or cause.__context__
    logger.error("%s", "\n".join(lines))
