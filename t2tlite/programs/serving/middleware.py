"""Around every request: refuses it while the server loads or drains; counts it, and observes its status and time."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, MutableMapping
from typing import Any

from t2tlite.programs.serving.errors import RequestError
from t2tlite.programs.serving.service import CLIENT_GONE, Service

Message = MutableMapping[str, Any]  # as ASGI has it
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
OTHER = "other"  # the path of requests to paths that do not exist
ALWAYS = frozenset({"/", "/docs", "/openapi.json", "/health", "/ready", "/metrics"})  # what needs no model


class Observed:
    """An ASGI application around another."""

    def __init__(
        self,
        app: Callable[..., Awaitable[None]],
        service: Service,
        paths: Collection[str],
        answer: Callable[[RequestError], Callable[..., Awaitable[None]]],
    ) -> None:
        self._app, self._service, self._paths, self._answer = app, service, frozenset(paths), answer

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status = time.monotonic(), CLIENT_GONE

        async def observed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-content-type-options", b"nosniff")]
            await send(message)

        self._service.active += 1
        try:
            if scope["path"] not in ALWAYS:
                self._service.check_ready()  # now, not when the body is read: what is accepted is answered
            await self._app(scope, receive, observed)
        except RequestError as error:
            await self._answer(error)(scope, receive, observed)
        finally:
            self._service.active -= 1
            path = scope["path"] if scope["path"] in self._paths else OTHER
            method = scope["method"] if scope["method"] in ("GET", "POST") else OTHER
            self._service.metrics.observe_request(path, method, status, time.monotonic() - started)
