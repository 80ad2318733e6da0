"""A hostile client beside well-behaved ones: nobody else fails or waits, and memory
comes back.
"""

import contextlib
import gc
import json
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import psutil
import pytest
from hostile_client import JSON, MANY, TIMEOUT_S, Request, attacks, first_requests, send
from server_process import Process

resource = pytest.importorskip("resource", reason="not on Windows")

CLIENTS, REQUESTS = 8, 25  # well-behaved clients, and requests of each alone
ATTACK_S = 20
FILES = 1024  # that the server may open: less than the connections of the attack
MAX_DELAY_S = 2.0  # more than alone, on a machine that nobody else uses
MAX_HEALTH_S = 0.5  # more than a server that does nothing else, likewise
RETURN_S = 30  # for memory to come back
# The settings of TensorFlow, and how much more memory the server may use. With oneDNN,
# TensorFlow keeps what it prepared for up to 1,024 matrix products of different shapes
# in each of its threads, and grows for minutes. Without it, only the server can grow.
DEFAULT = pytest.param({}, 250 << 20, id="default")
WITHOUT_ONEDNN = pytest.param(
    {"TF_ENABLE_ONEDNN_OPTS": "0"}, 100 << 20, id="without_onednn"
)
SENTENCE = json.dumps({"q": "red cat sees dog"}).encode()


class Client:
    """A client's connection, and the times of its requests."""

    def __init__(self, address: str, connections: contextlib.ExitStack) -> None:
        self._http = connections.enter_context(
            httpx.Client(base_url=address, timeout=TIMEOUT_S)
        )
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def send(self, path: str, body: bytes | None = None) -> None:
        headers, started = {"Content-Type": JSON}, time.monotonic()
        response = (
            self._http.get(path)
            if body is None
            else self._http.post(path, content=body, headers=headers)
        )
        self.seconds.append(time.monotonic() - started)
        if response.status_code != 200:
            self.failures.append(response.text)

    def send_until(
        self, end: threading.Event, path: str, body: bytes | None = None
    ) -> None:
        while not end.wait(0.05):
            self.send(path, body)


class Idle(BaseHTTPRequestHandler):
    """Answers at once: what it takes is the machine's delay, or that of this
    process.
    """

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Logs nothing."""


@contextlib.contextmanager
def idle_server() -> Iterator[str]:
    """The address of a server that has nothing else to do."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Idle) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


class Machine:
    """How much slower other programs make this machine, from CPU time since the
    beginning that these did not use.
    """

    def __init__(self, *ours: psutil.Process) -> None:
        self._ours = ours
        self._before = self._seconds()

    def slowness(self) -> float:
        """The ratio of all CPU time to that which other programs left: 1.0 if there are
        none.
        """
        all_time, idle, ours = (
            now - before
            for now, before in zip(self._seconds(), self._before, strict=True)
        )
        return all_time / max(idle + ours, all_time / 100)

    def _seconds(self) -> tuple[float, float, float]:
        """CPU seconds: all of the machine, those idle, those of our processes."""
        times = psutil.cpu_times()
        of_processes = [process.cpu_times() for process in self._ours]
        return (
            sum(times),
            times.idle + times.iowait,
            sum(each.user + each.system for each in of_processes),
        )


def send_all(address: str, requests: list[Request]) -> None:
    """Sends the requests one after the other."""
    with httpx.Client(base_url=address, timeout=TIMEOUT_S) as client:
        for request in requests:
            send(client, request)


@pytest.fixture
def many_files():
    """Lets this process open as many files as the attack needs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2 * MANY:
        pytest.skip(f"needs {2 * MANY} open files; the system allows {hard}")
    if soft != resource.RLIM_INFINITY:
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2 * MANY), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.fixture
def no_garbage_collection():
    """Lets the clients' threads answer: a pass over the objects of all tests that ran
    before in this process stops them for more than a second, which counted as a wait
    for the server.
    """
    gc.disable()
    yield
    gc.enable()


# starts a process, which loads TensorFlow, and attacks it for ATTACK_S
@pytest.mark.slow
@pytest.mark.parametrize(("settings", "max_growth"), [DEFAULT, WITHOUT_ONEDNN])
def test_hostile_client_delays_nobody(
    tiny_run, many_files, no_garbage_collection, settings, max_growth
):
    with (
        ThreadPoolExecutor(32) as threads,
        Process(
            f"--output_dir={tiny_run.run}",
            seconds=600,
            files=FILES,
            settings=settings,
        ) as server,
        contextlib.ExitStack() as connections,
    ):
        port = int(server.line(r"Ready: http://127\.0\.0\.1:(\d+)\n")[1])
        address, log = (
            f"http://127.0.0.1:{port}",
            threads.submit(server.process.stderr.read),
        )
        process = psutil.Process(server.process.pid)
        list(
            threads.map(lambda requests: send_all(address, requests), first_requests())
        )
        clients = [Client(address, connections) for _ in range(CLIENTS)]
        list(
            threads.map(
                lambda client: [
                    client.send("/translate", SENTENCE) for _ in range(REQUESTS)
                ],
                clients,
            )
        )
        alone = max(max(client.seconds) for client in clients)
        memory = process.memory_info().rss

        end, watcher, machine = (
            threading.Event(),
            Client(address, connections),
            Machine(process, psutil.Process()),
        )
        idle = Client(connections.enter_context(idle_server()), connections)
        clients = [Client(address, connections) for _ in range(CLIENTS)]
        tasks = [
            threads.submit(client.send_until, end, "/translate", SENTENCE)
            for client in clients
        ]
        tasks += [
            threads.submit(client.send_until, end, "/health")
            for client in (watcher, idle)
        ]
        tasks += [threads.submit(attack, port, end) for attack in attacks()]
        time.sleep(ATTACK_S)
        end.set()
        for task in tasks:
            task.result()
        waited, health, delay = (
            max(max(c.seconds) for c in group) for group in (clients, [watcher], [idle])
        )
        slowness = machine.slowness()
        growth, deadline = max_growth, time.monotonic() + RETURN_S
        while growth >= max_growth and time.monotonic() < deadline:
            time.sleep(0.5)
            growth = process.memory_info().rss - memory
        print(
            f"alone {alone:.2f} s, under attack {waited:.2f} s; /health {health:.2f} s,"
            f" an idle server {delay:.2f} s"
        )
        print(
            f"others slow the machine down {slowness:.1f} times; {growth >> 20} MiB"
            " more"
        )
        assert [
            failure for client in [*clients, watcher] for failure in client.failures
        ] == []
        assert waited <= alone + MAX_DELAY_S * slowness
        assert health <= delay + MAX_HEALTH_S * slowness
        assert growth < max_growth
        server.process.kill()
        assert "Traceback" not in log.result()
        assert log.result().count("\n") < 100
