"""What every test finds: four processor devices, TensorFlow without its start-up messages, the fixture files."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # before TensorFlow is imported

import tensorflow as tf

NUM_DEVICES = 4  # the most replicas a test may ask for

# Only possible before TensorFlow first runs anything, so here and not in the fixture.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES
)


@pytest.fixture(scope="session")
def cpu_devices() -> list[str]:
    """Names of four processor devices, for tests that run several replicas: ["CPU:0", ..., "CPU:3"]."""
    return [f"CPU:{i}" for i in range(NUM_DEVICES)]


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of fixture files beside the project's root, or the one that T2TLITE_SHARED names."""
    default = Path(__file__).resolve().parents[2] / "shared"
    folder = Path(os.environ.get("T2TLITE_SHARED", default))
    if not (folder / "data").is_dir():
        pytest.skip(f"no fixture files at {folder}; the environment variable T2TLITE_SHARED can name another folder")
    return folder
