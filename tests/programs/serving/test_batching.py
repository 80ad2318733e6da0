"""The queue: what shares a batch, whose turn it is, what is refused, dropped and
reported.
"""

import dataclasses
import queue
import threading
import time

import pytest
from starlette.exceptions import HTTPException

from t2tlite.programs.serving.batching import Batcher, Work, best_batch

WAIT_S = 30


@dataclasses.dataclass(frozen=True)
class Doubling:
    """Work that records its batches, and waits until a test lets it go on."""

    name: str = "a"
    width: int = 1
    batches: list = dataclasses.field(default_factory=list, compare=False)
    go: threading.Event = dataclasses.field(
        default_factory=threading.Event, compare=False
    )

    def run(self, items):
        self.batches.append(list(items))
        assert self.go.wait(WAIT_S)
        if "bad" in items:
            raise ValueError("a bad item")
        return [2 * item for item in items]


class Client:
    """Waits for the results of a job."""

    def __init__(self, batcher, work, items, tokens=None):
        self.arrived = queue.Queue()
        tokens = tokens or [1] * len(items)
        self.queued = Work(work, items, tokens)
        self.items = items
        batcher.submit(self.queued, self.arrived.put)

    def results(self):
        results_by_job = {}
        while len(results_by_job) < len(self.items):
            part = self.arrived.get(timeout=WAIT_S)
            if isinstance(part, BaseException):
                raise part
            results_by_job |= part
        return [results_by_job[i] for i in range(len(self.items))]


@pytest.fixture
def batcher():
    return Batcher(2, workers=1, batch_tokens=4, max_wait_s=0.0)


def started(work, count=1):
    """Waits until the work has begun so many batches."""
    until = time.monotonic() + WAIT_S
    while len(work.batches) < count and time.monotonic() < until:
        time.sleep(0.001)
    assert len(work.batches) == count


def test_jobs_of_the_same_work_share_a_batch(batcher):
    work = Doubling()
    first = Client(batcher, work, ["x"])
    started(work)
    others = [Client(batcher, work, [name]) for name in "yz"]
    work.go.set()
    results = [client.results() for client in (first, *others)]
    assert results == [["xx"], ["yy"], ["zz"]]
    assert sorted(map(sorted, work.batches)) == [["x"], ["y", "z"]]


def test_other_work_has_a_batch_of_its_own(batcher):
    work, other = Doubling("a"), Doubling("b")
    other.go.set()
    first = Client(batcher, work, ["x"])
    started(work)
    clients = [Client(batcher, work, ["y"]), Client(batcher, other, ["z"])]
    work.go.set()
    results = [client.results() for client in (first, *clients)]
    assert results == [["xx"], ["yy"], ["zz"]]
    assert other.batches == [["z"]]


def test_a_long_text_does_not_keep_a_short_one_waiting(batcher):
    work = Doubling()
    long = Client(batcher, work, ["l"] * 9)
    started(work)
    short = Client(batcher, work, ["s"])
    work.go.set()
    assert short.results() == ["ss"]
    assert long.results() == ["ll"] * 9
    assert "s" in work.batches[1]


def test_a_full_queue_refuses_and_says_when_to_come_back(batcher):
    work = Doubling()
    clients = [Client(batcher, work, ["x"])]
    started(work)
    clients.append(Client(batcher, work, ["y"] * 12))
    Client(batcher, work, ["u"])  # jobs are counted, not their items
    assert batcher.queue_length() == 13
    with pytest.raises(HTTPException, match="too many requests") as refused:
        Client(batcher, work, ["z"])
    assert refused.value.status_code == 503
    assert refused.value.headers == {"Retry-After": "1"}
    work.go.set()
    assert clients[1].results() == ["yy"] * 12


def test_a_worker_for_each_of_two_batches():
    batcher = Batcher(4, workers=2, max_wait_s=0.0)
    slow, fast = Doubling("slow"), Doubling("fast")
    long = Client(batcher, slow, ["l"])
    started(slow)
    fast.go.set()
    # while the other batch is computed
    assert Client(batcher, fast, ["x", "y"]).results() == ["xx", "yy"]
    others = [Client(batcher, slow, [name]) for name in "mno"]
    started(slow, 2)
    slow.go.set()
    results = [client.results() for client in (long, *others)]
    assert results == [["ll"], ["mm"], ["nn"], ["oo"]]
    assert batcher.queue_length() == 0


def test_a_cancelled_job_leaves_the_queue(batcher):
    work = Doubling()
    first = Client(batcher, work, ["x"])
    started(work)
    gone = Client(batcher, work, ["y", "z"])
    batcher.cancel(gone.queued)
    assert batcher.queue_length() == 0
    work.go.set()
    assert first.results() == ["xx"]
    assert Client(batcher, work, ["w"]).results() == ["ww"]
    assert work.batches == [["x"], ["w"]]
    assert gone.arrived.empty()


def test_an_item_that_fails_fails_its_own_job_alone(batcher):
    work = Doubling()
    first = Client(batcher, work, ["x"])
    started(work)
    bad, good = Client(batcher, work, ["bad", "u"]), Client(batcher, work, ["good"])
    work.go.set()
    assert first.results() == ["xx"]
    assert good.results() == ["goodgood"]
    with pytest.raises(ValueError, match="a bad item"):
        bad.results()
    assert Client(batcher, work, ["v"]).results() == ["vv"]


@pytest.mark.parametrize(
    ("tokens", "batch_tokens", "chosen"),
    [
        ([5], 1, {0}),  # more than allowed: by itself
        ([5, 5, 5], 100, {0, 1, 2}),
        ([5, 5, 5], 10, {0, 1}),
        # not the long one: it would keep the others waiting
        ([5, 100, 5], 1000, {0, 2}),
        ([100, 5, 5, 90], 1000, {0, 3}),
    ],
)
def test_a_batch_has_items_of_about_the_length_of_the_first(
    tokens, batch_tokens, chosen
):
    assert set(best_batch(tokens, batch_tokens)) == chosen
