"""dtype_policy=auto: what the hardware has, resolved once and recorded."""

import dataclasses
import re

import pytest
import tensorflow as tf

from t2tlite.config import HParams
from t2tlite.training import strategy as strategies
from t2tlite.training.strategy import (
    device_lines,
    make_strategy,
    with_dtype_policy,
)

AUTO = HParams(dtype_policy="auto")


@pytest.fixture(scope="module")
def cpu():
    return tf.distribute.MirroredStrategy(["CPU:0"])


class Gpus:
    """Stands in for a strategy on two GPUs."""

    num_replicas_in_sync = 2

    class extended:
        worker_devices = (
            "/job:localhost/replica:0/task:0/device:GPU:0",
            "/device:GPU:1",
        )


@pytest.mark.parametrize(
    ("fast", "policy"), [(True, "mixed_bfloat16"), (False, "float32")]
)
def test_on_a_cpu(monkeypatch, cpu, fast, policy):
    monkeypatch.setattr(strategies, "cpu_has_bfloat16", lambda: fast)
    assert with_dtype_policy(AUTO, cpu).dtype_policy == policy
    line, *_ = device_lines(dataclasses.replace(AUTO, jit_compile=True), cpu)
    assert re.match(r"Training on \S+ CPU, \d+ cores, in ", line)
    assert line.endswith(f", in {policy} (dtype_policy=auto), compiled by XLA.")


def test_replicas_on_the_cpu_are_named(cpu_devices):
    """The test process has four logical devices of the CPU."""
    strategy = make_strategy(gpus=0, cpu_replicas=2)
    assert strategy.num_replicas_in_sync == 2
    line, *_ = device_lines(HParams(), strategy)
    assert line.startswith("Training on 2 replicas on ")


def test_replicas_on_the_cpu_need_a_cpu_alone(monkeypatch):
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: ["GPU:0"])
    message = "--worker_cpu is for one machine without a GPU, or with --worker_gpu=0"
    with pytest.raises(ValueError, match=message):
        make_strategy(cpu_replicas=2)
    with pytest.raises(ValueError, match=message):
        make_strategy(0, cluster="two workers", cpu_replicas=2)


def test_a_driver_without_a_gpu_is_reported(monkeypatch, cpu):
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(strategies, "has_nvidia_driver", lambda: True)
    _, advice = device_lines(HParams(), cpu)
    assert advice.endswith(f"pip install 'tensorflow[and-cuda]=={tf.__version__}'")
    # the CPU on purpose
    assert len(device_lines(HParams(), cpu, gpus=0)) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert len(device_lines(HParams(), cpu)) == 1
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(strategies, "has_nvidia_driver", lambda: False)
    assert len(device_lines(HParams(), cpu)) == 1


def test_the_first_line_names_gpus_type_and_compilation(monkeypatch):
    monkeypatch.setattr(strategies, "device_name", lambda _: "NVIDIA H100")
    hparams = HParams(dtype_policy="float32")
    line, advice = device_lines(hparams, Gpus)
    assert line == "Training on 2 replicas on NVIDIA H100, in float32, without XLA."
    assert "--hparams=jit_compile=true" in advice
    compiled = dataclasses.replace(hparams, jit_compile=True)
    assert device_lines(compiled, Gpus) == [
        "Training on 2 replicas on NVIDIA H100, in float32, compiled by XLA."
    ]


@pytest.mark.parametrize(
    ("capabilities", "policy"),
    [
        ([(8, 0), (9, 0)], "mixed_bfloat16"),
        ([(8, 6), (7, 5)], "float32"),
        ([None, None], "float32"),
    ],
)
def test_on_gpus(monkeypatch, capabilities, policy):
    details = [{"compute_capability": each} if each else {} for each in capabilities]
    gpus = range(len(details))
    monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: gpus)
    monkeypatch.setattr(
        tf.config.experimental, "get_device_details", lambda gpu: details[gpu]
    )
    assert with_dtype_policy(AUTO, Gpus).dtype_policy == policy


def test_what_is_recorded_or_named_stays(monkeypatch, cpu):
    monkeypatch.setattr(strategies, "cpu_has_bfloat16", lambda: True)
    recorded = HParams(dtype_policy="float32")
    assert with_dtype_policy(AUTO, cpu, recorded).dtype_policy == "float32"
    named = HParams(dtype_policy="mixed_bfloat16")
    assert with_dtype_policy(named, cpu) == named
