"""The server from start to end: it opens its port, loads the runs, and answers until a
signal comes.
"""

import asyncio
import contextlib
import ctypes
import gc
import os
import queue
import signal
import socket
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import FrameType

import uvicorn

from t2tlite.console import log
from t2tlite.programs.serving import connections, models
from t2tlite.programs.serving.app import make_app
from t2tlite.programs.serving.options import ServedRunOptions, ServerOptions
from t2tlite.programs.serving.service import (
    DRAINING,
    LOADING,
    READY,
    Service,
)
from t2tlite.training.signals import handling

# The server ends after so long without a request. Requests on their way get 503.
QUIET_S = 1.0
BACKLOG = 1024  # connections that may wait to be accepted
SEND_BUFFER_BYTES = 1 << 18
STALLED_MS = 20_000  # without a byte read, after which a connection ends
ACCEPTED_AT_ONCE = 32  # connections, before other events
# Files that are open for other things, and for connections that are accepted while
# others are being closed.
RESERVED_FILES = 256
PREPARATION_THREADS = 2  # that read requests and make answers
TICKS_WITH_FREE_MEMORY = 100  # of 0.1 seconds, after which it goes to the system
# Thread switch interval: shorter than Python's 5 ms, so that parsing long requests does
# not stall the event loop.
SWITCH_S = 0.0005
LOOK_S = 0.1  # between two looks at whether requests still use the old models


def serve(runs: ServedRunOptions, options: ServerOptions) -> None:
    """Serves until a signal to end comes, and loads the runs anew at SIGHUP.

    Raises ValueError or OSError if a run, the languages, the host or the port cannot be
    used, before the models are loaded if possible.
    """
    pairs = models.pairs_of_runs(runs)
    sys.setswitchinterval(SWITCH_S)
    with bind(options.host, options.port) as listening:
        port = listening.getsockname()[1]
        host = f"[{options.host}]" if ":" in options.host else options.host
        failures: list[BaseException] = []
        service = Service(options)

        def load() -> None:
            try:
                service.ready(models.load_catalogue(runs, pairs))
            except BaseException as error:  # a SystemExit of a user's package, too
                failures.append(error)
                server.should_exit = True
                return
            freeze_objects()
            log(f"Ready: http://{host}:{port}")
            while server.reloads.get() and service.status == READY:
                load_anew(service, runs)

        # the port is open meanwhile
        loader = threading.Thread(target=load, daemon=True)
        allowed = allowed_connections(options.max_connections)
        limits = connections.ConnectionLimits(allowed)
        server = DrainingServer(service, loader.start, limits)
        asyncio.run(server.serve([listening]))
        # TensorFlow would abort a process that ends while a thread loads a run
        server.reloads.put(0)
        loader.join()
    for failure in failures:
        if isinstance(failure, Exception):
            raise failure
        raise ValueError(f"The runs must be loaded. Received: {failure!r} meanwhile.")


def load_anew(service: Service, runs: ServedRunOptions) -> None:
    """Loads the runs, the glossary and the API key again, for the requests from then
    on: those under way end with the models that they began with. If that fails, nothing
    changes, and a line says why.
    """
    log("SIGHUP: loading the runs anew.")
    old = weakref.WeakSet(service.catalogue.models)
    try:
        key = service.options.key()
        catalogue = models.load_catalogue(runs, models.pairs_of_runs(runs))
    except BaseException as error:  # a SystemExit of a user's package, too
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        log(f"The old models stay. {reason}")
        return
    service.api_key = key
    service.catalogue = catalogue
    log("Loaded anew.")
    deadline = time.monotonic() + service.options.timeout_s
    while old and time.monotonic() < deadline:
        time.sleep(LOOK_S)
    freeze_objects()


def freeze_objects() -> None:
    """Frees what is not in use, and lets the garbage collector pass over the rest: to
    look through the objects of TensorFlow and of the runs, it would stop all threads
    for up to a second, again and again.
    """
    gc.unfreeze()
    gc.collect()
    gc.freeze()


