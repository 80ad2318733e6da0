"""A hostile client beside well-behaved ones: nobody else fails or waits, and memory comes back."""

from __future__ import annotations

import contextlib
import itertools
import json
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import httpx
import psutil
import pytest
from server_process import Process

CLIENTS, REQUESTS = 8, 25  # well-behaved clients, and requests of each alone
HOSTILE_CONNECTIONS = 3
ATTACK_S = 20
MAX_DELAY_S = 2.0  # more than alone
MAX_HEALTH_S = 0.5
MAX_GROWTH = 100 << 20
SENTENCE = json.dumps({"q": "red cat sees dog"}).encode()
Request = tuple[str, bytes, dict[str, str]]  # path, body, headers
JSON, FORM = {"Content-Type": "application/json"}, {"Content-Type": "multipart/form-data; boundary=x"}


def hostile_requests() -> list[Request]:
    """A request for each way to make the server work; all end within its limits or are refused."""
    part = b'--x\r\nContent-Disposition: form-data; name="q"%s\r\n\r\na\r\n'
    parameters = b"".join(b'; a%d="b"' % i for i in range(60_000))
    translate = [
        {"q": "." * 20_000},
        {"q": "A. " * 6_600},
        {"q": [""] * 200_000},
        {"q": "red\n" * 4_000},
        {"q": "cat " * 1_000, "beam_size": 16},
        {"q": "cat " * 120, "beam_size": 16},
        {"q": "cat " * 500},
        {"q": [1] * 300_000},
    ]
    return [
        ("/translate", part % parameters + b"--x--\r\n", FORM),
        ("/translate", part % b"" * 16_000 + b"--x--\r\n", FORM),
        ("/v1/score", json.dumps({"pairs": [["", ""]] * 100_000}).encode(), JSON),
        *(("/v1/translate", json.dumps(body).encode(), JSON) for body in translate),
    ]


class Client:
    """A client's connection, and the times of its requests."""

    def __init__(self, address: str, connections: contextlib.ExitStack) -> None:
        self._http = connections.enter_context(httpx.Client(base_url=address, timeout=60))
        self.seconds: list[float] = []
        self.failures: list[str] = []

    def send(self, path: str, body: bytes | None = None) -> None:
        started = time.monotonic()
        response = self._http.get(path) if body is None else self._http.post(path, content=body, headers=JSON)
        self.seconds.append(time.monotonic() - started)
        if response.status_code != 200:
            self.failures.append(response.text)

    def send_until(self, end: threading.Event, path: str, body: bytes | None = None) -> None:
        while not end.wait(0.05):
            self.send(path, body)


def attack(address: str, end: threading.Event, requests: list[Request], first: int) -> None:
    """Sends hostile requests one after the other, beginning with that of index `first`."""
    with httpx.Client(base_url=address, timeout=60) as client:
        for number in itertools.count(first):
            if end.is_set():
                return
            path, body, headers = requests[number % len(requests)]
            assert client.post(path, content=body, headers=headers).status_code < 500


@pytest.mark.slow  # starts a process, which loads TensorFlow, and attacks it for ATTACK_S
def test_hostile_client_delays_nobody(tiny_run):
    with (
        Process(f"--output_dir={tiny_run.run}") as server,
        contextlib.ExitStack() as connections,
        ThreadPoolExecutor(16) as threads,
    ):
        address = server.line(r"Ready: (http://127\.0\.0\.1:\d+)\n")[1]
        hostile = hostile_requests()
        process = psutil.Process(server.process.pid)
        for path, body, headers in hostile:  # each search is built once
            assert httpx.post(address + path, content=body, headers=headers, timeout=60).status_code < 500
        clients = [Client(address, connections) for _ in range(CLIENTS)]
        list(threads.map(lambda client: [client.send("/v1/translate", SENTENCE) for _ in range(REQUESTS)], clients))
        alone = max(max(client.seconds) for client in clients)
        memory = process.memory_info().rss

        end, watcher = threading.Event(), Client(address, connections)
        clients = [Client(address, connections) for _ in range(CLIENTS)]
        tasks = [threads.submit(client.send_until, end, "/v1/translate", SENTENCE) for client in clients]
        tasks.append(threads.submit(watcher.send_until, end, "/health"))
        tasks += [threads.submit(attack, address, end, hostile, 4 * i) for i in range(HOSTILE_CONNECTIONS)]
        time.sleep(ATTACK_S)
        end.set()
        for task in tasks:
            task.result()
        waited, health = max(max(client.seconds) for client in clients), max(watcher.seconds)
        print(f"alone {alone:.2f} s, under attack {waited:.2f} s; /health {health:.2f} s")
        assert [failure for client in [*clients, watcher] for failure in client.failures] == []
        assert waited <= alone + MAX_DELAY_S
        assert health <= MAX_HEALTH_S
        assert process.memory_info().rss - memory < MAX_GROWTH
