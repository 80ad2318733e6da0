"""The web application: its endpoints, what surrounds every request, and what an error
looks like.
"""

from __future__ import annotations

import importlib.resources
import time
from collections.abc import Collection
from typing import Any

from fastapi import APIRouter, FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import t2tlite
from t2tlite.programs.serving import attention_api, libretranslate, own_api
from t2tlite.programs.serving.options import (
    DEFAULT_PORTS,
    MAX_ANSWER_BYTES,
    Host,
    ServerOptions,
    is_address,
    read_host,
)
from t2tlite.programs.serving.requests import (
    CLIENT_GONE,
    SHOWN,
    RequestError,
    error_response,
    log_failure,
    long_answer,
)
from t2tlite.programs.serving.schemas import ErrorResponse, StatusResponse
from t2tlite.programs.serving.service import READY, CurrentService, Service

DESCRIPTION = (
    "Translates and parses with trained runs of t2tlite. Clients of LibreTranslate can"
    " use /translate, /languages, /detect and /frontend/settings; /v1 is t2tlite's own"
    " API. Where an API key is needed, it is sent as Authorization: Bearer KEY, or to"
    " LibreTranslate's paths as the field api_key."
)
STATUSES = {
    400: "A bad request, no API key, or a host that the server does not know.",
    403: "A wrong API key, or a request from another site's page.",
    413: "Too much text.",
    415: "A body that is neither JSON nor, where forms are accepted, a form.",
    503: (
        "The server is loading, draining, or has too many requests; Retry-After says"
        " when to try again."
    ),
    504: "The request took too long.",
}
NO_SUCH_PATH = "There is nothing at this path."
OTHER = "other"  # in metrics, the path of requests to paths that do not exist
# what needs no model
ALWAYS = frozenset({"/", "/docs", "/openapi.json", "/health", "/ready", "/metrics"})
FAILURE = RequestError(
    500, "The server could not answer this request; its log says why."
)

router = APIRouter(tags=["Server"])


def make_app(service: Service) -> FastAPI:
    """The application of a service."""
    statuses: dict[int | str, dict[str, Any]] = {}
    for status, text in STATUSES.items():
        statuses[status] = {"model": ErrorResponse, "description": text}
    app = FastAPI(
        title="t2t-serve",
        version=t2tlite.__version__,
        description=DESCRIPTION,
        docs_url=None,
        redoc_url=None,
        responses=statuses,
        exception_handlers={RequestError: answer_error, HTTPException: answer_error},
    )
    app.state.service = service
    for part in (own_api, attention_api, libretranslate):
        app.include_router(part.router)
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


async def answer_error(request: Request, error: Exception) -> Response:
    """The response to a refused request, and to an unknown path or method."""
    if isinstance(error, RequestError):
        return error_response(error)
    if not isinstance(error, HTTPException):
        raise error
    problem = error.detail
    headers = {}
    if error.status_code == 404:
        problem = NO_SUCH_PATH
    elif error.status_code == 405:
        methods = (error.headers or {}).get("Allow", "").replace("GET", "GET, HEAD")
        headers["allow"] = methods
        problem = f"This path takes {methods}. Received: {request.method}."
    problem += " The page /docs lists what there is."
    return error_response(RequestError(error.status_code, problem, **headers))


# pages, and what watches the server


@router.get("/", include_in_schema=False)
async def translation_page() -> HTMLResponse:
    """The page to translate and parse."""
    return _page("page.html")


@router.get("/docs", include_in_schema=False)
async def docs_page() -> HTMLResponse:
    """The page that describes the API."""
    return _page("docs.html")


@router.get("/health", summary="Whether the process lives")
async def health() -> StatusResponse:
    """Answers while the process lives."""
    return StatusResponse(status="ok")


@router.get("/ready", summary="Whether requests are accepted")
async def ready(service: CurrentService, response: Response) -> StatusResponse:
    """Status 200 if requests are accepted and every thread that computes lives, else
    503.
    """
    status = service.shown_status
    response.status_code = 200 if status == READY else 503
    return StatusResponse(status=status)


@router.get("/metrics", summary="Counters for Prometheus")
async def metrics(service: CurrentService) -> Response:
    """Counters, in Prometheus's text format."""
    body, content_type = service.metrics.text()
    return Response(body, media_type=content_type)


def _page(name: str) -> HTMLResponse:
    folder = importlib.resources.files("t2tlite.programs.serving")
    return HTMLResponse(folder.joinpath(name).read_text(encoding="utf-8"))


# around every request


