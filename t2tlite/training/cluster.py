"""The workers that train together, from TensorFlow's variable TF_CONFIG or SLURM's job
step.
"""

from __future__ import annotations

import dataclasses
import json
import os

import msgspec
import tensorflow as tf

from t2tlite.json_depth import check_depth

VARIABLE = "TF_CONFIG"
TYPES = ("chief", "worker")
EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker",'
    ' "index": 0}}'
)
# each of SLURM's jobs has ports of its own, for 16 tasks on a machine
SLURM_PORTS = range(15_000, 31_000, 16)


@dataclasses.dataclass(frozen=True)
class WorkerRole:
    """The role of a process among the workers."""

    type: str  # "chief" or "worker"
    index: int


@dataclasses.dataclass(frozen=True)
class Cluster:
    """The workers, and the role of this process among them: the content of
    TF_CONFIG.
    """

    cluster: dict[str, list[str]]  # "chief" and "worker" -> HOST:PORT of each
    task: WorkerRole

    def __post_init__(self) -> None:
        for kind, addresses in self.cluster.items():
            if kind not in TYPES:
                raise ValueError(
                    f"the jobs of a cluster must be chief or worker, not {kind!r}: all"
                    " workers train."
                )
            if kind == "chief" and len(addresses) != 1:
                raise ValueError(f"there must be one chief, not {len(addresses)}.")
        for address in self.addresses:
            host, _, port = address.rpartition(":")
            if not host or not port.isdecimal() or not 0 < int(port) < 65_536:
                raise ValueError(f"an address must be HOST:PORT, not {address!r}.")
            if self.addresses.count(address) > 1:
                raise ValueError(
                    f"each worker must have an address of its own, but {address} is"
                    " there twice."
                )
        tasks = self.cluster.get(self.task.type, [])
        if not 0 <= self.task.index < len(tasks):
            known = []
            for kind, addresses in self.cluster.items():
                known.append(f"{kind} 0 to {len(addresses) - 1}")
            raise ValueError(
                f"the cluster has {', '.join(known) or 'no workers'}, but the task is"
                f" {self.task.type} {self.task.index}."
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
    elif resolver != "tf_config":
        raise ValueError(
            f"--cluster_resolver must be tf_config or slurm. Received: {resolver!r}."
        )
    text = os.environ.get(VARIABLE, "")
    if not text:
        return None
    try:
        check_depth(text)
        cluster = msgspec.json.decode(text, type=Cluster, strict=False)
    except (msgspec.DecodeError, ValueError) as error:
        raise ValueError(
            f"{VARIABLE} must be like {EXAMPLE}, on each worker with its own index, or"
            f" not be set. Received: {text!r}: {error}"
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
            "--cluster_resolver=slurm needs a job step (srun t2t-trainer). Received:"
            f" {error}"
        ) from error
    cluster = Cluster(spec, WorkerRole(*resolver.get_task_info()))
    host, _, _ = cluster.address.rpartition(":")
    name = os.environ.get("SLURMD_NODENAME", "")
    if name and host != name:
        raise ValueError(
            "SLURM's tasks must be in the order of their nodes' names, as TensorFlow's"
            f" resolver assumes. Received: task {cluster.task.index} on {name}, not on"
            f" {host}. Use srun --distribution=block, or set {VARIABLE}."
        )
    return cluster
