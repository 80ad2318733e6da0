"""What the server reads and refuses: the body of a request, as JSON or as a form, and
the answer to an error, which is raised as Starlette's HTTPException.

A body is read up to a limit. It is parsed outside the event loop, since that takes
milliseconds.
"""

import asyncio
import contextlib
import gzip
import io
import json
import logging
import traceback
import urllib.parse
import zlib
from collections.abc import AsyncIterator
from typing import TypeVar

from fastapi import Request
from fastapi.responses import Response
from pydantic import BaseModel, ValidationError
from pydantic_core import from_json
from python_multipart import parse_form
from python_multipart.multipart import Field, File, parse_options_header
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from t2tlite.programs.serving.options import (
    MAX_ANSWER_BYTES,
    MAX_BODIES_BYTES,
    MAX_BODY_BYTES,
)
from t2tlite.programs.serving.schemas import ErrorResponse, TextRequest

JSON = "application/json"
FORM = "application/x-www-form-urlencoded"
MULTIPART = "multipart/form-data"
MAX_FIELDS = 1000  # of a form
# Python's codecs for the charsets of bodies. Browsers read ISO-8859-1 as Windows-1252,
# which has letters in place of control characters.
CODECS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "iso-8859-1": "cp1252",
    "windows-1252": "cp1252",
}
SHOWN = 80  # characters of a client's value in a message
MAX_CAUSES = 8  # of an error that are logged
CLIENT_GONE = 499  # status in metrics; nobody receives it

logger = logging.getLogger("t2tlite.programs.serving")
# The client gets an answer to a malformed form. The parser's log lines would hold text
# of clients without a key.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

Fields = dict[str, object]  # of a form, or of a JSON object
Body = TypeVar("Body", bound=TextRequest)


def error_response(error: HTTPException) -> Response:
    """The response of an error."""
    content = ErrorResponse(error=error.detail).model_dump_json()
    return Response(content, error.status_code, error.headers, JSON)


def client_gone() -> HTTPException:
    """The error of a request whose client has closed the connection."""
    return HTTPException(CLIENT_GONE, "The client closed the connection.")


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
        raise HTTPException(
            status,
            f"{subject} must have at most {limit:,} {unit}. Received: {size:,}."
            f" {advice}",
        )


def as_json(content: BaseModel, sent_bytes: int = 0) -> bytes:
    """An answer, or a part of it behind so many bytes. Raises HTTPException 413 if that
    makes it too long.
    """
    encoded = content.model_dump_json(exclude_none=True).encode()
    size = sent_bytes + len(encoded)
    advice = "Send less text."
    check_limit("The answer to a request", size, MAX_ANSWER_BYTES, "bytes", advice)
    return encoded


