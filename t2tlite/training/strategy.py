"""The devices that train."""

import contextlib
import dataclasses
import os
import platform
import socket
import threading
from collections.abc import Iterator

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.machine import cores_each, cpu_has_bfloat16, has_nvidia_driver
from t2tlite.training.signals import keeping_handlers
from t2tlite.training.workers import VARIABLE, Cluster, Strategy

# compute capability of the first GPUs that multiply in bfloat16
BFLOAT16_CAPABILITY = (8, 0)
REPORT_ABSENT_SECONDS = 30.0  # between reports of workers that are absent


def make_strategy(
    gpus: int | None = None,
    cluster: Cluster | None = None,
    cpu_replicas: int = 1,
) -> Strategy:
    """The strategy that trains data parallel on this machine, or on all workers of a
    cluster.

    `gpus` is the number of GPUs of this machine to use: None for all, 0 for the CPU,
    which is also used if there is no GPU. `cpu_replicas` then share its cores, which
    must be known before TensorFlow computes. Waits until all workers of the cluster
    have called it. Raises ValueError if there are fewer GPUs, or several replicas are
    wanted where the CPU does not train alone; and ConnectionError if a worker cannot be
    reached.
    """
    present = tf.config.list_physical_devices("GPU")
    if gpus is not None and not 0 <= gpus <= len(present):
        raise ValueError(
            f"--worker_gpu must be at most {len(present)}, which TensorFlow sees."
            f" Received: {gpus}."
        )
    used = present[:gpus]
    if cpu_replicas > 1 and (cluster or used):
        raise ValueError(
            "--worker_cpu is for one machine without a GPU, or with --worker_gpu=0."
        )
    if cluster is None:
        names = [f"GPU:{i}" for i in range(len(used))]
        return tf.distribute.MirroredStrategy(names or _cpu_devices(cpu_replicas))
    tf.config.set_visible_devices(used, "GPU")
    try:
        with _reporting_absent_workers(cluster), keeping_handlers():
            return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.OpError as error:
        raise ConnectionError(
            f"{cluster.address}, of {VARIABLE}, must be a free port of this machine."
            f" Received: {str(error).splitlines()[0]}"
        ) from error


def _cpu_devices(count: int) -> list[str]:
    """Names of so many logical devices of the CPU, among which its threads are
    divided.
    """
    (cpu,) = tf.config.list_physical_devices("CPU")
    if count > len(tf.config.get_logical_device_configuration(cpu) or [cpu]):
        devices = [tf.config.LogicalDeviceConfiguration()] * count
        tf.config.set_logical_device_configuration(cpu, devices)
        tf.config.threading.set_intra_op_parallelism_threads(cores_each(count))
    return [f"CPU:{i}" for i in range(count)]


@contextlib.contextmanager
def _reporting_absent_workers(cluster: Cluster) -> Iterator[None]:
    """Reports workers that cannot be reached during the block. TensorFlow ends it after
    an hour.
    """
    done = threading.Event()

    def watch() -> None:
        while not done.wait(REPORT_ABSENT_SECONDS):
            absent = "; ".join(filter(None, map(_why_unreachable, cluster.addresses)))
            # it may be set while this waits for an address
            if absent and not done.is_set():
                say(f"Waiting for other workers: {absent}.")

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _why_unreachable(address: str) -> str:
    """The reason why an address cannot be reached; empty if it can."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError as error:
        return f"{address} ({error.strerror or error})"
    return ""


def with_dtype_policy(
    hparams: HParams,
    strategy: Strategy,
    recorded: HParams | None = None,
) -> HParams:
    """The hparams with "auto" replaced by the policy `recorded` in the run to resume,
    or by the fastest one of the devices.
    """
    if hparams.dtype_policy != "auto":
        return hparams
    if recorded:
        return dataclasses.replace(hparams, dtype_policy=recorded.dtype_policy)
    fast = cpu_has_bfloat16()
    if trains_on_gpu(strategy):
        capabilities = []
        for gpu in tf.config.list_physical_devices("GPU"):
            details = tf.config.experimental.get_device_details(gpu)
            capabilities.append(details.get("compute_capability", (0, 0)))
        fast = min(capabilities) >= BFLOAT16_CAPABILITY
    policy = "mixed_bfloat16" if fast else "float32"
    return dataclasses.replace(hparams, dtype_policy=policy)


def device_lines(
    hparams: HParams,
    strategy: Strategy,
    recorded: HParams | None = None,
    gpus: int | None = None,
) -> list[str]:
    """Says which devices train, in which type, and whether XLA compiles; then what
    would make a GPU faster, or, if the machine has an NVIDIA driver and TensorFlow sees
    no GPU, what to install.

    `recorded` are the hparams of the run to resume. `gpus` is the number of GPUs that
    was asked for: with 0 the CPU is not a surprise.
    """
    policy = with_dtype_policy(hparams, strategy, recorded).dtype_policy
    if hparams.dtype_policy == "auto":
        policy += " (dtype_policy=auto)"
    xla = "compiled by XLA" if hparams.jit_compile else "without XLA"
    device = device_name(strategy)
    count = strategy.num_replicas_in_sync
    if count > 1:
        device = f"{count} replicas on {device}"
    lines = [f"Training on {device}, in {policy}, {xla}."]
    hidden = gpus == 0 or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if trains_on_gpu(strategy):
        if not hparams.jit_compile:
            lines.append(
                "A GPU trains about three times as fast with"
                " --hparams=jit_compile=true, once XLA has compiled each shape of a"
                " batch."
            )
    elif not hidden and has_nvidia_driver():
        lines.append(
            "This machine has an NVIDIA driver, but TensorFlow sees no GPU. Install its"
            f" CUDA libraries: pip install 'tensorflow[and-cuda]=={tf.__version__}'"
        )
    return lines


def trains_on_gpu(strategy: Strategy) -> bool:
    """Whether the devices of this process are GPUs."""
    return "GPU" in strategy.extended.worker_devices[0]


def device_name(strategy: Strategy) -> str:
    """What a device of this process is, such as "Tesla P100-PCIE-16GB" or "x86_64 CPU,
    2 cores".
    """
    if not trains_on_gpu(strategy):
        return f"{platform.machine()} CPU, {os.cpu_count()} cores"
    first = tf.config.list_physical_devices("GPU")[0]
    details = tf.config.experimental.get_device_details(first)
    return details.get("device_name", "GPU")
