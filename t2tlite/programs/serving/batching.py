"""The threads that run the models, and the queue in front of them, in which requests of
many clients share batches.

A request asks for `Work`: items (sentences) and the function that computes them. A
batch contains the oldest item, and items of similar length from all work with an equal
function. Work that is not done then goes to the end of the queue, so that a long text
does not keep short ones waiting.
"""

import collections
import itertools
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from starlette.exceptions import HTTPException

from t2tlite.machine import decoding_threads, has_nvidia_driver

# Threads that compute. There are at least two, so that a long search does not delay all
# others; on a GPU, which the batches share, not more.
WORKERS = 2 if has_nvidia_driver() else max(2, decoding_threads())
# fixed cost of a search step, in units of one item: that of a small model on two cores
STEP_COST = 8
USUAL_WIDTH = 4  # a wider search has proportionally fewer tokens in a batch


class BatchFunction(NamedTuple):
    """A method that computes items, with its other arguments. Equal functions can share
    a batch.
    """

    method: Callable[..., Sequence[Any]]
    arguments: tuple[Any, ...] = ()
    width: int = 1  # cost factor per token: the beam size of a search

    def run(self, items: Sequence[Any]) -> Sequence[Any]:
        """The result of each item, in order."""
        return self.method(items, *self.arguments)


# of some items, by their indices; or why there are none
Results = dict[int, Any] | BaseException


class Work:
    """What a request asks for."""

    def __init__(
        self,
        function: BatchFunction,
        items: Sequence[Any],
        tokens: Sequence[int],
    ) -> None:
        self.function = function
        self.items = items
        self.tokens = tokens  # of each item
        self.deliver: Callable[[Results], object]
        self.since = 0.0  # in the queue
        # indices of items without a batch; a dict keeps their order
        self.waiting = dict.fromkeys(range(len(items)))


QueuedItem = tuple[Work, int]  # and its index there


class Batcher:
    """The queue of at most `max_waiting` requests, and its threads.

    A batch has at most `batch_tokens` source tokens, padding included. One that is not
    full waits for `max_wait_s`. It is chosen among the first `window` items, so that
    one of short items is not waited for long.
    """

    def __init__(
        self,
        max_waiting: int,
        workers: int = WORKERS,
        batch_tokens: int = 1024,
        max_wait_s: float = 0.002,
        window: int = 128,
    ) -> None:
        self._max_waiting = max_waiting
        self._batch_tokens = batch_tokens
        self._max_wait_s = max_wait_s
        self._window = window
        self._queue: collections.deque[Work] = collections.deque()
        self._changed = threading.Condition()
        for _ in range(workers):
            threading.Thread(target=self._run, daemon=True).start()

    def queue_length(self) -> int:
        """The number of items that wait."""
        with self._changed:
            return sum(len(work.waiting) for work in self._queue)

    def submit(self, work: Work, deliver: Callable[[Results], object]) -> None:
        """Puts work into the queue. A thread calls `deliver` with results as soon as it
        has some, or with an error. Raises HTTPException 503 if the queue is full.

        The queue counts requests, not items: requests take turns, so a long text delays
        others no more than a short one.
        """
        work.deliver = deliver
        with self._changed:
            if len(self._queue) >= self._max_waiting:
                message = "The server has too many requests. Try again later."
                raise HTTPException(503, message, {"Retry-After": "1"})
            work.since = time.monotonic()
            self._queue.append(work)
            self._changed.notify()

    def cancel(self, work: Work) -> None:
        """Takes work out of the queue."""
        with self._changed:
            if work in self._queue:
                self._queue.remove(work)

    def _run(self) -> None:
        while True:
            self._compute(self._next_batch())

    def _compute(self, batch: list[QueuedItem]) -> None:
        """Computes a batch and delivers the results. If it fails, the items of each
        request are computed by themselves.
        """
        parts: dict[Work, dict[int, Any]] = {}
        first, _ = batch[0]
        try:
            values = first.function.run([work.items[place] for work, place in batch])
            for (work, place), value in zip(batch, values, strict=True):
                parts.setdefault(work, {})[place] = value
        except BaseException as error:  # a SystemExit of a user's code ends no thread
            items_of: dict[Work, list[QueuedItem]] = {}
            for item in batch:
                items_of.setdefault(item[0], []).append(item)
            if len(items_of) > 1:
                for items in items_of.values():
                    self._compute(items)
            else:
                self.cancel(first)
                first.deliver(error)
            return
        for work, part in parts.items():
            work.deliver(part)

    def _next_batch(self) -> list[QueuedItem]:
        """The items to compute next."""
        with self._changed:
            while True:
                self._changed.wait_for(lambda: self._queue)
                first = self._queue[0]
                batch, full = self._choose(first.function)
                left = first.since + self._max_wait_s - time.monotonic()
                if full or left <= 0:
                    self._take(batch)
                    if self._queue:  # another thread begins with the rest
                        self._changed.notify()
                    return batch
                self._changed.wait(left)

    def _choose(self, function: BatchFunction) -> tuple[list[QueuedItem], bool]:
        """The items of this function that make a batch, and whether others are left.
        The item that has waited longest is in the batch.
        """
        items = list(itertools.islice(self._in_turn(function), self._window))
        width = max(function.width, USUAL_WIDTH)
        batch_tokens = self._batch_tokens * USUAL_WIDTH // width
        tokens = [work.tokens[place] for work, place in items]
        chosen = best_batch(tokens, batch_tokens)
        return [items[index] for index in chosen], len(chosen) < len(items)

    def _in_turn(self, function: BatchFunction) -> Iterator[QueuedItem]:
        """The items of this function by turns: the first of each request, then the
        second of each, and so on.
        """
        works = [work for work in self._queue if work.function == function]
        for places in itertools.zip_longest(*[work.waiting for work in works]):
            for work, place in zip(works, places, strict=True):
                if place is not None:
                    yield work, place

    def _take(self, batch: list[QueuedItem]) -> None:
        """Records that the items are being computed; work with items left goes to the
        end of the queue.
        """
        for work, place in batch:
            del work.waiting[place]
        for work in dict.fromkeys(work for work, _ in batch):
            self._queue.remove(work)
            if work.waiting:
                work.since = 0.0  # it has waited
                self._queue.append(work)


def best_batch(tokens: Sequence[int], batch_tokens: int) -> list[int]:
    """Returns the indices of the items to batch with the first one for the highest
    throughput.

    A batch of n items takes about (n + STEP_COST) times the longest item. The
    candidates are neighbours in length, the first item among them, with at most
    `batch_tokens` tokens, padding included. The candidate with the most tokens for its
    time wins.
    """
    order = np.argsort(tokens, kind="stable")
    lengths = np.asarray(tokens)[order]
    place = int(np.flatnonzero(order == 0)[0])
    sums = np.concatenate([[0], np.cumsum(lengths)])
    # every batch that holds the first item: from `first` to `last` in order of length
    first = np.arange(place + 1)[:, None]
    last = np.arange(place, len(lengths))[None]
    count = last - first + 1
    longest = lengths[last]
    value = (sums[last + 1] - sums[first]) / (longest * (count + STEP_COST))
    value[(longest * count > batch_tokens) & (count > 1)] = 0.0
    start, width = np.unravel_index(np.argmax(value), value.shape)
    return [int(index) for index in order[start : place + width + 1]]
