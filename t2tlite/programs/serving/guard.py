"""What surrounds every request: checks of who sends it and of the server's state, the
answer to every error, and metrics.
"""

from __future__ import annotations

import time
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from t2tlite.programs.serving.options import (
    DEFAULT_PORTS,
    MAX_ANSWER_BYTES,
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
from t2tlite.programs.serving.service import Service

OTHER = "other"  # in metrics, the path of requests to paths that do not exist
# what needs no model
ALWAYS = frozenset({"/", "/docs", "/openapi.json", "/health", "/ready", "/metrics"})
FAILURE = RequestError(
    500, "The server could not answer this request; its log says why."
)


class Guard:
    """An ASGI application around another. It refuses requests of strangers, those that
    arrive while the server loads or drains, and answers that are too long; it answers
    errors, and counts and times all requests. HEAD is answered as GET, and uvicorn
    leaves out the body.
    """

    def __init__(self, app: ASGIApp, service: Service, paths: Collection[str]) -> None:
        self._app = app
        self._service = service
        self._paths = frozenset(paths) | ALWAYS
        # Only pages that may send requests may show a page in a frame: the page
        # translates the text behind the # of its address as soon as it is shown.
        origins = service.options.cors_origins
        ancestors = " ".join(["frame-ancestors 'self'", *origins])
        self._headers = [
            (b"x-content-type-options", b"nosniff"),
            (b"content-security-policy", ancestors.encode()),
        ]

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
        except Exception as error:
            problem = FAILURE
            if isinstance(error, RequestError):
                problem = error
            else:
                log_failure(error)
            if status is None:
                await error_response(problem)(scope, receive, observed)
            else:  # uvicorn cuts off a response that is not complete
                status = problem.status
        finally:
            self._service.active -= 1
            path = scope["path"] if scope["path"] in self._paths else OTHER
            if method not in ("GET", "HEAD", "POST"):
                method = OTHER
            seconds = time.monotonic() - started
            self._service.metrics.observe_request(
                path, method, status or CLIENT_GONE, seconds
            )


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
    if host and not is_known_host(read_host(host), options):
        raise RequestError(
            400,
            f"The server does not know the host {host[:SHOWN]!r}. Use its IP address,"
            " or start it with --allowed_hosts.",
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


def is_known_host(host: str | None, options: ServerOptions) -> bool:
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
    if is_address(host) or host in known:
        return True
    below = [name[1:] for name in known if name.startswith("*.")]
    return host.endswith(tuple(below))
