"""Coordination of workers: they train the same, stop at the same step, and notice a
lost worker.
"""

import contextlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

LOST = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
)
ABORTED = "Collective ops is aborted by:"  # begins the line of the cause
MAX_BYTES = 16_384  # of a text that a worker sends to the others


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the run directory: it is the only one, the chief, or
    worker 0 of a cluster without a chief.
    """
    first = worker_names(strategy)[0]
    resolver = strategy.cluster_resolver
    return not first or first == f"{resolver.task_type} {resolver.task_id}"


def worker_names(strategy: tf.distribute.Strategy) -> list[str]:
    """The workers in the order of their replicas: ["chief 0", "worker 0"], or [""] for
    a process without a cluster.
    """
    names = []
    if strategy.cluster_resolver:
        spec = strategy.cluster_resolver.cluster_spec()
        for kind in sorted(spec.jobs):
            names += [f"{kind} {index}" for index in spec.task_indices(kind)]
    return names or [""]


def gather(strategy: tf.distribute.Strategy, text: str) -> list[str]:
    """Sends a text of at most MAX_BYTES to all workers, waits until all have called it,
    and returns their texts in the order of `worker_names`.
    """
    workers = len(worker_names(strategy))
    if workers == 1:
        return [text]
    content = np.frombuffer(text.encode(), np.uint8)
    row = np.pad(content, (0, MAX_BYTES - len(content)))
    row = row.astype(np.float32)  # which every collective can send

    @tf.function(autograph=False)
    def gathered() -> tf.Tensor:
        rows = strategy.run(
            lambda: tf.distribute.get_replica_context().all_gather(
                tf.constant(row)[None], axis=0
            )
        )
        return strategy.experimental_local_results(rows)[0]

    rows = gathered().numpy().astype(np.uint8)  # [replicas, MAX_BYTES]
    texts = []
    for row in rows[:: len(rows) // workers]:
        texts.append(row.tobytes().rstrip(b"\0").decode())
    return texts


def check_workers_agree(
    strategy: tf.distribute.Strategy, settings: Mapping[str, Any]
) -> None:
    """Raises ValueError on every worker if their settings, which JSON can express,
    differ.
    """
    received = list(map(json.loads, gather(strategy, json.dumps(settings))))
    shown = []
    for name in settings:
        values = [other.get(name) for other in received]
        if any(value != values[0] for value in values):
            for worker, value in zip(worker_names(strategy), values, strict=True):
                shown.append(f"{worker} has {name} {value}")
    if shown:
        raise ValueError(
            f"All workers must train the same. Received: {'; '.join(shown)}. Give all"
            " the same command, version of t2tlite and --output_dir, or a copy of the"
            " chief's."
        )


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Returns once all workers have called it."""
    gather(strategy, "")


@contextlib.contextmanager
def chief_first(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Runs a block on the chief first, and then on the other workers."""
    if not is_chief(strategy):
        wait_for_workers(strategy)
    yield
    if is_chief(strategy):
        wait_for_workers(strategy)


@contextlib.contextmanager
def lost_worker_is_an_error(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Raises ConnectionError for TensorFlow's errors when another worker has ended or
    cannot be reached.
    """
    try:
        yield
    except LOST as error:
        if len(worker_names(strategy)) == 1:
            raise
        lines = str(error).splitlines()
        lines.sort(key=lambda line: not line.strip().startswith(ABORTED))
        raise ConnectionError(
            f"A worker was lost: its own messages say why ({lines[0].strip()}). Start"
            " all workers again with the same command: training resumes."
        ) from error


class Stop:
    """Lets all workers stop at the same step when one of them is asked to.

    A training step sums the workers' requests. The sum is read after the next step has
    been started, so that no device waits for Python.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._alone = len(worker_names(strategy)) == 1
        self._before: Any = 0.0

    def agreed(self, requested: bool, sum_of_step: Any, at_once: bool = False) -> bool:
        """Whether to stop now.

        `requested` is whether this worker was asked to, `sum_of_step` the sum of the
        last step. With `at_once`, before an evaluation, this waits for that sum.
        """
        if self._alone:
            return requested
        sums = [self._before, sum_of_step] if at_once else [self._before]
        self._before = sum_of_step
        return any(float(requests) > 0.0 for requests in sums)
