"""Suppresses what native libraries print while they are loaded."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from collections.abc import Iterator


@contextlib.contextmanager
def quiet_stderr() -> Iterator[None]:
    """Suppresses what is written to file descriptor 2 inside the block; prints it if the block fails.

    TensorFlow writes its start-up messages there before any logging level takes effect. Nothing is suppressed if the
    environment asks for these messages, with a TF_CPP_MIN_LOG_LEVEL below 3.
    """
    if os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3") < "3":
        yield
        return
    sys.stderr.flush()
    saved = os.dup(2)
    with tempfile.TemporaryFile() as held:
        os.dup2(held.fileno(), 2)
        try:
            yield
        except BaseException:
            os.dup2(saved, 2)
            held.seek(0)
            os.write(2, held.read())
            raise
        finally:
            os.dup2(saved, 2)
            os.close(saved)
