"""Loads TensorFlow quietly and fast."""

import contextlib
import gc
import importlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from typing import IO

_redirection = threading.Lock()  # file descriptor 2 is the process's


def import_tensorflow() -> None:
    """Imports TensorFlow without its start-up messages, about 0.3 s faster than `import
    tensorflow`, and Keras, which is to compute with it, whatever KERAS_BACKEND or
    keras.json says.

    The import makes about 400,000 objects that Python's garbage collector tracks, and
    they stay. The collector would look through them again and again while their number
    grows, so it pauses during the import.

    Raises ValueError if Keras was imported before with another backend.
    """
    given = os.environ.get("KERAS_BACKEND")
    os.environ["KERAS_BACKEND"] = "tensorflow"  # Keras reads it once
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with quiet_stderr():
            importlib.import_module("tensorflow")
            keras = importlib.import_module("keras")
    finally:
        if was_enabled:
            gc.enable()
        del os.environ["KERAS_BACKEND"]
        if given is not None:
            os.environ["KERAS_BACKEND"] = given
    backend = keras.config.backend()
    if backend != "tensorflow":
        raise ValueError(
            "t2tlite computes with Keras's backend tensorflow. Received:"
            f" {backend}. Set KERAS_BACKEND=tensorflow before Keras is imported."
        )


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Suppresses output to file descriptor 2 inside the block, and prints it if the
    block fails.

    TensorFlow writes its start-up messages there before any logging level takes effect.
    Nothing is suppressed if the environment asks for these messages, with a
    TF_CPP_MIN_LOG_LEVEL below 3. A block inside another, or beside it in another
    thread, leaves the descriptor to the one that began first.
    """
    is_asked_for = os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") < "3"
    if is_asked_for or not _redirection.acquire(blocking=False):
        yield
        return
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        with _temporary_file() as file:
            os.dup2(file.fileno(), 2)
            try:
                yield
            except BaseException:
                file.seek(0)
                os.write(stderr, file.read())
                raise
            finally:
                os.dup2(stderr, 2)
    finally:
        os.close(stderr)
        _redirection.release()


def _temporary_file() -> IO[bytes]:
    """Opens an empty file, in memory where the system can: no folder may be
    writable.
    """
    if hasattr(os, "memfd_create"):
        return open(os.memfd_create("stderr"), "w+b")
    return tempfile.TemporaryFile()
