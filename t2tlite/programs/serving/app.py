"""The web application: its paths."""

from __future__ import annotations

import importlib.resources
from collections.abc import AsyncIterator
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response, StreamingResponse
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware

import t2tlite
from t2tlite.data.language_codes import language_name
from t2tlite.programs.serving import schemas
from t2tlite.programs.serving.attention import (
    Answer,
    attention_work,
    page_answer,
    words_answer,
)
from t2tlite.programs.serving.batching import BatchFunction, Work
from t2tlite.programs.serving.guard import Guard
from t2tlite.programs.serving.languages import detect_each
from t2tlite.programs.serving.models import ServedModel
from t2tlite.programs.serving.options import MAX_ANSWER_BYTES
from t2tlite.programs.serving.requests import (
    FORM,
    JSON,
    MULTIPART,
    RequestError,
    long_answer,
)
from t2tlite.programs.serving.schemas import (
    ErrorResponse,
    StatusResponse,
    TextRequest,
    TranslateRequest,
)
from t2tlite.programs.serving.service import READY, CurrentService, Service
from t2tlite.programs.serving.translate import Translation
from t2tlite.texts import as_list, one_or_all

DESCRIPTION = (
    "Translates and parses with trained runs of t2tlite. LibreTranslate's clients can"
    " use it. Where an API key is needed, it is sent as Authorization: Bearer KEY, or"
    " as the field api_key."
)
ERRORS: dict[int | str, dict[str, Any]] = {
    "4XX": {"model": ErrorResponse, "description": "What the client must change."},
    "5XX": {
        "model": ErrorResponse,
        "description": "The server is loading, draining, full, or too slow for this.",
    },
}

router = APIRouter()


def make_app(service: Service) -> FastAPI:
    """The application of a service."""
    app = FastAPI(
        title="t2t-serve",
        version=t2tlite.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=ERRORS,
        exception_handlers={HTTPException: refuse},
    )
    app.state.service = service
    app.include_router(router)
    app.add_middleware(Guard, service=service, paths=list(app.openapi()["paths"]))
    if service.options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.options.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


async def refuse(request: Request, error: HTTPException) -> Response:
    """Raises the RequestError of an unknown path or method."""
    problem = "There is nothing at this path."
    headers = {}
    if error.status_code == 405:
        methods = (error.headers or {}).get("Allow", "").replace("GET", "GET, HEAD")
        headers["allow"] = methods
        problem = f"This path takes {methods}. Received: {request.method}."
    problem += " The page /docs lists what there is."
    raise RequestError(error.status_code, problem, **headers)


# what computes


def _takes(kind: type[TextRequest]) -> dict[str, Any]:
    """The description of a body, in JSON or as a form, for /openapi.json."""
    media = {"schema": kind.model_json_schema()}
    content = {JSON: media, FORM: media, MULTIPART: media}
    return {"requestBody": {"required": True, "content": content}}


@router.post(
    "/translate",
    openapi_extra=_takes(TranslateRequest),
    response_model=schemas.TranslateResponse,
    response_model_exclude_none=True,
)
async def translate(
    service: CurrentService, request: Request
) -> schemas.TranslateResponse | Response:
    """Translates or parses a text, or each of a list; with `stream` line by line."""
    body = await service.read(request, TranslateRequest)
    translation = await service.in_thread(Translation, service.catalogue, body)
    if body.stream:
        lines = _lines(service, translation)
        if request.scope["http_version"] == "1.0":  # which has no chunks
            whole = b"".join([line async for line in lines])
            return Response(whole, media_type="application/x-ndjson")
        return StreamingResponse(lines, media_type="application/x-ndjson")
    async for _ in translation.compute(service, request):
        pass
    return await service.in_thread(translation.response)


async def _lines(service: Service, translation: Translation) -> AsyncIterator[bytes]:
    """The lines of a stream."""
    yield b'{"segments":%d}\n' % translation.sentences
    size = 0
    try:
        async for segment, outputs in translation.compute(service):
            line = _line(translation.segment(segment, outputs))
            size += len(line)
            if size > MAX_ANSWER_BYTES:
                raise long_answer()
            yield line
        yield _line(await service.in_thread(translation.response))
    except RequestError as error:
        yield _line(ErrorResponse(error=error.message))


def _line(content: schemas.ResponseBody) -> bytes:
    return content.model_dump_json(exclude_none=True).encode() + b"\n"


@router.post("/detect", openapi_extra=_takes(TextRequest))
async def detect_language(
    service: CurrentService, request: Request
) -> list[schemas.Detection] | list[list[schemas.Detection]]:
    """Lists the served languages that a text, or each of a list, may be in, most likely
    first.
    """
    body = await service.read(request, TextRequest)
    candidates = list(service.catalogue.languages())
    detected = await service.in_thread(detect_each, body.texts(), candidates)
    return one_or_all(body.q, detected)


