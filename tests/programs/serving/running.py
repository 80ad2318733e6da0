"""A server in a thread of the test's process, on the loopback interface, and requests to it."""

from __future__ import annotations

import contextlib
import dataclasses
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import uvicorn

from t2tlite.config import DecodeHParams
from t2tlite.programs.runs.translator import Translator
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.served_model import Catalogue, ServedModel
from t2tlite.programs.serving.server import DrainingServer, bind, run_server
from t2tlite.programs.serving.service import Service

TIMEOUT_S = 60


@dataclasses.dataclass(frozen=True)
class Running:
    """A server that answers."""

    service: Service
    server: uvicorn.Server
    thread: threading.Thread
    port: int

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def get(self, path: str, **more: Any) -> httpx.Response:
        return httpx.get(self.url + path, timeout=TIMEOUT_S, **more)

    def post(self, path: str, json: Any = None, **more: Any) -> httpx.Response:
        """Sends JSON, or with `data`, `files` or `content` that."""
        return httpx.post(self.url + path, json=json, timeout=TIMEOUT_S, **more)

    def send(self, path: str, body: Any, content_type: str = "application/json", **headers: str) -> httpx.Response:
        """Sends bytes as they are."""
        return self.post(path, content=body, headers={"Content-Type": content_type, **headers})


def served(translator: Translator, source: str = "en", target: str = "de") -> ServedModel:
    """A model with the options of its problem."""
    return ServedModel(translator, source, target, DecodeHParams.of(translator.manifest.decode_defaults))


@contextlib.contextmanager
def running(models: Sequence[ServedModel], **options: Any) -> Iterator[Running]:
    """A server of these models, ready until the end of the block."""
    service = Service(ServerOptions(**options))
    service.ready(Catalogue(models))
    server, listening, started = DrainingServer(service), bind("127.0.0.1", 0), threading.Event()
    thread = threading.Thread(target=run_server, args=(server, listening, started.set))
    thread.start()
    assert started.wait(TIMEOUT_S)
    try:
        yield Running(service, server, thread, listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_S)
        listening.close()
        service.stop()
