"""The devices that train."""

import contextlib
import dataclasses
import os
import platform
import socket
import threading
from collections.abc import Iterator
from typing import Any

import tensorflow as tf

from t2tlite.checked_fields import AUTO
from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.data.batch_plan import MAX_SHAPES
from t2tlite.files.atomic_file import text_sha256
from t2tlite.machine import (
    cores_each,
    cpu_flags,
    cpu_has_bfloat16,
    has_nvidia_driver,
    nvidia_models,
)
from t2tlite.run_folder import RunFolder
from t2tlite.training.signals import keeping_handlers
from t2tlite.training.workers import VARIABLE, Cluster, Strategy

# compute capability of the first GPUs that multiply in bfloat16
BFLOAT16_CAPABILITY = (8, 0)
# tokens of the batches of each replica, from which on XLA repays compiling on a GPU:
# docs/performance.md
XLA_TOKENS = 200_000_000
XLA_FLAGS = "TF_XLA_FLAGS"  # the environment variable
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


def with_choices(
    hparams: HParams,
    strategy: Strategy,
    train_steps: int,
    recorded: HParams | None = None,
) -> HParams:
    """The hparams with each "auto" replaced by the value `recorded` in the run to
    resume, or by the one that trains fastest: the dtype policy, and whether XLA
    compiles.
    """
    on_gpu = trains_on_gpu(strategy)
    chosen: dict[str, Any] = {}
    if hparams.dtype_policy == AUTO:
        fast = _gpus_have_bfloat16() if on_gpu else cpu_has_bfloat16()
        chosen["dtype_policy"] = "mixed_bfloat16" if fast else "float32"
    if hparams.jit_compile == AUTO:
        replicas = strategy.num_replicas_in_sync
        tokens = hparams.batch_tokens(replicas) // replicas * train_steps
        chosen["jit_compile"] = on_gpu and tokens >= XLA_TOKENS
    if recorded:
        chosen = {name: getattr(recorded, name) for name in chosen}
    return dataclasses.replace(hparams, **chosen)


def _gpus_have_bfloat16() -> bool:
    capabilities = []
    for gpu in tf.config.list_physical_devices("GPU"):
        details = tf.config.experimental.get_device_details(gpu)
        capabilities.append(details.get("compute_capability", (0, 0)))
    return min(capabilities) >= BFLOAT16_CAPABILITY


@contextlib.contextmanager
def keeping_compiled(run: RunFolder) -> Iterator[None]:
    """Has TensorFlow keep the programs that XLA compiles for this machine in the run,
    and load them when it resumes, unless the variable TF_XLA_FLAGS is set.

    TensorFlow reads that once in a process, when it first looks for devices.
    """
    built_for = [tf.__version__, *sorted(cpu_flags()), *nvidia_models()]
    digest = text_sha256(" ".join(built_for))[:8]
    folder = run.own(f"xla/{digest}").resolve()
    is_set = XLA_FLAGS in os.environ
    if not is_set:
        os.environ[XLA_FLAGS] = f'--tf_xla_persistent_cache_directory="{folder}"'
    try:
        yield
    finally:
        if not is_set:
            del os.environ[XLA_FLAGS]


def device_lines(
    hparams: HParams,
    chosen: HParams,
    strategy: Strategy,
    gpus: int | None = None,
) -> list[str]:
    """Says which devices train, in which type, and whether XLA compiles; then what that
    takes, or, if the machine has an NVIDIA driver and TensorFlow sees no GPU, what to
    install.

    `chosen` are the hparams `with_choices`. `gpus` is the number of GPUs that was asked
    for: with 0 the CPU is not a surprise.
    """
    policy = chosen.dtype_policy
    if hparams.dtype_policy == AUTO:
        policy += " (dtype_policy=auto)"
    xla = "compiled by XLA" if chosen.uses_xla else "without XLA"
    if hparams.jit_compile == AUTO:
        xla += " (jit_compile=auto)"
    device = device_name(strategy)
    count = strategy.num_replicas_in_sync
    if count > 1:
        device = f"{count} replicas on {device}"
    lines = [f"Training on {device}, in {policy}, {xla}."]
    hidden = gpus == 0 or os.environ.get("CUDA_VISIBLE_DEVICES") in ("", "-1")
    if chosen.uses_xla:
        lines.append(
            f"XLA compiles up to {MAX_SHAPES} shapes of batches, each in up to a"
            " minute; the run keeps the programs."
        )
    if not (hidden or trains_on_gpu(strategy)) and has_nvidia_driver():
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
