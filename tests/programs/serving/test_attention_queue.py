"""Attention has a thread and a queue of its own, and nothing ends a thread."""

import itertools
import threading
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest
from raw_peers import until
from running import WAIT_S, Changed, running, served

from t2tlite.programs.serving.batching import WORKERS
from t2tlite.programs.serving.options import MAX_ATTENTION_QUEUE

SENTENCE = "red cat sees dog"
PATHS = ("/attention", "/attention.html")
METHODS = ("decode", "attention_of")  # of a translator


@pytest.fixture
def gated(translator):
    """A server whose attention waits for an event, and the event."""
    gate = threading.Event()

    def attention_of(pair):
        assert gate.wait(WAIT_S)
        return translator.attention_of(pair)

    model = Changed(translator, attention_of=attention_of)
    with running([served(model)]) as server:
        yield server, gate
        gate.set()


def test_attention_has_a_bounded_queue_of_its_own(gated):
    """More requests than may wait are refused at once, and translations, which have
    other threads, are not affected.
    """
    server, gate = gated
    batcher = server.service.attention_batcher
    with ThreadPoolExecutor(MAX_ATTENTION_QUEUE + 1) as clients:
        requests = []
        for path in itertools.islice(itertools.cycle(PATHS), MAX_ATTENTION_QUEUE + 1):
            body = {"q": SENTENCE}
            requests.append(clients.submit(server.post, path, body))
            # the first is being computed
            waiting = len(requests) - 1
            until(lambda n=waiting: batcher.queue_length() == n)
        for path in PATHS:
            refused = server.post(path, {"q": SENTENCE})
            assert refused.status_code == 503
            assert refused.headers["retry-after"] == "1"
        assert server.post("/translate", {"q": SENTENCE}).status_code == 200
        assert f"t2tlite_queue_sentences {MAX_ATTENTION_QUEUE}.0" in (
            server.get("/metrics").text
        )
        gate.set()
        assert {request.result().status_code for request in requests} == {200}


def test_attention_of_a_client_that_left_is_not_computed(gated):
    server, gate = gated
    batcher = server.service.attention_batcher
    with ThreadPoolExecutor(1) as clients:
        first = clients.submit(server.post, PATHS[0], {"q": SENTENCE})
        until(lambda: server.service.metrics.active and not batcher.queue_length())
        patience = httpx.Timeout(WAIT_S, read=0.5)
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(server.url + PATHS[1], json={"q": SENTENCE}, timeout=patience)
        until(lambda: batcher.queue_length() == 0)
        gate.set()
        assert first.result().status_code == 200


@pytest.mark.parametrize("path", ["/translate", "/attention"])
def test_exit_of_a_users_code_is_a_failure_of_its_request(translator, caplog, path):
    """The threads go on."""
    leaves = [True]

    def leaving(method):
        def call(*arguments, **more):
            if leaves:
                raise SystemExit(3)
            return method(*arguments, **more)

        return call

    methods = {name: leaving(getattr(translator, name)) for name in METHODS}
    with running([served(Changed(translator, **methods))]) as server:
        for _ in range(2 * WORKERS):
            assert server.post(path, {"q": SENTENCE}).status_code == 500
        leaves.clear()
        assert server.post(path, {"q": SENTENCE}).status_code == 200
        assert server.get("/ready").json() == {"status": "ready"}
    assert "SystemExit: '3'" in caplog.text