def allowed_connections(wanted: int) -> int:
    """Returns how many of the wanted connections the limit of open files allows. First
    raises the limit as far as the system permits; reports if that is not enough.
    """
    try:
        import resource
    except ImportError:  # Windows has no such limit
        return wanted
    files = wanted + RESERVED_FILES
    # no limit is -1, or a very large number
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if 0 < hard < files:
        files = hard
    if 0 < soft < files:
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, hard))
    allowed = min(wanted, max(files - RESERVED_FILES, files // 4))
    if allowed < wanted:
        limit = f"This process may open {files:,} files (ulimit -n)"
        log(f"{limit}: there can be {allowed:,} connections, not {wanted:,}.")
    return allowed


def bind(host: str, port: int) -> socket.socket:
    """A socket that listens at this address. Raises ValueError if the port is in use or
    the host is not this machine's.
    """
    try:
        is_ipv6 = ":" in host
        listening = socket.create_server(
            (host, port),
            family=socket.AF_INET6 if is_ipv6 else socket.AF_INET,
            backlog=BACKLOG,
            dualstack_ipv6=is_ipv6,
        )
    except (OSError, ValueError) as error:
        message = f"--host and --port must be free here. Received: {host!r} and {port}"
        raise ValueError(f"{message}: {error}.") from error
    # options of each connection; without this one, the body of an answer waits 40 ms
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    # by default each unread answer may take megabytes
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)
    if sys.platform == "linux":
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, STALLED_MS)
    return listening


class DrainingServer(uvicorn.Server):
    """A server of a service's application. The first signal lets it drain, a second one
    ends the process at once. SIGHUP is put into `reloads`, unless one waits there, or
    it says that the terminal of the server was closed.

    It calls `started` when it answers.
    """

    server_state: connections.Connections

    def __init__(
        self,
        service: Service,
        started: Callable[[], object],
        limits: connections.ConnectionLimits,
    ) -> None:
        # Only pages that may send requests may show a page in a frame: the page
        # translates the text behind the # of its address as soon as it is shown.
        policy = " ".join(["frame-ancestors 'self'", *service.options.cors_origins])
        super().__init__(
            uvicorn.Config(
                make_app(service),
                http=connections.BoundedProtocol,
                ws="none",
                log_config=None,
                log_level="error",  # clients' mistakes are answered, not logged
                access_log=False,
                server_header=False,
                proxy_headers=False,
                headers=[
                    ("x-content-type-options", "nosniff"),
                    ("content-security-policy", policy),
                ],
                lifespan="off",
                backlog=ACCEPTED_AT_ONCE,
                timeout_graceful_shutdown=int(service.options.timeout_s) + 1,
            )
        )
        self.server_state = connections.Connections(limits, service.metrics)
        self._service = service
        self._call_when_started = started
        self.reloads: queue.SimpleQueue[int] = queue.SimpleQueue()
        self._has_terminal = os.isatty(0)
        self._draining_since = self._quiet_since = 0.0

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Starts to answer."""
        threads = ThreadPoolExecutor(PREPARATION_THREADS, "t2t-serve preparation")
        asyncio.get_running_loop().set_default_executor(threads)
        await super().startup(sockets)
        # uvicorn has made the queue as short as ACCEPTED_AT_ONCE
        for listening in sockets or ():
            listening.listen(BACKLOG)
        self._call_when_started()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Drains; ends the process while the runs are loaded, which a thread does that
        cannot be stopped, or if the server drains already.
        """
        doing = {
            LOADING: "ending while the runs are loaded",
            READY: "answering what was accepted; once more ends at once",
            DRAINING: "ending before everything is answered",
        }
        status = self._service.status
        name = signal.Signals(sig).name
        is_closed = self._has_terminal and not os.isatty(0)
        if name == "SIGHUP" and status != DRAINING and not is_closed:
            if self.reloads.empty():
                self.reloads.put(sig)
            return
        if status == READY:
            self._service.status = DRAINING
            self._draining_since = self._quiet_since = time.monotonic()
        log(f"{name}: {doing[status]}.")
        if status != READY:
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
            # process 1 of a container ignores the signal by default
            os._exit(128 + sig)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Receives SIGHUP as well as uvicorn's signals."""
        with handling(self.handle_exit):
            yield

    async def on_tick(self, counter: int) -> bool:
        """Closes connections whose clients are too slow. Returns whether to end."""
        self.server_state.close_overdue()
        if counter % TICKS_WITH_FREE_MEMORY == 0:
            asyncio.get_running_loop().run_in_executor(None, give_back_memory)
        return await super().on_tick(counter) or (
            self._service.status == DRAINING and self._is_drained()
        )

    def _is_drained(self) -> bool:
        """Whether everything is answered and sent, or that takes too long."""
        now = time.monotonic()
        if self._service.metrics.active or self.server_state.unsent_bytes():
            self._quiet_since = now
        return (
            now > self._quiet_since + QUIET_S
            or now > self._draining_since + 2 * self._service.options.timeout_s
        )


def give_back_memory() -> None:
    """Gives free memory back to the system. glibc keeps the memory of long messages,
    since it lies between blocks in use.
    """
    if sys.platform == "linux":
        with contextlib.suppress(AttributeError):  # another C library
            ctypes.CDLL(None).malloc_trim(0)
