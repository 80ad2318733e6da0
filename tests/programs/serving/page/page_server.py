"""A t2t-serve for tests of its page: the tiny run in both directions, and a parser whose trees are known."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

import uvicorn

from t2tlite.config import DecodeHParams
from t2tlite.programs.serving.app import make_app
from t2tlite.programs.serving.options import ServerOptions
from t2tlite.programs.serving.served_model import Catalogue, ServedModel
from t2tlite.programs.serving.service import Service
from t2tlite.tasks.parsing import Parse, ParsingTask
from t2tlite.trees.tree import Tree, parse_tree

MAX_CHARACTERS = 5000
EXAMPLES = ("red cat sees dog", "bird likes <b>fish</b>")
ALL_PAIRS = (("en", "de"), ("de", "en"), ("en", "tree"))


class Gated:
    """A translator that waits while its gate is closed."""

    def __init__(self, translator: Any) -> None:
        self.translator = translator
        self.gate = threading.Event()
        self.gate.set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.translator, name)

    def decode(self, *args: Any, **options: Any) -> Any:
        self.gate.wait(20)
        return self.translator.decode(*args, **options)


class Parser(Gated):
    """A parser that gives each sentence the same kind of tree."""

    task = ParsingTask()

    def parse(self, sentences: list[str], **options: Any) -> list[Parse]:
        return [Parse(tree_of(sentence), -0.25, -1.5, Counter({"added words": 2}), "") for sentence in sentences]


def tree_of(sentence: str) -> Tree:
    """A noun phrase of a sentence's words."""
    return parse_tree(f"(TOP (NP {' '.join(f'(NN {word})' for word in sentence.split())}))")


@contextlib.contextmanager
def serving(service: Service) -> Iterator[str]:
    """Serves in a thread; yields the address."""
    bound = socket.socket()
    bound.bind(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(make_app(service), log_config=None, lifespan="off", ws="none"))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]}, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(10)
        bound.close()


def loading(**options: Any) -> Service:
    """A service that has not loaded its models."""
    return Service(ServerOptions(max_characters=MAX_CHARACTERS, **options))


def ready(service: Service, translator: Any, pairs: Sequence[tuple[str, str]] = ALL_PAIRS) -> Service:
    """The service, which now translates in both directions and parses, or does what `pairs` say."""
    defaults = DecodeHParams.of(translator.manifest.decode_defaults)
    models = [
        ServedModel(Parser(translator) if target == "tree" else translator, source, target, defaults, examples=EXAMPLES)
        for source, target in pairs
    ]
    service.ready(Catalogue(models))
    return service
