"""The web application: which path is answered by what. FastAPI is imported when an application is made."""

# Without `from __future__ import annotations`: FastAPI evaluates annotations, and these names are local to a function.

import importlib.resources
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import t2tlite
from t2tlite.programs.serving import bodies, libretranslate, own_api, schemas
from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.middleware import Observed
from t2tlite.programs.serving.service import READY, Service

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

DESCRIPTION = (
    "Translates and parses with trained runs of t2tlite. Clients of LibreTranslate can use /translate, /languages, "
    "/detect and /frontend/settings; /v1 is t2tlite's own API. Where an API key is needed, it is sent as "
    "Authorization: Bearer KEY, or to LibreTranslate's paths as the field api_key."
)
ERRORS = {
    400: "A bad request, or no API key.",
    403: "A wrong API key.",
    413: "Too much text.",
    503: "The server is loading, draining, or has too many requests; Retry-After says when to try again.",
    504: "The request took too long.",
}
OWN, LIBRE, SERVER = "t2tlite", "LibreTranslate", "Server"  # the parts of /docs


def make_app(service: Service) -> "FastAPI":
    """The application of a service."""
    from fastapi import FastAPI
    from starlette.middleware.cors import CORSMiddleware

    app = FastAPI(
        title="t2t-serve", version=t2tlite.__version__, description=DESCRIPTION, docs_url=None, redoc_url=None,
        responses={status: {"model": schemas.ErrorResponse, "description": text} for status, text in ERRORS.items()},
    )  # fmt: skip
    _handle_errors(app)
    _add_own_api(app, service)
    _add_libretranslate(app, service)
    _add_server_paths(app, service)
    paths = [str(getattr(route, "path", "")) for route in app.routes]
    app.add_middleware(Observed, service=service, paths=paths, answer=_answer_error)
    if service.options.cors_origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(service.options.cors_origins),
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type"],
        )
    return app


def _handle_errors(app: "FastAPI") -> None:
    """Lets every error be {"error": "A sentence."}, without a traceback or a path."""
    from fastapi import Request
    from fastapi.exceptions import RequestValidationError
    from fastapi.responses import Response
    from starlette.exceptions import HTTPException

    @app.exception_handler(RequestError)
    async def refused(request: Request, error: RequestError) -> Response:
        return _answer_error(error)

    @app.exception_handler(RequestValidationError)
    async def bad_query(request: Request, error: RequestValidationError) -> Response:
        return _answer({"error": bodies.sentence_about(error.errors())}, 400)

    @app.exception_handler(HTTPException)
    async def not_found(request: Request, error: HTTPException) -> Response:
        what = {404: "There is nothing at this path.", 405: "This path does not take this method."}
        return _answer(
            {"error": f"{what.get(error.status_code, error.detail)} The page /docs lists what there is."},
            error.status_code,
        )

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:  # the server logs the exception
        return _answer({"error": "The server could not answer this request; its log says why."}, 500)


def _add_own_api(app: "FastAPI", service: Service) -> None:
    """Adds /v1."""
    from fastapi import Request
    from fastapi.responses import HTMLResponse, Response, StreamingResponse

    async def asked_of(request: Request, kind: Any) -> Any:
        body = await bodies.read_body(request, service.options.max_body_bytes, service.options.timeout_s)
        service.check_key(_key_of(request))
        return bodies.from_json(body, kind)

    def add(path: str, kind: Any, response: Any, work: Callable[..., Awaitable[Any]], summary: str) -> None:
        """Adds a path that takes and gives JSON."""

        async def endpoint(request: Request) -> Response:
            return _answer(await work(service, request, await asked_of(request, kind)))

        app.post(path, response_model=response, openapi_extra=_takes(kind), summary=summary, tags=[OWN])(endpoint)

    @app.get("/v1/models", response_model=schemas.ModelsResponse, summary="The models served", tags=[OWN])
    async def models() -> Response:
        return _answer(own_api.models(service, service.catalogue))

    @app.post(
        "/v1/translate", response_model=schemas.TranslateResponse, openapi_extra=_takes(schemas.TranslateRequest),
        summary="Translate texts, with n-best lists and scores, or as a stream", tags=[OWN],
    )  # fmt: skip
    async def translate(request: Request) -> Response:
        asked = await asked_of(request, schemas.TranslateRequest)
        if not asked.stream:
            return _answer(await own_api.translate(service, request, asked))
        lines = own_api.translate_lines(service, own_api.translating(service, asked))
        return StreamingResponse(lines, media_type="application/x-ndjson")

    add("/v1/score", schemas.ScoreRequest, schemas.ScoreResponse, own_api.score, "Log-probabilities of translations")
    add("/v1/parse", schemas.ParseRequest, schemas.ParseResponse, own_api.parse, "Parse sentences")
    add(
        "/v1/attention", schemas.AttentionRequest, schemas.AttentionResponse, own_api.attention_by_words,
        "Which source words each target word attends to",
    )  # fmt: skip

    @app.get(
        "/v1/attention.html", response_class=HTMLResponse, tags=[OWN],
        summary="A page to explore the attention of every head of every layer",
    )  # fmt: skip
    async def attention_page(
        request: Request, q: str, translation: str | None = None, source: str | None = None, target: str | None = None
    ) -> Response:
        from t2tlite.programs.visualise.attention_page import page

        service.check_key(_key_of(request))
        asked = schemas.AttentionRequest(q=q, translation=translation, source=source, target=target)
        return HTMLResponse(page((await own_api.attention(service, request, asked))[0]))