class Guard:
    """An ASGI application around another. It refuses requests of strangers, those that
    arrive while the server loads or drains, and answers that are too long; it counts
    and times all requests. HEAD is answered as GET, and uvicorn leaves out the body.
    """

    def __init__(self, app: ASGIApp, service: Service, paths: Collection[str]) -> None:
        self._app = app
        self._service = service
        self._paths = frozenset(paths) | ALWAYS
        self._headers = security_headers(service.options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status: int | None = None
        is_refused = False
        method = scope["method"]
        if method == "HEAD":
            scope = {**scope, "method": "GET"}

        async def observed(message: Message) -> None:
            nonlocal status, is_refused
            if is_refused:
                return
            if message["type"] == "http.response.start":
                length = Headers(raw=message["headers"]).get("content-length", "0")
                if int(length) > MAX_ANSWER_BYTES:
                    await error_response(long_answer())(scope, receive, observed)
                    is_refused = True
                    return
                status = message["status"]
                message["headers"] = [*message["headers"], *self._headers]
            await send(message)

        self._service.active += 1
        try:
            if scope["path"] not in ALWAYS:
                check_sender(Headers(scope=scope), self._service.options)
                # before the body is read: what is accepted is answered
                self._service.check_ready()
            await self._app(scope, receive, observed)
        except RequestError as error:  # of these checks; endpoints' are answered
            await error_response(error)(scope, receive, observed)
        except Exception as error:
            log_failure(error)
            if status is None:
                await error_response(FAILURE)(scope, receive, observed)
            else:  # uvicorn cuts off a response that is not complete
                status = 500
        finally:
            self._service.active -= 1
            path = scope["path"] if scope["path"] in self._paths else OTHER
            if method not in ("GET", "HEAD", "POST"):
                method = OTHER
            seconds = time.monotonic() - started
            self._service.metrics.observe_request(
                path, method, status or CLIENT_GONE, seconds
            )


def security_headers(options: ServerOptions) -> list[tuple[bytes, bytes]]:
    """The headers of every response.

    Only pages that may send requests may show a page in a frame: the page translates
    the text behind the # of its address as soon as it is shown.
    """
    ancestors = " ".join(["frame-ancestors 'self'", *options.cors_origins])
    return [
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", ancestors.encode()),
    ]


def check_sender(headers: Headers, options: ServerOptions) -> None:
    """Raises RequestError if another site's page in a browser may have sent the
    request, unless --cors_origins names the site.

    A page can send simple requests to any address. The browser names the site: in
    Sec-Fetch-Site, or on connections without TLS in Origin, which every POST has. A
    page whose own name resolves to this server (DNS rebinding) sends that name as Host.
    The status is 400 for a host name that the server does not know, and 403 for another
    site or an origin that is not one.
    """
    host = headers.get("host", "")
    named = read_host(host)
    if host and not is_known_host(named, options):
        advice = "Use its IP address"
        if named:
            advice += f", or start it with --allowed_hosts={named.name[:SHOWN]}"
        raise RequestError(
            400, f"The server does not know the host {host[:SHOWN]!r}. {advice}."
        )
    origin = headers.get("origin")
    if origin in options.cors_origins or "*" in options.cors_origins:
        return
    site = headers.get("sec-fetch-site")
    if site is None and origin is not None and not _is_own(origin, headers, options):
        site = "cross-site"
    if site not in (None, "same-origin", "none"):
        sender = "of another site" if origin is None else f"of {origin[:SHOWN]!r}"
        raise RequestError(
            403,
            f"Pages of other sites may not send requests. Received: one {sender}, to"
            f" {host[:SHOWN]!r}. --cors_origins names sites whose pages may; a proxy"
            " before the server must send it the Host that it received.",
        )


def _is_own(origin: str, headers: Headers, options: ServerOptions) -> bool:
    """Whether an origin is that of the server's own pages: at the host of the request,
    or at the host that a proxy received.

    A page of another site cannot send X-Forwarded-Host. A page whose name resolves to
    the proxy can send its own name, but not a name that the server knows.
    """
    scheme, _, place = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme)
    if port is None:
        return False
    hosts = [headers.get("host", "")]
    forwarded = headers.get("x-forwarded-host", "").partition(",")[0].strip()
    if forwarded and is_known_host(read_host(forwarded), options):
        hosts.append(forwarded)
    own_places = [host.lower().removesuffix(port) for host in hosts]
    return place.removesuffix(port) in own_places


def is_known_host(host: Host | None, options: ServerOptions) -> bool:
    """Whether a host is a name of this server, or an IP address."""
    if "*" in options.allowed_hosts:
        return True
    if host is None:
        return False
    known = (
        "localhost",
        options.host.lower().removesuffix("."),
        *options.allowed_hosts,
    )
    if is_address(host.name) or host.name in known:
        return True
    below = [name[1:] for name in known if name.startswith("*.")]
    return host.name.endswith(tuple(below))
