"""The threads that run the models, and the queue in front of them, in which requests of
many clients share batches.

A job is what one request asks for: items (sentences) computed by one function
(`BatchFunction`). A batch contains the oldest item and items of similar length from all
jobs with an equal function. A job that is not done then goes to the end, so that a long
text does not keep short ones waiting.
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice, repeat, zip_longest
from typing import Any, Generic, Protocol, TypeVar

import numpy as np

from t2tlite.programs.serving.errors import RequestError

Item = TypeVar("Item")
Value = TypeVar("Value")
ItemIn = TypeVar("ItemIn", contravariant=True)
ValueOut = TypeVar("ValueOut", covariant=True)


class BatchFunction(Protocol[ItemIn, ValueOut]):
    """What is computed of items. Equal functions can share a batch."""

    @property
    def width(self) -> int:
        """How many times more an item costs than its tokens say: the beam size of a
        search.
        """

    def run(self, items: Sequence[ItemIn]) -> Sequence[ValueOut]:
        """The result of each item, in order."""

    def __hash__(self) -> int: ...


@dataclasses.dataclass(frozen=True)
class Limits:
    """How much is computed at once."""

    # source tokens of a batch, padding counted, of searches up to the usual width
    batch_tokens: int = 1024
    usual_width: int = 4  # a batch of wider searches has as many fewer tokens
    # that a batch which is not full waits for further requests
    max_wait_s: float = 0.002
    # sentences of which a batch is chosen, which bounds the wait for a batch of short
    # ones
    window: int = 128

    def tokens_at_width(self, width: int) -> int:
        """The most source tokens of a batch of searches of this width."""
        return self.batch_tokens * self.usual_width // max(width, self.usual_width)


Results = dict[int, Value]  # of some items of a job, by their indices


@dataclasses.dataclass(eq=False)
class Job(Generic[Item, Value]):
    """The items of one request. `deliver` is called in a worker thread, with results or
    what went wrong.
    """

    function: BatchFunction[Item, Value]
    items: Sequence[Item]
    tokens: Sequence[int]  # of each item
    deliver: Callable[[Results[Value] | Exception], None]
    cancelled: bool = False

    def __post_init__(self) -> None:
        # indices of items without a batch, in order
        self.waiting = dict.fromkeys(range(len(self.items)))
        self.since = time.monotonic()


# threads that compute; a search of a small batch does not keep all cores busy
WORKERS = 2
# fixed cost of a search step, in units of one item; about that of a small model on two
# cores
STEP_COST = 8

logger = logging.getLogger("t2tlite.programs.serving")

AnyJob = Job[Any, Any]
Part = tuple[AnyJob, int]  # an item of a job, by index


class Batcher:
    """The queue and its threads; `observe` is called with (items, tokens, seconds)
    after each batch.
    """

    def __init__(
        self,
        max_jobs: int,
        limits: Limits | None = None,
        observe: Callable[[int, int, float], None] = lambda items, tokens, seconds: (
            None
        ),
        workers: int = WORKERS,
    ) -> None:
        self._max_jobs = max_jobs
        self._limits = limits or Limits()
        self._observe = observe
        self._jobs: collections.deque[AnyJob] = collections.deque()
        self._changed = threading.Condition()
        self._stopped = False
        self._dead = 0
        self._threads = [
            threading.Thread(target=self._work, daemon=True) for _ in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def dead_workers(self) -> int:
        """The number of threads that have ended although `stop` was not called."""
        return self._dead

    @property
    def queue_length(self) -> int:
        """Items that wait."""
        with self._changed:
            return sum(len(job.waiting) for job in self._jobs)

    def submit(self, job: AnyJob) -> None:
        """Lets a job wait for its turn; RequestError 503 if as many jobs as allowed
        wait already, or no thread is left.

        Jobs are counted, not items: they take turns, so a long text delays others no
        more than a short one.
        """
        with self._changed:
            if not self._has_workers():
                raise worker_error()
            if self._stopped or len(self._jobs) >= self._max_jobs:
                raise RequestError(
                    503,
                    "The server has as many requests as it can take. Try again later.",
                    1,
                )
            self._jobs.append(job)
            self._changed.notify_all()

    def cancel(self, job: AnyJob) -> None:
        """Takes a job out of the queue; what is being computed of it is dropped when it
        is done.
        """
        with self._changed:
            job.cancelled = True
            if job in self._jobs:
                self._jobs.remove(job)

    def stop(self) -> None:
        """Ends the threads, each after the batch that it computes."""
        with self._changed:
            self._stopped = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        """Computes batches until `stop` is called. An error of a batch goes to its
        jobs. Whatever else ends this thread, such as a SystemExit in a user's code, is
        logged.
        """
        try:
            while parts := self._next_batch():
                try:
                    self._compute_observed(parts)
                except BaseException:
                    self._fail({job for job, _ in parts})
                    raise
        except BaseException:
            logger.critical(
                "A thread that computes has ended. /ready answers 503 from now on:"
                " restart the server.",
                exc_info=True,
            )
            with self._changed:
                self._dead += 1
                waiting = [] if self._has_workers() else list(self._jobs)
            self._fail(waiting)

    def _has_workers(self) -> bool:
        return self._dead < len(self._threads)

    def _compute_observed(self, parts: list[Part]) -> None:
        started = time.monotonic()
        self._compute(parts)
        tokens = sum(job.tokens[index] for job, index in parts)
        self._observe(len(parts), tokens, time.monotonic() - started)

    def _fail(self, jobs: Iterable[AnyJob]) -> None:
        """Answers jobs that no thread computes any more."""
        for job in jobs:
            self.cancel(job)
            job.deliver(worker_error())

    def _compute(self, parts: list[Part]) -> None:
        """Computes a batch and delivers to its jobs. If it fails, each job's part is
        computed by itself.
        """
        by_job: dict[AnyJob, list[int]] = {}
        for job, index in parts:
            by_job.setdefault(job, []).append(index)
        try:
            values = parts[0][0].function.run(
                [job.items[index] for job, index in parts]
            )
            by_part = dict(zip(parts, values, strict=True))
        except Exception as error:
            if len(by_job) > 1:
                for job, indices in by_job.items():
                    self._compute([(job, index) for index in indices])
                return
            self.cancel(parts[0][0])
            parts[0][0].deliver(error)
            return
        for job, indices in by_job.items():
            if not job.cancelled:
                job.deliver({index: by_part[job, index] for index in indices})

    def _next_batch(self) -> list[Part]:
        """The items to compute next; empty when the threads are to end."""
        with self._changed:
            while not self._stopped:
                if not self._jobs:
                    self._changed.wait()
                    continue
                first = self._jobs[0]
                parts, full = self._choose(first.function)
                left = first.since + self._limits.max_wait_s - time.monotonic()
                if full or left <= 0:
                    self._take(parts)
                    return parts
                self._changed.wait(left)
        return []

    def _choose(self, function: BatchFunction) -> tuple[list[Part], bool]:
        """The items of this function that make a batch, and whether others are left.

        They are chosen of those whose turn it is: an item of each job, then a second of
        each, and so on. The first, which has waited longest, is in the batch.
        """
        jobs = [job for job in self._jobs if job.function == function]
        turns = zip_longest(*(zip(repeat(job), job.waiting) for job in jobs))
        in_turn = (part for turn in turns for part in turn if part is not None)
        parts = list(islice(in_turn, self._limits.window))
        batch_tokens = self._limits.tokens_at_width(function.width)
        chosen = best_batch([job.tokens[index] for job, index in parts], batch_tokens)
        return [parts[i] for i in chosen], len(chosen) < len(parts)

    def _take(self, parts: list[Part]) -> None:
        """Records that the items are being computed; jobs with items left go to the end
        of the queue.
        """
        for job, index in parts:
            del job.waiting[index]
        for job in dict.fromkeys(job for job, _ in parts):
            self._jobs.remove(job)
            if job.waiting:
                job.since = 0.0  # it has waited
                self._jobs.append(job)


def worker_error() -> RequestError:
    """The error of a request whose thread has ended."""
    return RequestError(
        503,
        "A thread of the server that computes has ended; its log says why. Try again"
        " later.",
        5,
    )


def best_batch(tokens: Sequence[int], batch_tokens: int) -> list[int]:
    """Which of the items to compute together with the first, by index: those that make
    best use of the time.

    A batch of n items takes about as long as (n + STEP_COST) times the longest. Of all
    batches of neighbours in length with the first item, and at most `batch_tokens` with
    padding, that with the most tokens in its time wins.
    """
    order = np.argsort(tokens, kind="stable")
    lengths = np.asarray(tokens)[order]
    place = int(np.flatnonzero(order == 0)[0])
    sums = np.concatenate([[0], np.cumsum(lengths)])
    # every batch that holds it
    first, last = np.arange(place + 1)[:, None], np.arange(place, len(lengths))[None]
    count, longest = last - first + 1, lengths[last]
    value = (sums[last + 1] - sums[first]) / (longest * (count + STEP_COST))
    value[(longest * count > batch_tokens) & (count > 1)] = 0.0
    start, width = np.unravel_index(np.argmax(value), value.shape)
    return [int(i) for i in order[start : place + width + 1]]
