"""What the server refuses and reads: who may send a request, its body as JSON or as a
form, and the answer to an error, which is raised as Starlette's HTTPException.
"""

import asyncio
import contextlib
import fnmatch
import io
import ipaddress
import json
import logging
import traceback
import urllib.parse
from collections.abc import AsyncIterator, Mapping
from typing import TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError
from python_multipart import multipart
from starlette.exceptions import HTTPException

from t2tlite.programs.serving import options, schemas

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
BYTE_ORDER_MARK = b"\xef\xbb\xbf"
SHOWN = 80  # characters of a client's value in a message

logger = logging.getLogger("t2tlite.programs.serving")
# The client gets an answer to a malformed form. The parser's log lines would hold text
# of clients without a key.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

Body = TypeVar("Body", bound=schemas.TextRequest)


# errors


def error_response(error: HTTPException) -> Response:
    """The response of an error."""
    content = schemas.ErrorResponse(error=error.detail).model_dump_json()
    return Response(content, error.status_code, error.headers, JSON)


def check_limit(
    subject: str,
    size: int,
    limit: int,
    unit: str,
    advice: str = "Split it.",
    status: int = 413,
) -> None:
    """Raises HTTPException if `size` is above `limit`."""
    if size > limit:
        message = f"{subject} must have at most {limit:,} {unit}. Received: {size:,}."
        raise HTTPException(status, f"{message} {advice}")


def as_json(content: BaseModel) -> bytes:
    """An answer, or a part of it. Raises HTTPException 413 if it is too long."""
    encoded = content.model_dump_json(exclude_none=True).encode()
    limit = options.MAX_ANSWER_BYTES
    check_limit("An answer", len(encoded), limit, "bytes")
    return encoded


def failure(error: BaseException) -> HTTPException:
    """The answer to an error of the server, which is logged with where it was raised.

    A message may hold a client's text, which must not reach the log as it is: the
    message is cut, and escaped so that it stays on its line.
    """
    frames = "".join(traceback.format_tb(error.__traceback__))
    message = ascii(str(error)[:SHOWN])
    logger.error("A request failed.\n%s%s: %s", frames, type(error).__name__, message)
    answer = "The server could not answer this request; its log says why."
    return HTTPException(500, answer)


def answerable(error: BaseException) -> HTTPException:
    """The answer to an error: a ValueError is shown (400), others are logged (500)."""
    if isinstance(error, HTTPException):
        return error
    if isinstance(error, ValueError):  # ours: what is required, what was received
        return HTTPException(400, str(error))
    return failure(error)


# who may send a request


def check_sender(
    headers: Mapping[str, str],
    server: options.ServerOptions,
) -> None:
    """Raises HTTPException if another site's page in a browser may have sent the
    request, unless --cors_origins names the site.

    A page can send simple requests to any address. The browser names the site: in
    Sec-Fetch-Site, or on connections without TLS in Origin, which every POST has. A
    page whose own name resolves to this server (DNS rebinding) sends that name as Host.
    The status is 400 for a host name that the server does not know, and 403 for another
    site or an origin that is not one.
    """
    host = headers.get("host", "").lower()
    if host and not is_known_host(host, server):
        message = f"The server does not know the host {host[:SHOWN]!r}."
        raise HTTPException(400, f"{message} Name it with --allowed_hosts.")
    origin = headers.get("origin")
    if origin in server.cors_origins or "*" in server.cors_origins:
        return
    is_own = origin in (None, f"http://{host}", f"https://{host}")
    site = headers.get("sec-fetch-site", "none" if is_own else "cross-site")
    if site not in ("same-origin", "none"):
        message = "Only sites in --cors_origins may send requests. A proxy must pass on"
        raise HTTPException(403, f"{message} Host.")


def is_known_host(host: str, server: options.ServerOptions) -> bool:
    """Whether a Host header has a name of this server, or an IP address."""
    with contextlib.suppress(ValueError):
        name = urllib.parse.urlsplit(f"//{host}").hostname or ""
        for known in ("localhost", server.host.lower(), *server.allowed_hosts):
            if fnmatch.fnmatchcase(name, known):
                return True
        ipaddress.ip_address(name)
        return True
    return False


# the body


