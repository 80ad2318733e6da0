"""The devices that train."""

from __future__ import annotations

import os

import tensorflow as tf


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


def gpu_name() -> str:
    """The model of the first GPU, such as "Tesla P100-PCIE-16GB"; "GPU" if TensorFlow does not know it."""
    details = tf.config.experimental.get_device_details(tf.config.list_physical_devices("GPU")[0])
    return details.get("device_name", "GPU")
