"""Loads TensorFlow quietly and fast."""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator


def import_tensorflow() -> None:
    """Imports TensorFlow without its start-up messages, about 0.3 s faster than `import
    tensorflow`, and Keras, which is to compute with it, whatever KERAS_BACKEND or
    keras.json says.

    The import makes about 400,000 objects that Python's garbage collector tracks, and
    they stay. The collector would look through them again and again while their number
    grows, so it pauses during the import.

    Raises ValueError if keras.json is bad, or if Keras was imported before with another
    backend.
    """
    given = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with quiet_stderr():
            importlib.import_module("tensorflow")
            keras = importlib.import_module("keras")
    except AssertionError:  # TensorFlow reads the file too
        raise ValueError(
            "floatx and epsilon in keras.json must be values of Keras, such as"
            ' "float32" and 1e-7. Received: others. Correct or delete the file, in'
            f" {os.environ.get('KERAS_HOME', '~/.keras')}."
        ) from None
    finally:
        if was_enabled:
            gc.enable()
        del os.environ["KERAS_BACKEND"]
        if given is not None:
            os.environ["KERAS_BACKEND"] = given
    backend = keras.config.backend()
    if backend != "tensorflow":
        raise ValueError(
            "t2tlite trains and translates with Keras's backend tensorflow. Received:"
            f" {backend}. Set KERAS_BACKEND=tensorflow before Keras is imported."
        )


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Suppresses output to file descriptor 2 inside the block, and prints it if the
    block fails.

    TensorFlow writes its start-up messages there before any logging level takes effect.
    Nothing is suppressed if the environment asks for these messages, with a
    TF_CPP_MIN_LOG_LEVEL below 3. Blocks may be nested or run in several threads at
    once: output is suppressed until the last of them ends.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") < "3":
        yield
        return
    start = _redirection.begin()
    try:
        yield
    except BaseException:
        _redirection.print_from(start)
        raise
    finally:
        _redirection.end()


def _temporary_file() -> int:
    """Opens an empty file without a name, in memory where the system can."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("stderr")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class _Redirection:
    """The redirection of file descriptor 2, one for the process. The first block begins
    it, the last one ends it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._blocks = 0
        self._stderr = -1  # a duplicate of the descriptor as it was
        self._file = -1  # what the blocks have written
        # where the output that was already printed ends in the file
        self._printed = 0

    def begin(self) -> int:
        """Begins a block, and returns where its output begins in the file."""
        with self._lock:
            if self._blocks == 0:
                sys.stderr.flush()
                self._file = _temporary_file()
                self._stderr = os.dup(2)
                self._printed = 0
                os.dup2(self._file, 2)
            self._blocks += 1
            return os.fstat(self._file).st_size

    def print_from(self, start: int) -> None:
        """Prints the output from `start` on, except what an inner block has printed."""
        with self._lock:
            start = max(start, self._printed)
            size = os.fstat(self._file).st_size
            # what the block writes goes to the end again
            os.lseek(self._file, start, os.SEEK_SET)
            output = os.read(self._file, size - start)
            os.lseek(self._file, 0, os.SEEK_END)
            os.write(self._stderr, output)
            self._printed = size

    def end(self) -> None:
        with self._lock:
            self._blocks -= 1
            if self._blocks == 0:
                os.dup2(self._stderr, 2)
                os.close(self._stderr)
                os.close(self._file)


_redirection = _Redirection()
