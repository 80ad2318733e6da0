"""TensorFlow's functions run operation by operation."""

import contextlib
from collections.abc import Iterator

import tensorflow as tf


@contextlib.contextmanager
def run_eagerly() -> Iterator[None]:
    """Within it, functions of TensorFlow are not compiled: to run one a few times is
    faster than to compile it.
    """
    tf.config.run_functions_eagerly(True)
    try:
        yield
    finally:
        tf.config.run_functions_eagerly(False)