def _add_libretranslate(app: "FastAPI", service: Service) -> None:
    """Adds LibreTranslate's paths."""
    from fastapi import Request
    from fastapi.responses import Response

    async def fields_of(request: Request) -> dict[str, Any]:
        body = await bodies.read_body(request, service.options.max_body_bytes, service.options.timeout_s)
        content_type = request.headers.get("content-type", "")
        if "json" in content_type.lower():
            fields = bodies.json_object(body)
        else:
            fields = {**request.query_params, **bodies.form_fields(body, content_type)}
        key = fields.get("api_key") or _key_of(request)
        service.check_key(key if isinstance(key, str) else None)
        return fields

    @app.post(
        "/translate", response_model=schemas.LibreTranslateResponse, summary="Translate a text or texts",
        openapi_extra=_takes(schemas.LibreTranslateRequest, form=True), tags=[LIBRE],
    )  # fmt: skip
    async def translate(request: Request) -> Response:
        return _answer(await libretranslate.translate(service, request, await fields_of(request)))

    @app.post(
        "/detect", response_model=list[schemas.LibreDetection], summary="Detect the language of a text",
        openapi_extra=_takes(schemas.LibreDetectRequest, form=True), tags=[LIBRE],
    )  # fmt: skip
    async def detect(request: Request) -> Response:
        return _answer(libretranslate.detect_language(service, await fields_of(request)))

    @app.get("/languages", response_model=list[schemas.LibreLanguage], summary="The languages served", tags=[LIBRE])
    async def languages() -> Response:
        return _answer(libretranslate.languages(service.catalogue))

    @app.get("/frontend/settings", summary="Limits and defaults", tags=[LIBRE])
    async def settings() -> Response:
        return _answer(libretranslate.settings(service, service.catalogue))


def _add_server_paths(app: "FastAPI", service: Service) -> None:
    """Adds the pages and what watches the server."""
    from fastapi.responses import HTMLResponse, Response

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return HTMLResponse(_page("page.html"))

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return HTMLResponse(_page("docs.html"))

    @app.get("/health", response_model=schemas.StatusResponse, summary="Whether the process lives", tags=[SERVER])
    async def health() -> Response:
        return _answer({"status": "ok"})

    @app.get("/ready", response_model=schemas.StatusResponse, summary="Whether requests are accepted", tags=[SERVER])
    async def ready() -> Response:
        return _answer({"status": service.status}, 200 if service.status == READY else 503)

    @app.get("/metrics", summary="Counters for Prometheus", tags=[SERVER])
    async def metrics() -> Response:
        body, content_type = service.metrics.text()
        return Response(body, media_type=content_type)


def _answer(content: Any, status: int = 200, retry_after_s: int | None = None) -> Any:
    """A response in JSON."""
    from fastapi.responses import Response

    body = json.dumps(content, ensure_ascii=False, allow_nan=False).encode("utf-8", "replace")
    headers = {} if retry_after_s is None else {"Retry-After": str(retry_after_s)}
    return Response(body, status, headers, "application/json")


def _answer_error(error: RequestError) -> Any:
    return _answer({"error": error.message}, error.status, error.retry_after_s)


def _key_of(request: "Request") -> str | None:
    """The API key of the header, `Bearer KEY` or KEY alone, or of the address."""
    first, _, rest = request.headers.get("authorization", "").partition(" ")
    return rest.strip() or first or request.query_params.get("api_key")


def _takes(kind: Any, form: bool = False) -> dict[str, Any]:
    """The description of a request's body."""
    description = {"schema": bodies.adapter(kind).json_schema()}
    types = ["application/json", *([bodies.FORM, bodies.MULTIPART] if form else [])]
    return {"requestBody": {"required": True, "content": dict.fromkeys(types, description)}}


def _page(name: str) -> str:
    return importlib.resources.files("t2tlite.programs.serving").joinpath(name).read_text(encoding="utf-8")
