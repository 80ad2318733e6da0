"""Request bodies: read up to a limit, then parsed outside the event loop, as JSON or as
a form.
"""

from __future__ import annotations

import asyncio
import codecs
import io
import json
import logging
import re
import urllib.parse
from collections.abc import Mapping, Sequence
from typing import TypeVar, cast

from fastapi import Request
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, from_json
from python_multipart import parse_form
from python_multipart.multipart import Field, File
from starlette.requests import ClientDisconnect

from t2tlite.programs.serving.errors import SHOWN, ClientGoneError, RequestError
from t2tlite.programs.serving.schemas import RequestBody

JSON, FORM, MULTIPART = (
    "application/json",
    "application/x-www-form-urlencoded",
    "multipart/form-data",
)
MAX_FIELDS = 1000  # of a form
# Python's codecs of the encodings in which forms are sent. Browsers read ISO-8859-1 as
# Windows-1252, which has letters in place of control characters.
FORM_ENCODINGS = {
    "utf-8": "utf-8",
    "utf8": "utf-8",
    "us-ascii": "utf-8",
    "iso-8859-1": "cp1252",
    "latin1": "cp1252",
    "windows-1252": "cp1252",
}
CHARSET = re.compile(r';\s*charset\s*=\s*"?([^\s;"]+)', re.IGNORECASE)
NOT_A_FORM = (
    "The body must be a form in UTF-8, or JSON with Content-Type: application/json."
)
# what it says of a form is answered; its lines would hold text of clients without a key
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)

Fields = dict[str, object]  # of a form, or of a JSON object
Body = TypeVar("Body", bound=RequestBody)
Content = TypeVar("Content", bound=BaseModel)


def media_type(request: Request) -> str:
    """The media type of the body, without its parameters, in lower case."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


async def read_body(request: Request, max_bytes: int, timeout_s: float) -> bytes:
    """The body; RequestError 413 if it is too long, 408 if it does not come in time,
    499 if the client goes away.
    """
    too_long = RequestError(
        413,
        f"The body of a request must have at most {max_bytes:,} bytes. Send less text.",
    )
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
        raise RequestError(
            408, f"The body of a request must arrive within {timeout_s:g} seconds."
        ) from None
    except ClientDisconnect:
        raise ClientGoneError from None


def json_object(body: bytes) -> Fields:
    """A JSON object with any fields, perhaps behind a byte order mark; RequestError 400
    if the body is not one.
    """
    try:
        content = from_json(body.removeprefix(codecs.BOM_UTF8))
    except ValueError as error:
        raise RequestError(400, f"The body must be JSON. Received: {error}.") from error
    if not isinstance(content, dict):
        raise RequestError(
            400, f"The body must be a JSON object. Received: {_shown(content)}."
        )
    return content


def from_body(body: bytes, kind: type[Body]) -> Body:
    """A request from JSON; RequestError 400 if the body is not JSON, or a field is
    missing, unknown or wrong.
    """
    content = json_object(body)
    # before pydantic, which would make a record of each unknown field
    for name in content:
        if name not in kind.model_fields:
            raise RequestError(
                400,
                f"There is no field {name[:SHOWN]!r}. The page /docs lists the fields.",
            )
    return checked(content, kind)


def checked(fields: Fields, kind: type[Content], absent: str = "missing") -> Content:
    """A request from its fields; RequestError 400 if one is wrong, or is `absent`."""
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        raise RequestError(
            400, sentence_about(error.errors(include_url=False), absent)
        ) from error


def form_fields(body: bytes, content_type: str) -> Fields:
    """The fields of a form; of one that is given several times, a list. RequestError
    400 if it is not a form, 415 if it is in an encoding that the server does not know.
    """
    encoding = _form_encoding(content_type)
    try:
        if content_type.lower().startswith(MULTIPART):
            pairs = _multipart(body, content_type, encoding)
        else:
            pairs = _url_encoded(body, encoding)
    except ValueError as error:
        problem = NOT_A_FORM
        if encoding != "utf-8":
            problem = "The body must be a form in the charset of its Content-Type."
        raise RequestError(400, problem) from error
    return _fields(pairs)


def address_fields(query: bytes) -> Fields:
    """The fields of an address; RequestError 400 if they are not in UTF-8."""
    try:
        return _fields(_url_encoded(query, "utf-8"))
    except ValueError as error:
        raise RequestError(
            400,
            f"The address must have at most {MAX_FIELDS} fields, percent-encoded in"
            " UTF-8.",
        ) from error


def _form_encoding(content_type: str) -> str:
    """Python's codec for a form."""
    parameter = CHARSET.search(content_type)
    charset = parameter[1] if parameter else "utf-8"
    name = charset.lower()
    if name not in FORM_ENCODINGS:
        raise RequestError(
            415,
            "The charset of a form must be UTF-8, ISO-8859-1 or Windows-1252. Received:"
            f" {charset[:SHOWN]!r}.",
        )
    return FORM_ENCODINGS[name]


