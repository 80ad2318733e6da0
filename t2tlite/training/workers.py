"""Several processes that train together: which they are, and how they start, stop and
end together.
"""

import contextlib
import json
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import tensorflow as tf

Strategy: TypeAlias = tf.distribute.Strategy

VARIABLE = "TF_CONFIG"
EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]},'
    ' "task": {"type": "worker", "index": 0}}'
)
# each of SLURM's jobs has ports of its own, for 16 tasks on a machine
SLURM_PORTS = range(15_000, 31_000, 16)
LOST = (
    tf.errors.UnavailableError,
    tf.errors.DeadlineExceededError,
    tf.errors.AbortedError,
    tf.errors.CancelledError,
)
ABORTED = "Collective ops is aborted by:"  # what the cause follows
MAX_BYTES = 4096  # of a text that a worker sends to the others


class Cluster(NamedTuple):
    """The addresses HOST:PORT of the workers that train together."""

    addresses: list[str]  # of all, the chief's first if there is one
    address: str  # of this process


def find_cluster(resolver: str = "tf_config") -> Cluster | None:
    """The workers that TF_CONFIG lists, or with "slurm" SLURM; None if this process is
    alone.

    Raises ValueError if the list is wrong. With SLURM, sets TF_CONFIG in the
    environment.
    """
    if resolver == "slurm":
        _set_slurm_workers()
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    try:
        resolved = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        spec = resolved.cluster_spec()
        address = spec.task_address(resolved.task_type, resolved.task_id)
        jobs = spec.as_dict()
        chiefs = jobs.pop("chief", [])
        addresses = [*chiefs, *jobs.pop("worker", [])]
        have_ports = all(re.fullmatch(r".+:\d+", each) for each in addresses)
        if jobs or len(chiefs) > 1 or not have_ports:
            raise ValueError("a job or HOST:PORT is wrong")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{VARIABLE} must be like {EXAMPLE}, on each worker with its own index."
            f" Received: {text!r}: {error}."
        ) from error
    return Cluster(addresses, address) if len(addresses) > 1 else None


def _set_slurm_workers() -> None:
    """Sets TF_CONFIG to the tasks of the job step that srun started, by TensorFlow's
    own resolver.
    """
    try:
        job_number = int(os.environ.get("SLURM_JOB_ID", "0"))
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=SLURM_PORTS[job_number % len(SLURM_PORTS)],
            # tasks; SLURM itself says which GPUs a task sees
            gpus_per_node=SLURM_PORTS.step,
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        jobs = resolver.cluster_spec().as_dict()
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"--cluster_resolver=slurm needs a job step (srun t2t-trainer): {error}"
        ) from error
    job, index = resolver.get_task_info()
    task = {"type": job, "index": index}
    os.environ[VARIABLE] = json.dumps({"cluster": jobs, "task": task})


def worker_names(strategy: Strategy) -> list[str]:
    """The workers in the order of their replicas: ["chief 0", "worker 0"], or [""] for
    a process without a cluster.
    """
    names = []
    if strategy.cluster_resolver:
        spec = strategy.cluster_resolver.cluster_spec()
        for kind in sorted(spec.jobs):
            names += [f"{kind} {index}" for index in spec.task_indices(kind)]
    return names or [""]


def is_chief(strategy: Strategy) -> bool:
    """Whether this process writes the run directory: it is the only one, the chief, or
    worker 0 of a cluster without a chief.
    """
    first = worker_names(strategy)[0]
    resolver = strategy.cluster_resolver
    return not first or first == f"{resolver.task_type} {resolver.task_id}"


def gather(strategy: Strategy, text: str) -> list[str]:
    """Sends a text of at most MAX_BYTES to all workers, waits until all have called it,
    and returns their texts in the order of `worker_names`.
    """
    workers = len(worker_names(strategy))
    if workers == 1:
        return [text]
    content = text.encode().ljust(MAX_BYTES, b"\0")
    # float32, which every collective can send
    row = np.frombuffer(content, np.uint8).astype(np.float32)

    def gathered_rows() -> tf.Tensor:
        replica = tf.distribute.get_replica_context()
        return replica.all_gather(tf.constant(row)[None], axis=0)

    @tf.function(autograph=False)
    def gathered() -> tf.Tensor:
        rows = strategy.run(gathered_rows)
        return strategy.experimental_local_results(rows)[0]

    rows = gathered().numpy().astype(np.uint8)  # [replicas, MAX_BYTES]
    texts = []
    for row in rows[:: len(rows) // workers]:
        texts.append(row.tobytes().rstrip(b"\0").decode())
    return texts


def check_workers_agree(strategy: Strategy, trained: str) -> None:
    """Raises ValueError on every worker if they differ in what they train, a line of
    text.
    """
    lines = gather(strategy, trained)
    if len(set(lines)) > 1:
        workers = map(" has ".join, zip(worker_names(strategy), lines, strict=True))
        raise ValueError(
            f"All workers need the same command and --output_dir. Received:"
            f" {'; '.join(workers)}."
        )


def wait_for_workers(strategy: Strategy) -> None:
    """Returns once all workers have called it."""
    gather(strategy, "")


@contextlib.contextmanager
def lost_worker_is_an_error(strategy: Strategy) -> Iterator[None]:
    """Raises ConnectionError for TensorFlow's errors when another worker has ended or
    cannot be reached.
    """
    try:
        yield
    except LOST as error:
        if len(worker_names(strategy)) == 1:
            raise
        cause, *_ = str(error).split(ABORTED)[-1].strip().splitlines()
        raise ConnectionError(
            f"A worker was lost; its own messages say why ({cause}). Start all again"
            " with the same command."
        ) from error


class Stop:
    """Lets all workers stop at the same step when one of them is asked to.

    A training step sums the workers' requests. The sum is read after the next step has
    been started, so that no device waits for Python.
    """

    def __init__(self, strategy: Strategy) -> None:
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