@router.post("/score", openapi_extra=_takes(TranslateRequest))
async def score(service: CurrentService, request: Request) -> schemas.ScoreResponse:
    """Scores the translation of each text as one sentence."""
    body = await service.read(request, TranslateRequest)
    model = service.catalogue.model(body.source, body.target)
    work = await service.in_thread(_scoring, model, body)
    return schemas.ScoreResponse(scores=await service.compute(request, work))


def _scoring(
    model: ServedModel, body: TranslateRequest
) -> Work[tuple[str, str], float]:
    sources = as_list(body.q)
    targets = as_list(body.translation or [])
    if len(sources) != len(targets) or model.makes_trees:
        raise RequestError(
            400,
            "To score, each text needs a translation, and a model that translates."
            f" Received: {len(sources)} texts, {len(targets)} translations,"
            f" {model.source}-{model.target}.",
        )
    tokens = map(max, model.token_counts(sources), model.token_counts(targets, True))
    pairs = list(zip(sources, targets, strict=True))
    return Work(BatchFunction(model.score), pairs, list(tokens))


@router.post(
    "/attention",
    openapi_extra=_takes(TranslateRequest),
    response_model=schemas.AttentionResponse,
)
async def attention_by_words(service: CurrentService, request: Request) -> Response:
    """Says which source words each target word attends to."""
    content = await _attention(service, request, words_answer)
    return Response(content, media_type=JSON)


@router.post(
    "/attention.html",
    openapi_extra=_takes(TranslateRequest),
    response_class=HTMLResponse,
)
async def attention_page(service: CurrentService, request: Request) -> Response:
    """Makes a page to explore the attention of every head of every layer."""
    # POST alone: a page of another site could make a browser send a GET, as an image's
    # address, without a word of where it comes from
    return HTMLResponse(await _attention(service, request, page_answer))


async def _attention(service: Service, request: Request, answer: Answer) -> bytes:
    body = await service.read(request, TranslateRequest)
    model = service.catalogue.model(body.source, body.target)
    work = await service.in_thread(attention_work, model, body, answer)
    [content] = await service.compute(request, work, service.attention_batcher)
    return content


# what is served


@router.get("/languages")
async def languages(service: CurrentService) -> list[schemas.Language]:
    """The languages, and what each can be translated to."""
    served = []
    for code, targets in service.catalogue.languages().items():
        name = language_name(code)
        served.append(schemas.Language(code=code, name=name, targets=targets))
    return served


@router.get("/frontend/settings")
async def frontend_settings(service: CurrentService) -> schemas.Settings:
    """Limits, defaults, and the models served."""
    has_key = bool(service.options.api_key)
    models = []
    for model in service.catalogue.models:
        models.append(
            schemas.ModelDescription(
                source=model.source,
                target=model.target,
                source_name=language_name(model.source),
                target_name=language_name(model.target),
                problem=model.translator.manifest.name,
                step=model.translator.step,
                beam_size=model.options.beam_size,
                alpha=model.options.alpha,
                examples=() if has_key else model.examples,
            )
        )
    source, target = "", ""
    for model in service.catalogue.translators[:1]:
        source, target = model.source, model.target
    return schemas.Settings(
        apiKeys=has_key,
        keyRequired=has_key,
        charLimit=service.options.max_characters,
        language=schemas.Defaults(source=_named(source), target=_named(target)),
        models=models,
    )


def _named(code: str) -> schemas.LanguageName:
    return schemas.LanguageName(code=code, name=language_name(code))


# pages, and what watches the server


@router.get("/", include_in_schema=False)
async def translation_page() -> HTMLResponse:
    """The page to translate and parse."""
    return _page("page.html")


@router.get("/docs", include_in_schema=False)
async def docs_page() -> HTMLResponse:
    """The page that describes the API."""
    return _page("docs.html")


def _page(name: str) -> HTMLResponse:
    folder = importlib.resources.files("t2tlite.programs.serving")
    return HTMLResponse(folder.joinpath(name).read_text(encoding="utf-8"))


@router.get("/health")
async def health() -> StatusResponse:
    """Answers while the process lives."""
    return StatusResponse(status="ok")


@router.get("/ready")
async def ready(service: CurrentService, response: Response) -> StatusResponse:
    """Has status 200 if requests are accepted and every thread that computes lives,
    else 503.
    """
    status = service.shown_status
    response.status_code = 200 if status == READY else 503
    return StatusResponse(status=status)


@router.get("/metrics")
async def metrics(service: CurrentService) -> Response:
    """Counters for Prometheus."""
    body = generate_latest(service.metrics.registry)
    return Response(body, media_type=CONTENT_TYPE_LATEST)