def _url_encoded(text: bytes, encoding: str) -> list[tuple[str, str]]:
    """The names and values of a form or an address, whose characters may be
    percent-encoded or stand as they are. A line end behind it is the end of the file
    that was sent, and a BOM its beginning.
    """
    return urllib.parse.parse_qsl(
        text.decode(encoding).removeprefix("\ufeff").rstrip("\r\n"),
        keep_blank_values=True,
        encoding=encoding,
        errors="strict",
        max_num_fields=MAX_FIELDS,
    )


def _fields(pairs: list[tuple[str, str]]) -> Fields:
    """The values by name; of a name that is given several times, a list."""
    values_of: dict[str, list[str]] = {}
    for name, value in pairs:
        values_of.setdefault(name, []).append(value)
    return {
        name: values[0] if len(values) == 1 else values
        for name, values in values_of.items()
    }


def _multipart(body: bytes, content_type: str, encoding: str) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []

    def add(name: bytes | None, value: bytes | None) -> None:
        if name is None or len(pairs) == MAX_FIELDS:
            raise ValueError(
                f"A form must have at most {MAX_FIELDS} fields, each with a name."
            )
        pairs.append((name.decode(encoding), (value or b"").decode(encoding)))

    def add_field(field: Field) -> None:
        add(field.field_name, field.value)

    def add_file(file: File) -> None:
        file.file_object.seek(0)
        add(file.field_name, file.file_object.read())

    parse_form(
        {"Content-Type": content_type.encode("latin-1")},
        io.BytesIO(body),
        add_field,
        add_file,
    )
    return pairs


def sentence_about(errors: Sequence[ErrorDetails], absent: str = "missing") -> str:
    """A sentence about the first of pydantic's errors."""
    first, path = errors[0], _path(errors[0])
    if first["type"] == "missing":
        return f"The field {path[0]} is required. It is {absent}."
    # a number of thousands of digits, as text
    too_long = first["type"] == "int_parsing_size"
    needed = (
        "a smaller number"
        if too_long
        else first["msg"].removeprefix("Input should be ")
    )
    alternatives = [error for error in errors if _path(error)[:1] == path[:1]]
    # a text, or a list of texts: what is wrong with the list's entry, if it is one
    if len(alternatives) > 1:
        first = next((error for error in alternatives if len(_path(error)) > 1), first)
        path, needed = (
            _path(first),
            ("a string" if len(_path(first)) > 1 else "a string or a list of strings"),
        )
    where = str(path[0]) + "".join(f"[{part}]" for part in path[1:])
    return f"{where} must be {needed}. Received: {_shown(first['input'])}."


def _path(error: ErrorDetails | Mapping[str, object]) -> list[str | int]:
    """The field that an error is about, and the indices in it."""
    location = cast("tuple[str | int, ...]", error["loc"])
    names = [part for part in location if part != "query"]
    return [str(part) for part in names[:1]] + [
        part for part in names[1:] if isinstance(part, int)
    ]


def _shown(value: object) -> str:
    """A value as JSON, cut."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError):
        text = type(value).__name__
    return text if len(text) <= SHOWN else text[:SHOWN] + "..."
