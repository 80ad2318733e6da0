"""The workers that train together, from TensorFlow's variable TF_CONFIG or SLURM's job
step.
"""

import json
import os
import re
from typing import NamedTuple

import tensorflow as tf

VARIABLE = "TF_CONFIG"
EXAMPLE = (
    '{"cluster": {"worker": ["host0:2222", "host1:2222"]}, "task": {"type": "worker",'
    ' "index": 0}}'
)
# each of SLURM's jobs has ports of its own, for 16 tasks on a machine
SLURM_PORTS = range(15_000, 31_000, 16)


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
        is_unique = len(set(addresses)) == len(addresses)
        has_ports = all(re.fullmatch(r".+:\d+", each) for each in addresses)
        if jobs or len(chiefs) > 1 or not is_unique or not has_ports:
            raise ValueError(
                "the jobs are worker, and one chief at most, and each task has a"
                " HOST:PORT of its own."
            )
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(
            f"{VARIABLE} must be like {EXAMPLE}, on each worker with its own index."
            f" Received: {text!r}: {error}"
        ) from error
    return Cluster(addresses, address) if len(addresses) > 1 else None


def _set_slurm_workers() -> None:
    """Sets TF_CONFIG to the tasks of the job step that srun started, by TensorFlow's
    own resolver.
    """
    try:
        number = int(os.environ.get("SLURM_JOB_ID", "0"))
        resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(
            port_base=SLURM_PORTS[number % len(SLURM_PORTS)],
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
