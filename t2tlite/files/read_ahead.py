"""Reads a pipe ahead in a thread, so that lines that have arrived can be used while
waiting for more.
"""

import queue
import threading
from collections.abc import Iterator
from typing import Generic, TypeVar

T = TypeVar("T")

AHEAD = 10_000  # items read ahead at most


class ReadAhead(Iterator[T], Generic[T]):
    """The items of an iterator, which a thread reads; an exception of the iterator is
    raised in its place.
    """

    def __init__(self, items: Iterator[T]) -> None:
        self._queue: queue.Queue[tuple[str, object]] = queue.Queue(AHEAD)
        threading.Thread(target=self._read, args=(items,), daemon=True).start()

    def __next__(self) -> T:
        kind, value = self._queue.get()
        if kind == "item":
            return value  # type: ignore[return-value]
        self._queue.put((kind, value))  # further calls find the end again
        raise value if isinstance(value, BaseException) else StopIteration

    def ready(self) -> bool:
        """Whether the next item, or the end, is available without waiting."""
        return not self._queue.empty()

    def _read(self, items: Iterator[T]) -> None:
        try:
            for item in items:
                self._queue.put(("item", item))
        except BaseException as error:
            self._queue.put(("end", error))
        else:
            self._queue.put(("end", None))
