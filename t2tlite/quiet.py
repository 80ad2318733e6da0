"""Loads TensorFlow quietly and fast."""

import contextlib
import gc
import importlib
import os
import sys
import threading
from collections.abc import Iterator

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
    if keras.config.backend() != "tensorflow":
        raise ValueError(
            "t2tlite needs Keras's backend tensorflow. Set KERAS_BACKEND=tensorflow"
            " before Keras is imported."
        )


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Suppresses output to file descriptor 2 inside the block.

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
        with open(os.devnull, "wb") as nothing:
            os.dup2(nothing.fileno(), 2)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
        _redirection.release()
