"""Signals that ask a run to stop: it saves a checkpoint first."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any, Self

from t2tlite.console import say

SIGNAL_NAMES = ("SIGINT", "SIGTERM", "SIGHUP")  # the last is not on Windows
STOPPING = tuple(number for number in signal.Signals if number.name in SIGNAL_NAMES)


def _handlers() -> dict[int, Any]:
    """The handlers of these signals that Python has set. Empty in a thread other than
    the main one, which may not set any.
    """
    handlers: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for number in STOPPING:
            handler = signal.getsignal(number)
            if handler is not None:
                handlers[number] = handler
    return handlers


@contextlib.contextmanager
def keeping_handlers() -> Iterator[None]:
    """Sets Python's signal handlers again after the block.

    A strategy of several workers replaces that of SIGTERM by one that only takes a note
    (TensorFlow's preemption_notifier.cc): the process would ignore the signal.
    """
    yield
    for number, handler in _handlers().items():
        signal.signal(number, handler)


@contextlib.contextmanager
def handling(handler: Callable[..., None]) -> Iterator[None]:
    """Lets a handler receive these signals during the block, but none that the process
    ignores, such as SIGHUP under nohup.
    """
    before = {}
    for number, earlier in _handlers().items():
        if earlier != signal.SIG_IGN:
            before[number] = signal.signal(number, handler)
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


class Interrupted(KeyboardInterrupt):
    """The run was asked to stop, and has saved a checkpoint unless it is at step 0."""

    def __init__(self, step: int, signal_number: int) -> None:
        name = signal.Signals(signal_number).name
        where = f"at step {step:,}; a checkpoint is saved"
        if step == 0:
            where = "before the first step"
        super().__init__(f"Stopped by {name} {where}. The same command continues.")
        self.signal_number = signal_number


class Signals:
    """Records the first SIGINT, SIGTERM or SIGHUP during a `with` block. A second one
    ends the process as usual.
    """

    def __init__(self) -> None:
        self.caught: int | None = None  # the number of the signal
        self._saved_step: int | None = None
        self._handling = contextlib.ExitStack()

    def __enter__(self) -> Self:
        self._handling.enter_context(handling(self._record))
        return self

    def __exit__(self, *_: object) -> None:
        self._handling.close()

    @property
    def came(self) -> bool:
        """Whether this process was asked to stop."""
        return self.caught is not None

    def interrupted(self, saved_step: int) -> Interrupted:
        """The exception that ends the run. It names SIGTERM if another worker was asked
        to stop.
        """
        return Interrupted(saved_step, self.caught or signal.SIGTERM)

    def check(self, saved_step: int) -> None:
        """Raises Interrupted if a signal came. Nothing may have changed since
        checkpoint `saved_step`.
        """
        if self.came:
            raise self.interrupted(saved_step)

    @contextlib.contextmanager
    def ending_at_once(self, saved_step: int) -> Iterator[None]:
        """Lets a signal raise Interrupted at any point of the block, which must not
        write files. A run that resumes repeats an evaluation.
        """
        self.check(saved_step)
        self._saved_step = saved_step
        try:
            yield
        finally:
            self._saved_step = None

    def _record(self, number: int, frame: object) -> None:
        self.caught = number
        self.__exit__()
        if self._saved_step is not None:
            raise Interrupted(self._saved_step, number)
        name = signal.Signals(number).name
        say(f"{name}: stopping, and saving what is trained; once more ends at once.")
