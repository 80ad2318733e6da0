"""Reads a pipe ahead in a thread, so that lines that have arrived can be used while
waiting for more.
"""

import queue
import threading
from collections.abc import Iterator
from typing import Any, Generic, TypeVar

T = TypeVar("T")

AHEAD = 10_000  # items read ahead at most


class ReadAhead(Iterator[T], Generic[T]):
    """The items of an iterator, which a thread reads; an exception of the iterator is
    raised in its place.
    """

    def __init__(self, items: Iterator[T]) -> None:
        # items, each with None; then the exception that ended them
        self._queue: queue.Queue[tuple[Any, BaseException | None]] = queue.Queue(AHEAD)
        threading.Thread(target=self._read, args=(items,), daemon=True).start()

    def __next__(self) -> T:
        item, end = self._queue.get()
        if end is not None:
            self._queue.put((item, end))  # further calls find the end again
            raise end
        return item

    def ready(self) -> bool:
        """Whether the next item, or the end, is available without waiting."""
        return not self._queue.empty()

    def _read(self, items: Iterator[T]) -> None:
        end: BaseException = StopIteration()
        try:
            for item in items:
                self._queue.put((item, None))
        except BaseException as error:
            end = error
        self._queue.put((None, end))
