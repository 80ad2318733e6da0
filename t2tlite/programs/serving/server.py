"""Starts the server: opens the port, loads the runs, answers until a signal comes, and ends when all is answered."""

from __future__ import annotations

import asyncio
import dataclasses
import errno
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING

from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.runs.translator import decode_options
from t2tlite.programs.serving.languages import language_pairs
from t2tlite.programs.serving.service import DRAINING, LOADING, Service, ServiceOptions
from t2tlite.run_folder import RunFolder

if TYPE_CHECKING:
    import uvicorn

    from t2tlite.programs.serving.served_model import Catalogue

POLL_S = 0.02  # while the server starts
QUIET_S = 1.0  # without a request before the server ends: those on their way are still answered, with 503
BACKLOG = 2048  # connections that may wait to be accepted


@dataclasses.dataclass(frozen=True, kw_only=True)
class ServerOptions:
    """What is served where."""

    runs: tuple[str, ...]
    languages: tuple[str, ...] = ()  # en-de, a pair for each run; by default what the runs record
    checkpoint_path: str | None = None
    decode_hparams: str = ""  # changes to the problems' decoding defaults
    engine: str = "tensorflow"  # what computes: tensorflow or ctranslate2
    quantization: str | None = None  # how ctranslate2 stores the weights; by default float32
    host: str = "127.0.0.1"
    port: int = 5000
    service: ServiceOptions = dataclasses.field(default_factory=ServiceOptions)


def serve(options: ServerOptions) -> None:
    """Serves until a signal comes.

    Raises ImportError without the extra `serve`, and ValueError or OSError if a run, the languages, the host or the
    port cannot be used; before TensorFlow is loaded, where that can be known.
    """
    require_extra()
    folders = [RunFolder(run) for run in options.runs]
    for folder in folders:
        folder.hparams()
        find_checkpoint(folder.path, options.checkpoint_path)
        decode_options(folder.manifest(), options.decode_hparams)
    pairs = language_pairs(options.runs, [folder.manifest() for folder in folders], options.languages)
    with bind(options.host, options.port) as listening:
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{listening.getsockname()[1]}"
        failures: list[Exception] = []
        service = Service(options.service)
        server = make_server(service)

        def load() -> None:
            from t2tlite.programs.serving.loading import load_catalogue

            try:
                catalogue: Catalogue = load_catalogue(options, pairs, report)
            except Exception as error:
                failures.append(error)
                server.should_exit = True
                return
            service.ready(catalogue)
            if service.status != DRAINING:
                report(f"Ready: {address}")

        run_server(server, listening, threading.Thread(target=load, daemon=True).start)
    if failures:
        raise failures[0]


def require_extra() -> None:
    """Raises ImportError, which says what to install, if a package of the extra is missing."""
    try:
        import fastapi  # noqa: F401
        import prometheus_client  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        raise ImportError(
            f"t2t-serve needs FastAPI, uvicorn and prometheus-client ({error}): pip install 't2tlite[serve]'."
        ) from error


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; ValueError if the port is in use or the host is not one of this machine's."""
    if not 0 <= port <= 65535:
        raise ValueError(f"--port must be from 0 to 65535; 0 is any free one. Received: {port}.")
    try:
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except (OSError, UnicodeError) as error:
        raise ValueError(f"--host must be a name or address of this machine. Received: {host!r} ({error}).") from error
    # For sockets of this protocol alone asyncio sets TCP_NODELAY, without which each answer's body waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"--port must be free. Received: {port} on {host}, at which another program listens. Choose another "
                "with --port, or stop that program."
            ) from error
        raise ValueError(f"t2t-serve cannot listen at port {port} of {host}: {error}. Choose others.") from error
    return listening


def make_server(service: Service) -> uvicorn.Server:
    """A server of the service's application, which drains when it is asked to end; a second time it ends at once."""
    import uvicorn

    from t2tlite.programs.serving.app import make_app

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if service.status == DRAINING:
                self.should_exit = self.force_exit = True
                return
            name = signal.Signals(sig).name
            if service.status == LOADING:  # nothing is accepted yet, and the thread that loads cannot be stopped
                print(f"{name}: ending while the runs are loaded.", file=sys.stderr, flush=True)
                signal.signal(sig, signal.SIG_DFL)
                signal.raise_signal(sig)
            print(f"{name}: answering what was accepted; once more ends at once.", file=sys.stderr, flush=True)
            service.drain()

        async def on_tick(self, counter: int) -> bool:
            return await super().on_tick(counter) or (service.status == DRAINING and drained())

    quiet_since, draining_since = time.monotonic(), 0.0

    def drained() -> bool:
        """Whether everything is answered; or a client has not read its answer for long."""
        nonlocal quiet_since, draining_since
        now = time.monotonic()
        draining_since = draining_since or now
        if service.active:
            quiet_since = now
        quiet_since = max(quiet_since, draining_since)
        return now > quiet_since + QUIET_S or now > draining_since + 2 * service.options.timeout_s

    config = uvicorn.Config(
        make_app(service), log_config=None, access_log=False, server_header=False, lifespan="off",
        timeout_graceful_shutdown=int(service.options.timeout_s) + 1,
    )  # fmt: skip
    return Server(config)


def run_server(server: uvicorn.Server, listening: socket.socket, started: Callable[[], object]) -> None:
    """Runs the server until it ends; calls `started` when it answers."""

    async def run() -> None:
        serving = asyncio.ensure_future(server.serve(sockets=[listening]))
        while not (server.started or serving.done()):
            await asyncio.sleep(POLL_S)
        started()
        await serving

    asyncio.run(run())


def report(message: str) -> None:
    """Prints a line of progress."""
    print(f"{time.strftime('%H:%M:%S')} {message}", file=sys.stderr, flush=True)