def log_failure(error: BaseException) -> None:
    """Logs an error of the server, its causes, and where they were raised.

    A message may hold a client's text, which must not reach the log as it is: the
    message is cut, and escaped so that it stays on its line.
    """
    lines = ["A request failed."]
    cause: BaseException | None = error
    while cause is not None and len(lines) <= MAX_CAUSES:
        frames = "".join(traceback.format_tb(cause.__traceback__))
        message = ascii(str(cause)[:SHOWN])
        lines.append(
            f"Traceback (most recent call last):\n{frames}"
            f"{type(cause).__name__}: {message}"
        )
        cause = cause.__cause__ or cause.__context__
    logger.error("%s", "\n".join(lines))


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
        self, request: Request, timeout_s: float
    ) -> AsyncIterator[bytearray]:
        """The body, which counts until the block ends.

        Raises HTTPException 413 if it is longer than MAX_BODY_BYTES, 408 if it does not
        arrive in time, and 499 if the client goes away.
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
        self, request: Request, body: bytearray, timeout_s: float
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
            raise HTTPException(
                408,
                f"The body of a request must arrive within {timeout_s:g} seconds, or"
                " sooner while the server receives many others.",
            ) from None
        except ClientDisconnect:
            raise client_gone() from None
        finally:
            del self._arriving[deadline]

    def _make_room(self, body: bytearray) -> None:
        excess = self._bytes - MAX_BODIES_BYTES
        for deadline, other in self._arriving.items():
            if excess <= 0:
                return
            if other is body:
                raise TimeoutError
            excess -= len(other)
            if not deadline.expired():
                deadline.reschedule(0)


def _check_body(size: int) -> None:
    check_limit("The body of a request", size, MAX_BODY_BYTES, "bytes")


def fields_of(body: bytearray, request: Request) -> Fields:
    """The fields of a body, as JSON or a form, and of the address. Raises HTTPException
    400, 413 or 415.
    """
    fields = form_fields(request.scope["query_string"])
    content = _decompressed(body, request.headers.get("content-encoding", "identity"))
    content_type = request.headers.get("content-type", "")
    media_type = content_type.partition(";")[0].strip().lower()
    if media_type == JSON:
        return fields | json_object(content, content_type)
    if media_type in (FORM, MULTIPART):
        return fields | form_fields(content, content_type)
    if content:
        raise HTTPException(
            415,
            f"The body must be JSON, with Content-Type: {JSON}, or a form. Received:"
            f" {media_type[:SHOWN] or 'none'}.",
        )
    return fields


def _decompressed(body: bytearray, coding: str) -> bytes:
    if coding.lower() == "identity":
        return bytes(body)
    if coding.lower() not in ("gzip", "x-gzip"):
        raise HTTPException(
            415,
            "The Content-Encoding of a body must be gzip, or absent. Received:"
            f" {coding[:SHOWN]!r}.",
            {"Accept-Encoding": "gzip"},
        )
    try:
        with gzip.open(io.BytesIO(body)) as file:
            content = file.read(MAX_BODY_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise HTTPException(
            400,
            f"The body must be gzip, as its Content-Encoding says. Received: {error}.",
        ) from error
    _check_body(len(content))
    return content


def json_object(body: bytes, content_type: str = JSON) -> Fields:
    """The fields of a JSON object. Raises HTTPException 400 if the body is not one, and
    415 if the server does not know its charset.
    """
    try:
        content = from_json(_text(body, content_type))
    except ValueError as error:
        message = f"The body must be JSON. Received: {error}."
        raise HTTPException(400, message) from error
    if not isinstance(content, dict):
        raise HTTPException(
            400, f"The body must be a JSON object. Received: {_shown(content)}."
        )
    return content


def form_fields(content: bytes, content_type: str = FORM) -> Fields:
    """The fields of a form or an address.

    Raises HTTPException 400 if the content is not a form, and 415 if the server does
    not know its charset.
    """
    try:
        if content_type.lower().startswith(MULTIPART):
            pairs = _multipart(content, content_type)
        else:
            # a file that is sent may end its line
            pairs = urllib.parse.parse_qsl(
                _text(content, content_type).rstrip("\r\n"),
                keep_blank_values=True,
                encoding=_codec(content_type),
                errors="strict",
                max_num_fields=MAX_FIELDS,
            )
    except ValueError as error:
        raise HTTPException(
            400,
            f"A form or an address must have at most {MAX_FIELDS} fields, in UTF-8 or"
            " the charset of its Content-Type. Received: another. Send the fields as"
            f" JSON, with Content-Type: {JSON}.",
        ) from error
    return dict(pairs)


def _multipart(body: bytes, content_type: str) -> list[tuple[str, str]]:
    codec = _codec(content_type)
    pairs: list[tuple[str, str]] = []

    def add(part: Field | File) -> None:
        if part.field_name is None or len(pairs) == MAX_FIELDS:
            raise ValueError("too many parts, or one without a name")
        if isinstance(part, File):
            part.file_object.seek(0)
            value = part.file_object.read()
        else:
            value = part.value or b""
        pairs.append((part.field_name.decode(codec), value.decode(codec)))

    headers = {"Content-Type": content_type.encode("latin-1")}
    parse_form(headers, io.BytesIO(body), add, add)
    return pairs


def _text(content: bytes, content_type: str) -> str:
    """The text of a body, without a byte order mark."""
    return content.decode(_codec(content_type)).removeprefix("\ufeff")


def _codec(content_type: str) -> str:
    """Python's codec for a body of this type."""
    charset = "utf-8"
    if ";" in content_type:
        _, parameters = parse_options_header(content_type)
        charset = parameters.get(b"charset", b"utf-8").decode("latin-1")
    codec = CODECS.get(charset.lower())
    if codec is None:
        raise HTTPException(
            415,
            "The charset of a body must be UTF-8, ISO-8859-1 or Windows-1252. Received:"
            f" {charset[:SHOWN]!r}.",
        )
    return codec


def checked(fields: Fields, kind: type[Body]) -> Body:
    """A request from its fields, of which empty ones count as missing. Raises
    HTTPException 400 if one is wrong.
    """
    filled = {}
    for name, value in fields.items():
        if value not in (None, "", []):
            filled[name] = value
    try:
        return kind.model_validate(filled)
    except ValidationError as error:
        raise HTTPException(400, _sentence_about(error)) from error


def _sentence_about(error: ValidationError) -> str:
    """A sentence about one of pydantic's errors."""
    # for a text or a list of texts, the error of an entry says most
    errors = error.errors(include_url=False)
    first = max(errors, key=lambda each: len(each["loc"]))
    field, *places = first["loc"]
    if first["type"] == "missing":
        return f"The field {field} is required. It is missing or empty."
    indices = [f"[{place}]" for place in places if isinstance(place, int)]
    needed = first["msg"].removeprefix("Input should be ")
    where = "".join([str(field), *indices])
    return f"{where} must be {needed}. Received: {_shown(first['input'])}."


def _shown(value: object) -> str:
    """A value as JSON, cut."""
    text = json.dumps(value)
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
