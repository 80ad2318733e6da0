"""The devices that train."""

from __future__ import annotations

import dataclasses
import os

import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.machine import cpu_has_bfloat16
from t2tlite.training.progress import report

BFLOAT16_CAPABILITY = (8, 0)  # compute capability of the first GPUs that multiply in bfloat16


def make_strategy(gpus: int | None = None) -> tf.distribute.Strategy:
    """Data-parallel training on this machine, or on several if TF_CONFIG is set.

    `gpus` says how many GPUs to use: None for all, 0 for the CPU, which also trains if there is no GPU. If there are
    not as many, raises a ValueError.
    """
    if os.environ.get("TF_CONFIG"):
        return tf.distribute.MultiWorkerMirroredStrategy()
    found = len(tf.config.list_physical_devices("GPU"))
    if gpus is not None and not 0 <= gpus <= found:
        raise ValueError(
            f"--worker_gpu must be from 0 to the number of GPUs that TensorFlow sees here, {found}. Received: {gpus}."
        )
    return tf.distribute.MirroredStrategy([f"GPU:{i}" for i in range(found if gpus is None else gpus)] or ["CPU:0"])


def with_dtype_policy(hparams: HParams, strategy: tf.distribute.Strategy, recorded: HParams | None = None) -> HParams:
    """The hparams with "auto" replaced by what the devices are fastest in, or by what a run to resume has recorded.

    Says so, and warns where bfloat16 was asked for on a CPU that does not have it.
    """
    on_gpu = "GPU" in strategy.extended.worker_devices[0]
    if hparams.dtype_policy == "auto":
        fast = _gpus_have_bfloat16() if on_gpu else cpu_has_bfloat16()
        policy = recorded.dtype_policy if recorded else "mixed_bfloat16" if fast else "float32"
        report(f"dtype_policy=auto is {policy} here.")
        hparams = dataclasses.replace(hparams, dtype_policy=policy)
    if hparams.dtype_policy == "mixed_bfloat16" and not on_gpu and not cpu_has_bfloat16():
        report("dtype_policy=mixed_bfloat16 is slower than float32 on this CPU, which has no bfloat16 instructions.")
    return hparams


def _gpus_have_bfloat16() -> bool:
    gpus = tf.config.list_physical_devices("GPU")
    details = [tf.config.experimental.get_device_details(gpu) for gpu in gpus]
    return all(found.get("compute_capability", (0, 0)) >= BFLOAT16_CAPABILITY for found in details)


def gpu_name() -> str:
    """The model of the first GPU, such as "Tesla P100-PCIE-16GB"; "GPU" if TensorFlow does not know it."""
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return details.get("device_name", "GPU")
