"""What the endpoints share: how a request is checked and read, and how bodies and
errors are described.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fastapi import Request
from pydantic import BaseModel

from t2tlite.programs.serving import requests as bodies
from t2tlite.programs.serving.errors import SHOWN, RequestError
from t2tlite.programs.serving.options import MAX_BODY_BYTES
from t2tlite.programs.serving.requests import Body, Content
from t2tlite.programs.serving.schemas import ErrorResponse
from t2tlite.programs.serving.service import Service

ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": ErrorResponse, "description": text}
    for status, text in {
        400: "A bad request, no API key, or a host that the server does not know.",
        403: "A wrong API key, or a request from another site's page.",
        413: "Too much text.",
        415: "A body that is neither JSON nor, where forms are taken, a form.",
        503: (
            "The server is loading, draining, or has too many requests; Retry-After"
            " says when to try again."
        ),
        504: "The request took too long.",
    }.items()
}


def key_of(request: Request) -> bytes | None:
    """The API key of the header, `Bearer KEY` or KEY alone, or of the address; in
    UTF-8.
    """
    first, _, rest = request.headers.get("authorization", "").partition(" ")
    header = rest.strip() or first
    if header:
        return header.encode("latin-1")  # as which the bytes of a header are read
    return request.query_params.get("api_key", "").encode()


async def read_json(service: Service, request: Request, kind: type[Body]) -> Body:
    """The request in JSON, after the API key is checked; raises RequestError."""
    service.check_key(key_of(request))
    if bodies.media_type(request) != bodies.JSON:
        raise RequestError(
            415,
            f"The body must be JSON, with Content-Type: {bodies.JSON}. Received:"
            f" {_type_of(request)}. With curl, send it by --json.",
        )
    body = await bodies.read_body(request, MAX_BODY_BYTES, service.options.timeout_s)
    return await service.in_thread(bodies.from_body, body, kind)


async def read_fields(
    service: Service, request: Request, kind: type[Content]
) -> Content:
    """The request in JSON, a form, or the address, as LibreTranslate's clients send it;
    raises RequestError.

    An API key outside the body is checked before the body is read. Empty fields count
    as missing.
    """
    key = key_of(request)
    if key:
        service.check_key(key)
    media_type = bodies.media_type(request)
    body = await bodies.read_body(request, MAX_BODY_BYTES, service.options.timeout_s)
    fields = bodies.address_fields(request.scope["query_string"])
    if media_type == bodies.JSON:
        fields = await service.in_thread(bodies.json_object, body)
    elif media_type in (bodies.FORM, bodies.MULTIPART):
        fields |= await service.in_thread(
            bodies.form_fields, body, request.headers["content-type"]
        )
    elif body:
        raise RequestError(
            415,
            f"The body must be JSON, with Content-Type: {bodies.JSON}, or a form."
            f" Received: {_type_of(request)}. Name the type that it has.",
        )
    if not key:
        api_key = fields.get("api_key")
        service.check_key(
            api_key.encode("utf-8", "replace") if isinstance(api_key, str) else None
        )
    filled = {name: value for name, value in fields.items() if value}
    return await service.in_thread(bodies.checked, filled, kind, "missing or empty")


def _type_of(request: Request) -> str:
    """The media type of a body, as messages show it."""
    return bodies.media_type(request)[:SHOWN] or "none"


def takes(kind: type[BaseModel], form: bool = False) -> dict[str, Any]:
    """The description of a request's body, for /openapi.json."""
    description: Mapping[str, Any] = {"schema": kind.model_json_schema()}
    types = [bodies.JSON, *([bodies.FORM, bodies.MULTIPART] if form else [])]
    return {
        "requestBody": {"required": True, "content": dict.fromkeys(types, description)}
    }
