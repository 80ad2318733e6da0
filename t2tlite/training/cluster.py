"""The workers that train together, from TensorFlow's variable TF_CONFIG or SLURM's job
step.
"""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Annotated, Literal

import msgspec
import tensorflow as tf

VARIABLE = "TF_CONFIG"
EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker",'
    ' "index": 0}}'
)
# each of SLURM's jobs has ports of its own, for 16 tasks on a machine
SLURM_PORTS = range(15_000, 31_000, 16)


Job = Literal["chief", "worker"]
Address = Annotated[str, msgspec.Meta(pattern=r".:\d+$")]


@dataclasses.dataclass(frozen=True)
class WorkerRole:
    """The role of a process among the workers."""

    type: Job
    index: int


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers, and the role of this process among them: the content of
    TF_CONFIG.
    """

    cluster: dict[Job, list[Address]]  # HOST:PORT of each
    task: WorkerRole

    def __post_init__(self) -> None:
        chiefs = self.cluster.get("chief", [])
        is_unique = len(set(self.addresses)) == len(self.addresses)
        tasks = range(len(self.cluster.get(self.task.type, [])))
        if len(chiefs) > 1 or not is_unique or self.task.index not in tasks:
            raise ValueError(
                "the task must be one of the workers, each with an address of its own,"
                " and one the chief at most."
            )

    @property
    def addresses(self) -> list[str]:
        """The address of each worker, the chief's first if there is one."""
        return [*self.cluster.get("chief", []), *self.cluster.get("worker", [])]

    @property
    def address(self) -> str:
        """The address of this process."""
        return self.cluster[self.task.type][self.task.index]


def find_cluster(resolver: str = "tf_config") -> Cluster | None:
    """The workers that TF_CONFIG lists, or with "slurm" SLURM; None if this process is
    alone.

    Raises ValueError if the list is wrong. With SLURM, sets TF_CONFIG in the
    environment.
    """
    if resolver == "slurm":
        os.environ[VARIABLE] = json.dumps(dataclasses.asdict(_slurm_cluster()))
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    try:
        cluster = msgspec.json.decode(text, type=Cluster, strict=False)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise ValueError(
            f"{VARIABLE} must be like {EXAMPLE}, on each worker with its own index."
            f" Received: {text!r}: {error}"
        ) from error
    return cluster if len(cluster.addresses) > 1 else None


def _slurm_cluster() -> Cluster:
    """The tasks of the job step that srun started, by TensorFlow's own resolver."""
    try:
        number = int(os.environ.get("SLURM_JOB_ID", "0"))
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=SLURM_PORTS[number % len(SLURM_PORTS)],
            # tasks; SLURM itself says which GPUs a task sees
            gpus_per_node=SLURM_PORTS.step,
            gpus_per_task=1,
            auto_set_gpu=False,
        )
        spec = resolver.cluster_spec().as_dict()
    except (RuntimeError, ValueError) as error:
        raise ValueError(
            f"--cluster_resolver=slurm needs a job step (srun t2t-trainer): {error}"
        ) from error
    cluster = Cluster(spec, WorkerRole(*resolver.get_task_info()))
    host, _, _ = cluster.address.rpartition(":")
    name = os.environ.get("SLURMD_NODENAME", "")
    if name and host != name:
        raise ValueError(
            "SLURM's tasks must be in the order of their nodes' names. Received: task"
            f" {cluster.task.index} on {name}, not on {host}. Use srun"
            f" --distribution=block, or set {VARIABLE}."
        )
    return cluster