class Bodies:
    """The bodies that are being received and parsed, bounded one by one and together.
    If they are too long together, those that began first are given up.
    """

    def __init__(self) -> None:
        self._bytes = 0
        # those that have not arrived, by what ends the wait for them
        self._arriving: dict[asyncio.Timeout, bytearray] = {}

    @contextlib.asynccontextmanager
    async def read(
        self,
        request: Request,
        timeout_s: float,
    ) -> AsyncIterator[bytearray]:
        """The body, which counts until the block ends.

        Raises HTTPException 413 if it is longer than MAX_BODY_BYTES, and 408 if it does
        not arrive in time.
        """
        announced = request.headers.get("content-length", "")
        if announced.isdecimal():
            _check_body(int(announced))
        body = bytearray()
        try:
            await self._receive(request, body, timeout_s)
            yield body
        finally:
            self._bytes -= len(body)

    async def _receive(
        self,
        request: Request,
        body: bytearray,
        timeout_s: float,
    ) -> None:
        try:
            async with asyncio.timeout(timeout_s) as deadline:
                self._arriving[deadline] = body
                async for part in request.stream():
                    body += part
                    self._bytes += len(part)
                    _check_body(len(body))
                    self._make_room(body)
        except TimeoutError:
            message = f"A body must arrive within {timeout_s:g} s, sooner under load."
            raise HTTPException(408, message) from None
        finally:
            del self._arriving[deadline]

    def _make_room(self, body: bytearray) -> None:
        excess = self._bytes - options.MAX_BODIES_BYTES
        for deadline, other in self._arriving.items():
            if excess <= 0:
                return
            if other is body:
                raise TimeoutError
            excess -= len(other)
            if not deadline.expired():
                deadline.reschedule(0)


def _check_body(size: int) -> None:
    check_limit("The body of a request", size, options.MAX_BODY_BYTES, "bytes")


def body_of(content: bytearray, request: Request, kind: type[Body]) -> Body:
    """The request in a body, which is JSON or a form, or else in the address. Raises
    HTTPException 400 or 415.
    """
    content_type = request.headers.get("content-type", "")
    kind_of_body, parameters = multipart.parse_options_header(content_type)
    media_type = kind_of_body.decode("latin-1")
    charset = parameters.get(b"charset", b"utf-8").lower().replace(b"-", b"")
    coding = request.headers.get("content-encoding", "identity")
    is_known = not content or media_type in (JSON, FORM, MULTIPART)
    if not is_known or charset != b"utf8" or coding.lower() != "identity":
        message = f"A body must be a form or {JSON}, in UTF-8 and uncompressed."
        received = f"{content_type[:SHOWN]!r}, {coding[:SHOWN]}"
        raise HTTPException(415, f"{message} Received: {received}.")
    body = bytes(content).removeprefix(BYTE_ORDER_MARK)
    try:
        if media_type == JSON:
            return kind.model_validate_json(body)
        fields = form_fields(request.scope["query_string"])
        return kind.model_validate(fields | form_fields(body, content_type))
    except ValidationError as error:
        raise HTTPException(400, _sentence_about(error)) from error


def form_fields(content: bytes, content_type: str = FORM) -> dict[str, str]:
    """The fields of a form or an address. Raises HTTPException 400 if it is not one, or
    has a field twice, of which one would count.
    """
    try:
        if content_type.lower().startswith(MULTIPART):
            pairs = _multipart(content, content_type)
        else:
            pairs = urllib.parse.parse_qsl(
                content.decode().rstrip("\r\n"),  # a file may end its line
                keep_blank_values=True,
                errors="strict",
                max_num_fields=options.MAX_FIELDS,
            )
        fields = dict(pairs)
        if len(fields) < len(pairs):
            raise ValueError
    except ValueError as error:
        most = options.MAX_FIELDS
        message = f"A form or an address must have up to {most} different fields,"
        raise HTTPException(400, f"{message} in UTF-8. Send JSON.") from error
    return fields


def _multipart(content: bytes, content_type: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []

    def add(part: multipart.Field | multipart.File) -> None:
        if isinstance(part, multipart.File) or len(pairs) == options.MAX_FIELDS:
            raise ValueError("a file, or too many fields")
        name = part.field_name or b""
        value = part.value or b""
        pairs.append((name.decode(), value.decode()))

    headers = {"Content-Type": content_type.encode("latin-1")}
    multipart.parse_form(headers, io.BytesIO(content), add, add)
    return pairs


def _sentence_about(error: ValidationError) -> str:
    """A sentence about one of pydantic's errors."""
    # for a text or a list of texts, the error of an entry says most
    errors = error.errors(include_url=False)
    first = max(errors, key=lambda each: len(each["loc"]))
    if first["type"] == "json_invalid":
        return f"The body must be JSON. Received: {first['ctx']['error']}."
    received = json.dumps(first["input"])
    if len(received) > SHOWN:
        received = received[:SHOWN] + "..."
    if not first["loc"]:
        return f"The body must be a JSON object. Received: {received}."
    field, *places = first["loc"]
    if first["type"] == "missing":
        return f"The field {field} is required. It is missing or empty."
    where = str(field)
    for place in places:
        if place not in ("str", "list[str]"):  # the types of q
            where += f"[{place}]"
    needed = first["msg"].removeprefix("Input should be ")
    return f"{where[:SHOWN]} must be {needed}. Received: {received}."
