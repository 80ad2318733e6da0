"""The web application: its paths."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

import prometheus_client
from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect
from starlette.types import (
    ASGIApp,
    Message,
    Receive,
    Scope,
    Send,
)

import t2tlite
from t2tlite.console import log
from t2tlite.data.language_codes import language_name
from t2tlite.programs.serving import attention, requests, schemas
from t2tlite.programs.serving.detection import detect_each
from t2tlite.programs.serving.models import Catalogue
from t2tlite.programs.serving.service import (
    READY,
    ServerMetrics,
    Service,
    ServiceFor,
)
from t2tlite.programs.serving.translate import Translation
from t2tlite.programs.templates import package_text
from t2tlite.texts import one_or_all

CLIENT_GONE = 499  # in metrics; nobody receives it

router = APIRouter()


def make_app(service: Service) -> FastAPI:
    """The application of a service."""
    app = FastAPI(
        title="t2t-serve",
        version=t2tlite.__version__,
        description="Translates and parses. LibreTranslate's clients can use it.",
        docs_url=None,
        redoc_url=None,
        # a redirect would leave the path and the TLS of a proxy, with the API key
        redirect_slashes=False,
        responses={"default": {"model": schemas.ErrorResponse}},
        exception_handlers={HTTPException: answer_error},
    )
    app.state.service = service
    app.include_router(router)
    app.add_middleware(
        Watch,
        metrics=service.metrics,
        is_logging=service.options.access_log,
    )
    if service.options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=service.options.cors_origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


async def answer_error(request: Request, error: HTTPException) -> Response:
    """The response of an error, also of an unknown path or method."""
    if error.status_code in (404, 405):
        message = f"{error.detail}. The page /docs lists what there is."
        error = HTTPException(error.status_code, message, error.headers)
    return requests.error_response(error)


class Watch:
    """An ASGI application around another, which answers HEAD as GET: uvicorn leaves out
    the body.
    """

    def __init__(self, app: ASGIApp, metrics: ServerMetrics, is_logging: bool) -> None:
        self._app = app
        self._metrics = metrics
        self._is_logging = is_logging

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        started = time.monotonic()
        # which cancels the task if the client goes away
        scope["state"]["connection"].task = asyncio.current_task()
        status = CLIENT_GONE
        method = scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET"}

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self._metrics.active += 1
        try:
            await self._app(scope, receive, observed)
        except (asyncio.CancelledError, ClientDisconnect):
            return
        except Exception as error:
            failure = requests.failure(error)
            if status == CLIENT_GONE:
                await requests.error_response(failure)(scope, receive, observed)
            else:  # uvicorn cuts off a response that is not complete
                status = 500
        finally:
            self._metrics.active -= 1
            path = scope["path"] if "endpoint" in scope else "other"
            seconds = time.monotonic() - started
            self._metrics.requests.labels(path, method, str(status)).inc()
            self._metrics.latency.labels(path).observe(seconds)
            if self._is_logging:
                record = {
                    "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
                    "method": method,
                    "path": path,
                    "status": status,
                    "milliseconds": round(1000 * seconds, 1),
                }
                log(json.dumps(record))


# what computes


def _takes(kind: type[schemas.TextRequest]) -> dict[str, Any]:
    """The description of a body, in JSON or as a form, for /openapi.json."""
    media_types = (requests.JSON, requests.FORM, requests.MULTIPART)
    media = {"schema": kind.model_json_schema()}
    content = {media_type: media for media_type in media_types}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/translate",
    openapi_extra=_takes(schemas.TranslateRequest),
    response_model=schemas.TranslateResponse,
)
async def translate(service: ServiceFor, request: Request) -> Response:
    """Translates or parses a text, or each of a list; with `stream` line by line."""
    translation = await service.read(request, schemas.TranslateRequest, Translation)
    if translation.body.stream:
        lines = _lines(service, translation)
        return StreamingResponse(lines, media_type="application/x-ndjson")
    async for _ in translation.compute(service):
        pass
    content = await asyncio.to_thread(translation.answer)
    return Response(content, media_type=requests.JSON)


async def _lines(service: Service, translation: Translation) -> AsyncIterator[bytes]:
    """The lines of a stream."""
    yield b'{"segments":%d}\n' % translation.sentences
    try:
        async for segment, outputs in translation.compute(service):
            line = translation.segment(segment, outputs)
            yield requests.as_json(line) + b"\n"
        yield await asyncio.to_thread(translation.answer) + b"\n"
    except HTTPException as error:
        yield bytes(requests.error_response(error).body) + b"\n"


@router.post("/detect", openapi_extra=_takes(schemas.TextRequest))
async def detect_language(service: ServiceFor, request: Request) -> schemas.Detections:
    """Lists the served languages that a text, or each of a list, may be in, most likely
    first.
    """
    return await service.read(request, schemas.TextRequest, _detected)


def _detected(body: schemas.TextRequest, catalogue: Catalogue) -> schemas.Detections:
    detected = detect_each(body.texts(), list(catalogue.languages()))
    return one_or_all(body.q, detected)


@router.post(
    "/attention",
    openapi_extra=_takes(schemas.TranslateRequest),
    response_model=schemas.AttentionResponse,
)
async def attention_by_words(service: ServiceFor, request: Request) -> Response:
    """Says which source words each target word attends to."""
    answer = attention.words_answer
    content = await _attention(service, request, answer)
    return Response(content, media_type=requests.JSON)


@router.post(
    "/attention.html",
    openapi_extra=_takes(schemas.TranslateRequest),
    response_class=HTMLResponse,
)
async def attention_page(service: ServiceFor, request: Request) -> Response:
    """Makes a page to explore the attention of every head of every layer."""
    # POST alone: a page of another site could make a browser send a GET, as an image's
    # address, without a word of where it comes from
    answer = attention.page_answer
    return HTMLResponse(await _attention(service, request, answer))


async def _attention(
    service: Service,
    request: Request,
    answer: attention.Answer,
) -> bytes:
    work = await service.read(
        request,
        schemas.TranslateRequest,
        lambda body, catalogue: attention.attention_work(body, catalogue, answer),
    )
    results = service.stream(work, service.attention_batcher)
    [content] = [content async for content in results]
    return content


# what is served


@router.get("/languages")
async def languages(service: ServiceFor) -> list[schemas.Language]:
    """The languages, and what each can be translated to."""
    served = []
    for code, targets in service.catalogue.languages().items():
        language = schemas.Language(
            code=code,
            name=language_name(code),
            targets=targets,
        )
        served.append(language)
    return served


@router.get("/frontend/settings")
async def frontend_settings(service: ServiceFor) -> schemas.Settings:
    """Limits, and the models served."""
    has_key = bool(service.api_key)
    models = []
    for model in service.catalogue.models:
        description = schemas.ModelDescription(
            source=model.source,
            target=model.target,
            problem=model.translator.manifest.name,
            step=model.translator.step,
            beam_size=model.options.beam_size,
            alpha=model.options.alpha,
            examples=() if has_key else model.examples,
        )
        models.append(description)
    limit = service.options.max_characters
    return schemas.Settings(keyRequired=has_key, charLimit=limit, models=models)


# pages, and what watches the server: without a model, for everybody


@router.get("/", include_in_schema=False, response_class=HTMLResponse)
async def translation_page() -> str:
    """The page to translate and parse."""
    return package_text("programs/serving/page.html")


@router.get("/docs", include_in_schema=False, response_class=HTMLResponse)
async def docs_page() -> str:
    """The page that describes the API."""
    return package_text("programs/serving/docs.html")


@router.get("/health")
async def health() -> schemas.StatusResponse:
    """Answers while the process lives."""
    return schemas.StatusResponse(status="ok")


@router.get("/ready")
async def ready(request: Request, response: Response) -> schemas.StatusResponse:
    """Has status 200 if requests are accepted, else 503."""
    status = request.app.state.service.status
    response.status_code = 200 if status == READY else 503
    return schemas.StatusResponse(status=status)


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Counters for Prometheus."""
    registry = request.app.state.service.metrics.registry
    body = prometheus_client.generate_latest(registry)
    return Response(body, media_type=prometheus_client.CONTENT_TYPE_LATEST)
