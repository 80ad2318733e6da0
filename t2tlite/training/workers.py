"""Coordination of workers: they train the same, stop at the same step, and notice a
lost worker.
"""

from __future__ import annotations

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
MAX_BYTES = 16_384  # of a text that a worker sends to the others


def is_chief(strategy: tf.distribute.Strategy) -> bool:
    """Whether this process writes the run directory: the only one, the chief, or
    without one worker 0.
    """
    cluster = strategy.cluster_resolver
    jobs = cluster.cluster_spec().jobs if cluster else []
    return not jobs or (cluster.task_type, cluster.task_id) == (
        "chief" if "chief" in jobs else "worker",
        0,
    )


def worker_names(strategy: tf.distribute.Strategy) -> list[str]:
    """The workers in the order of their replicas, ["chief 0", "worker 0"]; [""] for one
    that is alone.
    """
    if not strategy.cluster_resolver:
        return [""]
    spec = strategy.cluster_resolver.cluster_spec()
    names = []
    for job in sorted(spec.jobs):
        names += [f"{job} {index}" for index in spec.task_indices(job)]
    return names or [""]


def gather(strategy: tf.distribute.Strategy, text: str) -> list[str]:
    """The text of each worker, in the order of `worker_names`; waits until all have
    called it.

    ValueError if the text has more than 16,384 bytes.
    """
    workers = len(worker_names(strategy))
    if workers == 1:
        return [text]
    content = np.frombuffer(text.encode(), np.uint8)
    if len(content) > MAX_BYTES:
        raise ValueError(
            f"A worker's text must have at most {MAX_BYTES:,} bytes. Received:"
            f" {len(content):,}."
        )
    # which every collective can send
    row = np.pad(content, (0, MAX_BYTES - len(content))).astype(np.float32)

    @tf.function(autograph=False)
    def gathered() -> tf.Tensor:
        rows = strategy.run(
            lambda: tf.distribute.get_replica_context().all_gather(
                tf.constant(row)[None], axis=0
            )
        )
        return strategy.experimental_local_results(rows)[0]

    rows = gathered().numpy().astype(np.uint8)  # [replicas, MAX_BYTES]
    return [
        row.tobytes().rstrip(b"\0").decode() for row in rows[:: len(rows) // workers]
    ]


def check_workers_agree(
    strategy: tf.distribute.Strategy, settings: Mapping[str, Any]
) -> None:
    """Raises ValueError on every worker if they differ in one of these settings, which
    JSON can express.
    """
    received = [json.loads(text) for text in gather(strategy, json.dumps(settings))]
    differing = []
    for name in settings:
        values = [other.get(name) for other in received]
        if values.count(values[0]) < len(values):
            differing.append(name)
    if not differing:
        return
    shown = []
    for worker, other in zip(worker_names(strategy), received, strict=True):
        values = [f"{name} {other.get(name)}" for name in differing]
        shown.append(f"{worker} has {', '.join(values)}")
    raise ValueError(
        f"All workers must train the same. Received: {'; '.join(shown)}. Give all the"
        " same command, the same version of t2tlite, and an --output_dir that they"
        " share; without a shared folder, copy the chief's run to the others."
    )


def wait_for_workers(strategy: tf.distribute.Strategy) -> None:
    """Returns when all workers have called it, so that none ends while others need
    it.
    """
    gather(strategy, "")


@contextlib.contextmanager
def chief_first(strategy: tf.distribute.Strategy) -> Iterator[None]:
    """Runs a block on the chief, and then on the other workers."""
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
        lines = [line.strip() for line in str(error).splitlines()]
        reason = next(
            (
                line
                for line in lines
                if line.startswith("Collective ops is aborted by:")
            ),
            lines[0],
        )
        raise ConnectionError(
            "A worker was lost: it ended or cannot be reached; its own messages say"
            f" why ({reason}). Start all workers again with the same command: training"
            " resumes from the newest checkpoint."
        ) from error


class Stop:
    """Lets all workers stop at the same step when one of them is asked to.

    The step sums the workers' requests. The sum of a step is read after the next step
    has been started, so that no device waits for Python.
    """

    def __init__(self, strategy: tf.distribute.Strategy) -> None:
        self._alone = len(worker_names(strategy)) == 1
        self._before: Any = 0.0

    def agreed(self, requested: bool, sum_of_step: Any, at_once: bool = False) -> bool:
        """Whether to stop now.

        `requested` is whether this worker was asked to, `sum_of_step` a result of the
        last step. With `at_once`, before an evaluation, waits for that result.
        """
        if self._alone:
            return requested
        sums = [self._before, sum_of_step] if at_once else [self._before]
        self._before = sum_of_step
        return any(float(requests) > 0.0 for requests in sums)
