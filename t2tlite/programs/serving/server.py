"""The server from start to end: it opens its port, loads the runs, and answers all that
comes before a signal.
"""

from __future__ import annotations

import asyncio
import errno
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from t2tlite.console import say
from t2tlite.files.checkpoint_paths import find_checkpoint
from t2tlite.programs.runs.translator import decode_options
from t2tlite.programs.serving.app import make_app
from t2tlite.programs.serving.languages import language_pairs, with_tags
from t2tlite.programs.serving.options import RunOptions, ServerOptions
from t2tlite.programs.serving.service import DRAINING, LOADING, Service
from t2tlite.run_folder import RunFolder

# without a request before the server ends: those on their way are still answered, with
# 503
QUIET_S = 1.0
BACKLOG = 2048  # connections that may wait to be accepted
# after which Python lets another thread run: the event loop waits for those that read
# long requests
SWITCH_S = 0.0005


def serve(runs: RunOptions, options: ServerOptions) -> None:
    """Serves until a signal comes.

    Raises ValueError or OSError if a run, the languages, the host or the port cannot be
    used, before the models are loaded if possible.
    """
    runs = with_tags(runs)
    folders = [RunFolder(run) for run in runs.runs]
    for folder in folders:
        folder.hparams()
        find_checkpoint(folder.path, runs.checkpoint_path)
        decode_options(folder.manifest(), runs.decode_hparams)
    pairs = language_pairs(
        runs.runs, [folder.manifest() for folder in folders], runs.languages
    )
    sys.setswitchinterval(SWITCH_S)
    with bind(options.host, options.port) as listening:
        host = f"[{options.host}]" if ":" in options.host else options.host
        address = f"http://{host}:{listening.getsockname()[1]}"
        failures: list[BaseException] = []
        service = Service(options)

        def load() -> None:
            # loads TensorFlow, while the port is open
            from t2tlite.programs.serving.loading import load_catalogue

            try:
                catalogue = load_catalogue(runs, pairs, say_with_time)
            except BaseException as error:  # also a SystemExit of a user's package
                failures.append(error)
                server.should_exit = True
                return
            service.ready(catalogue)
            if service.status != DRAINING:
                say_with_time(f"Ready: {address}")

        server = DrainingServer(
            service, started=threading.Thread(target=load, daemon=True).start
        )
        asyncio.run(server.serve([listening]))
    if failures:
        [failure] = failures
        if isinstance(failure, Exception):
            raise failure
        raise ValueError(
            f"The runs must be loaded. Received: {failure!r} while they were."
        ) from failure


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens there; ValueError if the port is in use or the host is not
    this machine's.
    """
    try:
        family, *_, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (OSError, UnicodeError) as error:
        raise ValueError(
            f"--host must be a name or address of this machine. Received: {host!r}"
            f" ({error})."
        ) from error
    # For sockets of this protocol alone asyncio sets TCP_NODELAY, without which each
    # answer's body waits 40 ms.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            raise ValueError(
                f"--port must be free. Received: {port} on {host}, at which another"
                " program listens. Choose another with --port, or stop that program."
            ) from error
        raise ValueError(
            f"t2t-serve cannot listen at port {port} of {host}: {error}. Choose others."
        ) from error
    return listening


class DrainingServer(uvicorn.Server):
    """A server of a service's application. The first signal lets it drain, a second one
    ends it at once.

    `started` is called when it answers.
    """

    def __init__(
        self, service: Service, started: Callable[[], object] = lambda: None
    ) -> None:
        grace_s = int(service.options.timeout_s) + 1
        super().__init__(
            uvicorn.Config(
                make_app(service),
                log_config=None,
                access_log=False,
                server_header=False,
                lifespan="off",
                timeout_graceful_shutdown=grace_s,
            )
        )
        self._service, self._call_when_started = service, started
        self._quiet_since = time.monotonic()
        self._draining_since = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to answer."""
        await super().startup(sockets)
        self._call_when_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains; ends at once while the runs are loaded, or if it drains already."""
        if self._service.status == DRAINING:
            self.should_exit = self.force_exit = True
            return
        name = signal.Signals(sig).name
        # nothing is accepted yet, and the thread that loads cannot be stopped
        if self._service.status == LOADING:
            say(f"{name}: ending while the runs are loaded.")
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
            # as process 1 of a container, for which the default is to ignore the signal
            os._exit(128 + sig)
        say(f"{name}: answering what was accepted; once more ends at once.")
        self._service.drain()

    async def on_tick(self, counter: int) -> bool:
        """Whether to end."""
        return await super().on_tick(counter) or (
            self._service.status == DRAINING and self._is_drained()
        )

    def _is_drained(self) -> bool:
        """Whether everything is answered; or a client has not read its answer for
        long.
        """
        now = time.monotonic()
        self._draining_since = self._draining_since or now
        if self._service.active:
            self._quiet_since = now
        self._quiet_since = max(self._quiet_since, self._draining_since)
        return (
            now > self._quiet_since + QUIET_S
            or now > self._draining_since + 2 * self._service.options.timeout_s
        )


def say_with_time(line: str) -> None:
    """Prints a line of progress with the time."""
    say(f"{time.strftime('%H:%M:%S')} {line}")
