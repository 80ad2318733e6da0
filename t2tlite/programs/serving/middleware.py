"""Around every request: refuses what must not be computed; counts it, and observes its
status and time.
"""

from __future__ import annotations

import ipaddress
import time
from collections.abc import Collection

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from t2tlite.programs.serving.errors import (
    CLIENT_GONE,
    SHOWN,
    RequestError,
    error_response,
    log_failure,
)
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.service import Service

OTHER = "other"  # the path of requests to paths that do not exist
# what needs no model
ALWAYS = frozenset({"/", "/docs", "/openapi.json", "/health", "/ready", "/metrics"})
DEFAULT_PORTS = {"http": ":80", "https": ":443"}
FAILURE = RequestError(
    500, "The server could not answer this request; its log says why."
)


class Guard:
    """An ASGI application around another."""

    def __init__(self, app: ASGIApp, service: Service, paths: Collection[str]) -> None:
        self._app, self._service, self._paths = app, service, frozenset(paths) | ALWAYS
        self._headers = security_headers(service.options)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started = time.monotonic()
        status: int | None = None

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        self._service.active += 1
        try:
            if scope["path"] not in ALWAYS:
                check_sender(Headers(scope=scope), self._service.options)
                # now, not when the body is read: what is accepted is answered
                self._service.check_ready()
            await self._app(scope, receive, observed)
        except RequestError as error:  # raised here: the application answers its own
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
            method = scope["method"] if scope["method"] in ("GET", "POST") else OTHER
            seconds = time.monotonic() - started
            self._service.metrics.observe_request(
                path, method, status or CLIENT_GONE, seconds
            )


def security_headers(options: ServerOptions) -> list[tuple[bytes, bytes]]:
    """The headers of every response.

    A page may be shown in a frame only by pages that may send requests: it translates
    the text behind the # of its address as soon as it is shown.
    """
    framing = [origin for origin in options.cors_origins if origin.isascii()]
    ancestors = " ".join(["frame-ancestors 'self'", *framing])
    return [
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", ancestors.encode()),
    ]


def check_sender(headers: Headers, options: ServerOptions) -> None:
    """RequestError if another site's page in a browser may have sent it, unless
    --cors_origins names the site.

    A page can send simple requests to any address. The browser says from which site: in
    Sec-Fetch-Site, or on connections without TLS in Origin, which every POST has. A
    page whose own name resolves to this server (DNS rebinding) sends that name as Host:
    400 for a name that the server does not know, 403 for another site, or an origin
    that is not one.
    """
    host = headers.get("host", "")
    if not is_known_host(_host_name(host), options):
        raise RequestError(
            400,
            f"The server does not know the host {host[:SHOWN]!r}. Start it with"
            f" --allowed_hosts={host[:SHOWN]}, or use its IP address.",
        )
    origin = headers.get("origin")
    if {origin, "*"} & set(options.cors_origins):
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
    or at the one that a proxy received.

    A page of another site cannot send X-Forwarded-Host. One whose own name resolves to
    the proxy can, but not with a name that the server knows.
    """
    scheme, _, place = origin.lower().partition("://")
    port = DEFAULT_PORTS.get(scheme)
    if port is None:
        return False
    hosts = [headers.get("host", "")]
    forwarded = headers.get("x-forwarded-host", "").partition(",")[0].strip()
    if forwarded and is_known_host(_host_name(forwarded), options):
        hosts.append(forwarded)
    return place.removesuffix(port) in [
        host.lower().removesuffix(port) for host in hosts
    ]


def is_known_host(name: str, options: ServerOptions) -> bool:
    """Whether a Host header without its port names this server; without a header it
    does.
    """
    if name in (
        "",
        "localhost",
        options.host.lower(),
        *map(str.lower, options.allowed_hosts),
    ):
        return True
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return "*" in options.allowed_hosts
    return True


def _host_name(host: str) -> str:
    """A Host header without its port, in lower case."""
    if host.startswith("["):
        return host[1:].partition("]")[0].lower()
    return host.partition(":")[0].lower()
