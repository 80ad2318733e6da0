"""Request bodies: read up to a limit, as JSON or a form, and checked against a dataclass of schemas.py."""

from __future__ import annotations

import asyncio
import email.parser
import email.policy
import functools
import json
import urllib.parse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from t2tlite.programs.serving.errors import RequestError

if TYPE_CHECKING:
    from fastapi import Request
    from pydantic import TypeAdapter

FORM, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MAX_FIELDS = 1000  # of a form
SHOWN = 80  # characters of a value in a message


async def read_body(request: Request, max_bytes: int, timeout_s: float) -> bytes:
    """The body; RequestError 413 if it is longer than the limit, 408 if it does not come in time."""
    too_long = RequestError(413, f"The body of a request must have at most {max_bytes:,} bytes. Send less text.")
    announced = request.headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > max_bytes:
        raise too_long

    async def read() -> bytes:
        parts, size = [], 0
        async for part in request.stream():
            size += len(part)
            if size > max_bytes:
                raise too_long
            parts.append(part)
        return b"".join(parts)

    try:
        return await asyncio.wait_for(read(), timeout_s)
    except asyncio.TimeoutError:
        raise RequestError(408, f"The body of a request must arrive within {timeout_s:g} seconds.") from None


@functools.cache
def adapter(kind: Any) -> TypeAdapter[Any]:
    """pydantic's checker of a dataclass."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


def from_json(body: bytes, kind: Any) -> Any:
    """A dataclass from JSON; RequestError 400 if the body is not JSON, or a field is missing or wrong."""
    from pydantic import ValidationError

    try:
        return adapter(kind).validate_json(body, strict=True)
    except ValidationError as error:
        raise RequestError(400, sentence_about(error.errors(include_url=False))) from error


def json_object(body: bytes) -> dict[str, Any]:
    """A JSON object with any fields; RequestError 400 if the body is not one."""
    return from_json(body, dict[str, Any])


def form_fields(body: bytes, content_type: str) -> dict[str, Any]:
    """The fields of a form; of one that is given several times, a list. RequestError 400 if it is not a form."""
    try:
        if content_type.lower().startswith(MULTIPART):
            pairs = _multipart(body, content_type)
        else:
            text = body.decode("ascii", "strict")
            pairs = urllib.parse.parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError as error:
        raise RequestError(400, "The body must be a form in UTF-8, or JSON with Content-Type: application/json.") from (
            error
        )
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            earlier = found[name] if isinstance(found[name], list) else [found[name]]
            found[name] = [*earlier, value]
        else:
            found[name] = value
    return found


def _multipart(body: bytes, content_type: str) -> list[tuple[str, str]]:
    head = b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    message = email.parser.BytesParser(policy=email.policy.HTTP).parsebytes(head + body)
    if not message.is_multipart() or message.defects:
        raise ValueError("not multipart")
    pairs = []
    for part in message.iter_parts():
        name = part.get_param("name", header="content-disposition")
        payload = part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(payload, bytes):
            raise ValueError("a part without a name")
        pairs.append((name, payload.decode("utf-8")))
    return pairs


def sentence_about(errors: Sequence[Any]) -> str:
    """A sentence about the first of pydantic's errors."""
    first, path = errors[0], _path(errors[0])
    if first["type"] == "json_invalid":
        return f"The body must be JSON. Received: {first['ctx']['error']}."
    if not path:
        return f"The body must be a JSON object. Received: {_shown(first['input'])}."
    if first["type"] == "missing":
        return f"The field {path[0]} is required. It is missing."
    if first["type"] == "unexpected_keyword_argument":
        return f"There is no field {path[0][:SHOWN]!r}. The page /docs lists the fields."
    needed = first["msg"].removeprefix("Input should be ")
    alternatives = [error for error in errors if _path(error)[:1] == path[:1]]
    if len(alternatives) > 1:  # a text, or a list of texts: what is wrong with the list's entry, if it is one
        first = next((error for error in alternatives if len(_path(error)) > 1), first)
        path, needed = _path(first), "a string" if len(_path(first)) > 1 else "a string or a list of strings"
    where = path[0] + "".join(f"[{part}]" for part in path[1:])
    return f"{where} must be {needed}. Received: {_shown(first['input'])}."


def _path(error: Any) -> list[Any]:
    """The field that an error is about, and the indices in it."""
    names = [part for part in error["loc"] if part != "query"]
    return [str(part) for part in names[:1]] + [part for part in names[1:] if isinstance(part, int)]


def _shown(value: Any) -> str:
    """A value as JSON, cut."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
