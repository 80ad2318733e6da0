"""Errors of requests, as they are reported to the client."""

from __future__ import annotations

from fastapi.responses import Response

from t2tlite.programs.serving.schemas import ErrorResponse

SHOWN = 80  # characters of a value of the client's in a message
CLIENT_GONE = 499  # the status that logs and metrics show; nobody receives it


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
