"""The web application: its endpoints, and what an error looks like."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import t2tlite
from t2tlite.programs.serving import (
    attention_api,
    libretranslate,
    own_api,
    server_paths,
)
from t2tlite.programs.serving.errors import RequestError, error_response
from t2tlite.programs.serving.middleware import Guard
from t2tlite.programs.serving.request_reading import ERRORS
from t2tlite.programs.serving.requests import sentence_about
from t2tlite.programs.serving.service import Service

DESCRIPTION = (
    "Translates and parses with trained runs of t2tlite. Clients of LibreTranslate can"
    " use /translate, /languages, /detect and /frontend/settings; /v1 is t2tlite's own"
    " API. Where an API key is needed, it is sent as Authorization: Bearer KEY, or to"
    " LibreTranslate's paths as the field api_key."
)
NO_SUCH_PATH = "There is nothing at this path."


def make_app(service: Service) -> FastAPI:
    """The application of a service."""
    app = FastAPI(
        title="t2t-serve",
        version=t2tlite.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
        exception_handlers=dict.fromkeys(
            (RequestError, RequestValidationError, HTTPException), answer_error
        ),
    )
    app.state.service = service
    for part in (own_api, attention_api, libretranslate, server_paths):
        app.include_router(part.router)
    app.add_middleware(Guard, service=service, paths=list(app.openapi()["paths"]))
    if service.options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.options.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


async def answer_error(request: Request, error: Exception) -> Response:
    """The response to a refused request, to missing or wrong parameters, and to an
    unknown path or method.
    """
    return error_response(_as_request_error(request, error))


def _as_request_error(request: Request, error: Exception) -> RequestError:
    if isinstance(error, RequestError):
        return error
    if isinstance(error, RequestValidationError):
        return RequestError(400, sentence_about(error.errors()))
    if not isinstance(error, HTTPException):
        raise error
    problem = error.detail
    if error.status_code == 404:
        problem = NO_SUCH_PATH
    elif error.status_code == 405:
        methods = (error.headers or {}).get("Allow", "another method")
        problem = f"This path takes {methods}. Received: {request.method}."
    advice = "The page /docs lists what there is."
    return RequestError(error.status_code, f"{problem} {advice}")
