"""A server in a thread of the test's process, requests to it on the loopback interface,
and its translators.
"""

import asyncio
import contextlib
import dataclasses
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import httpx
import uvicorn

from t2tlite.config import DecodeHParams
from t2tlite.programs.runs.translator import Translator
from t2tlite.programs.serving.connections import ConnectionLimits
from t2tlite.programs.serving.models import Catalogue, ServedModel
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.server import DrainingServer, bind
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.tasks.task import Output
from t2tlite.trees.tree import Tree, format_tree, parse_tree

TIMEOUT_S = 60
WAIT_S = 30  # in which a test opens a gate


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

    def send(
        self,
        path: str,
        body: Any,
        content_type: str = "application/json",
        **headers: str,
    ) -> httpx.Response:
        """Sends bytes as they are."""
        return self.post(
            path, content=body, headers={"Content-Type": content_type, **headers}
        )


class Changed:
    """A translator with other attributes in place of some of its own."""

    def __init__(self, translator: Any, **attributes: Any) -> None:
        vars(self).update(attributes)
        self._translator = translator

    def __getattr__(self, name: str) -> Any:
        return getattr(self._translator, name)


class Gated(Changed):
    """A translator that waits while its gate is closed, and records the sentences that
    it is given.
    """

    def __init__(self, translator: Any) -> None:
        super().__init__(translator)
        self.gate, self.seen = threading.Event(), list[str]()

    def decode(self, sentences: list[str], options: DecodeHParams, **more: Any) -> Any:
        self.seen += sentences
        assert self.gate.wait(WAIT_S)
        return self._translator.decode(sentences, options, **more)


def tree_of(sentence: str) -> Tree:
    """A noun phrase of a sentence's words."""
    return parse_tree(
        f"(TOP (NP {' '.join(f'(NN {word})' for word in sentence.split())}))"
    )


def parser_of(translator: Any) -> Changed:
    """A parser that gives each sentence the same kind of tree."""

    def parse(sentences: list[str], **options: Any) -> list[Output]:
        trees = [tree_of(sentence) if sentence else None for sentence in sentences]
        repairs = Counter({"added words": 2})
        parses = []
        for tree in trees:
            text = format_tree(tree) if tree else ""
            parses.append(Output(text, -0.25, -1.5, tree=tree, repairs=repairs))
        return parses

    return Changed(translator, task=ParsingTask(), parse=parse)


def served(
    translator: Translator, source: str = "en", target: str = "de", **more: Any
) -> ServedModel:
    """A model with the options of its problem."""
    options = DecodeHParams(**translator.manifest.decode_defaults)
    return ServedModel(translator, source, target, options, **more)


@contextlib.contextmanager
def running(
    models: Sequence[ServedModel] | None,
    limits: ConnectionLimits = ConnectionLimits(),  # noqa: B008  # frozen
    **options: Any,
) -> Iterator[Running]:
    """A server of these models, ready until the end of the block; one that still loads
    them if they are None.
    """
    service = Service(ServerOptions(**options))
    if models is not None:
        service.ready(Catalogue(models))
    listening, started = bind("127.0.0.1", 0), threading.Event()
    server = DrainingServer(service, started.set, limits)
    thread = threading.Thread(target=lambda: asyncio.run(server.serve([listening])))
    thread.start()
    assert started.wait(TIMEOUT_S)
    try:
        yield Running(service, server, thread, listening.getsockname()[1])
    finally:
        server.should_exit = True
        thread.join(TIMEOUT_S)
        listening.close()
