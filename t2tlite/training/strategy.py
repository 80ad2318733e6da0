"""The devices that train."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import socket
import threading
import time
from collections.abc import Iterator

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.console import say
from t2tlite.machine import cpu_has_bfloat16
from t2tlite.training.cluster import VARIABLE, Cluster

# compute capability of the first GPUs that multiply in bfloat16
BFLOAT16_CAPABILITY = (8, 0)
REPORT_ABSENT_SECONDS = 30.0  # how often workers that a worker waits for are reported
WAIT_SECONDS = 900.0  # for the other workers


def make_strategy(
    gpus: int | None = None, cluster: Cluster | None = None
) -> tf.distribute.Strategy:
    """Data-parallel training on this machine, or by the workers of a cluster together.

    `gpus` is the number of GPUs of this machine to use: None for all, 0 for the CPU,
    which is also used if there is no GPU. Raises ValueError if there are fewer. Waits
    until all workers of the cluster have called it; raises ConnectionError if that
    fails.
    """
    present = tf.config.list_physical_devices("GPU")
    if gpus is not None and not 0 <= gpus <= len(present):
        raise ValueError(
            "--worker_gpu must be from 0 to the number of GPUs that TensorFlow sees"
            f" here, {len(present)}. Received: {gpus}."
        )
    if cluster is None:
        names = [f"GPU:{i}" for i in range(len(present[:gpus]))]
        return tf.distribute.MirroredStrategy(names or ["CPU:0"])
    tf.config.set_visible_devices(present[:gpus], "GPU")
    try:
        with _reporting_absent_workers(cluster):
            return tf.distribute.MultiWorkerMirroredStrategy()
    except tf.errors.OpError as error:
        raise ConnectionError(
            f"The workers of {VARIABLE} must reach each other. Received:"
            f" {cluster.address}, which could not begin: {str(error).splitlines()[0]}"
            " Check that it is an address of this machine whose port is free, and that"
            f" all workers run: {', '.join(cluster.addresses)}."
        ) from error


@contextlib.contextmanager
def _reporting_absent_workers(cluster: Cluster) -> Iterator[None]:
    """In the block, reports workers that cannot be reached; in the end, ends the
    process with status 1.
    """
    done, until = threading.Event(), time.monotonic() + WAIT_SECONDS

    def watch() -> None:
        while not done.wait(REPORT_ABSENT_SECONDS):
            absent = "; ".join(filter(None, map(_why_unreachable, cluster.addresses)))
            if done.is_set():  # while this was waiting for an address
                return
            if time.monotonic() > until:
                say(
                    f"All workers of {VARIABLE} must begin within"
                    f" {WAIT_SECONDS / 60:.0f} minutes. Received:"
                    f" {absent or 'no answer from some'}. Start all of them, and check"
                    " the addresses."
                )
                # TensorFlow cannot be asked to stop waiting, which it would do for an
                # hour
                os._exit(1)
            if absent:
                say(f"Waiting for other workers: {absent}.")

    threading.Thread(target=watch, daemon=True).start()
    try:
        yield
    finally:
        done.set()


def _why_unreachable(address: str) -> str:
    """What is wrong with an address, or an empty string."""
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=5).close()
    except OSError as error:
        return f"{address} ({error.strerror or error})"
    return ""


def with_dtype_policy(
    hparams: HParams, strategy: tf.distribute.Strategy, recorded: HParams | None = None
) -> HParams:
    """The hparams with "auto" replaced by the devices' fastest policy, or by that
    recorded in the run to resume.

    Reports the policy, and warns if bfloat16 was chosen on a CPU that does not have it.
    """
    on_gpu = trains_on_gpu(strategy)
    if hparams.dtype_policy == "auto":
        fast = _gpus_have_bfloat16() if on_gpu else cpu_has_bfloat16()
        policy = "mixed_bfloat16" if fast else "float32"
        if recorded:
            policy = recorded.dtype_policy
        say(f"dtype_policy=auto is {policy} here.")
        hparams = dataclasses.replace(hparams, dtype_policy=policy)
    if (
        hparams.dtype_policy == "mixed_bfloat16"
        and not on_gpu
        and not cpu_has_bfloat16()
    ):
        say(
            "dtype_policy=mixed_bfloat16 is slower than float32 on this CPU, which has"
            " no bfloat16 instructions."
        )
    return hparams


def _gpus_have_bfloat16() -> bool:
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return all(
        gpu.get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY for gpu in details
    )


def trains_on_gpu(strategy: tf.distribute.Strategy) -> bool:
    """Whether the devices of this process are GPUs."""
    return "GPU" in strategy.extended.worker_devices[0]


def gpu_name() -> str:
    """The model of the first GPU, such as "Tesla P100-PCIE-16GB"; "GPU" if TensorFlow
    does not know it.
    """
    details = tf.config.experimental.get_device_details(
        tf.config.list_physical_devices("GPU")[0]
    )
    return details.get("device_name", "GPU")
