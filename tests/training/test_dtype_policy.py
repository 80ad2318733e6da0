"""dtype_policy=auto and jit_compile=auto: what is fastest on the hardware, resolved once
and recorded; and the programs of XLA that a run keeps.
"""

import dataclasses
import json
import re
import subprocess
import sys

import pytest
import tensorflow as tf
from tiny_run import trainer_flags

from t2tlite.config import HParams
from t2tlite.training import strategy as strategies
from t2tlite.training.strategy import (
    device_lines,
    make_strategy,
    with_choices,
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
    given = dataclasses.replace(AUTO, jit_compile=True)
    chosen = with_choices(given, cpu, 1)
    assert chosen.dtype_policy == policy
    line, *_ = device_lines(given, chosen, cpu)
    assert re.match(r"Training on \S+ CPU, \d+ cores, in ", line)
    assert line.endswith(f", in {policy} (dtype_policy=auto), compiled by XLA.")


def test_replicas_on_the_cpu_are_named(cpu_devices):
    """The test process has four logical devices of the CPU."""
    strategy = make_strategy(gpus=0, cpu_replicas=2)
    assert strategy.num_replicas_in_sync == 2
    line, *_ = device_lines(HParams(), HParams(), strategy)
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
    _, advice = device_lines(HParams(), HParams(), cpu)
    assert advice.endswith(f"pip install 'tensorflow[and-cuda]=={tf.__version__}'")
    # the CPU on purpose
    assert len(device_lines(HParams(), HParams(), cpu, gpus=0)) == 1
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "-1")
    assert len(device_lines(HParams(), HParams(), cpu)) == 1
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    monkeypatch.setattr(strategies, "has_nvidia_driver", lambda: False)
    assert len(device_lines(HParams(), HParams(), cpu)) == 1


def test_the_first_line_names_gpus_type_and_compilation(monkeypatch):
    monkeypatch.setattr(strategies, "device_name", lambda _: "NVIDIA H100")
    start = "Training on 2 replicas on NVIDIA H100, in float32"
    hparams = HParams(jit_compile=False)
    assert device_lines(hparams, hparams, Gpus) == [f"{start}, without XLA."]
    compiled = HParams(jit_compile=True)
    line, shapes = device_lines(HParams(), compiled, Gpus)
    assert line == f"{start}, compiled by XLA (jit_compile=auto)."
    assert shapes.startswith("XLA compiles up to 12 shapes of batches")


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
    assert with_choices(AUTO, Gpus, 1).dtype_policy == policy


def test_what_is_recorded_or_named_stays(monkeypatch, cpu):
    monkeypatch.setattr(strategies, "cpu_has_bfloat16", lambda: True)
    recorded = HParams(dtype_policy="float32")
    assert with_choices(AUTO, cpu, 1, recorded).dtype_policy == "float32"
    named = HParams(dtype_policy="mixed_bfloat16", jit_compile=True)
    assert with_choices(named, cpu, 1) == named


def test_xla_compiles_long_trainings_on_gpus(cpu):
    """From 200 million tokens a replica on: 48,829 steps of 4,096."""
    for steps, uses_xla in ((48_828, False), (48_829, True)):
        hparams = with_choices(HParams(), Gpus, steps)
        assert hparams.jit_compile is uses_xla
    assert with_choices(HParams(), cpu, 10**6).jit_compile is False
    undecided = HParams()
    assert not undecided.uses_xla

    # a run resumes as it began, wherever, and however long
    for recorded in (False, True):
        before = HParams(**json.loads(json.dumps({"jit_compile": recorded})))
        for strategy in (cpu, Gpus):
            chosen = with_choices(HParams(), strategy, 10**6, before)
            assert chosen.jit_compile is recorded


@pytest.mark.slow
def test_a_run_that_resumes_compiles_nothing_again(tiny_run, tmp_path):
    """Each process finds the programs of the one before, though it has restored a
    checkpoint.
    """
    run = tmp_path / "a run"
    changes = "jit_compile=true,min_length_bucket=64,max_length=64"
    kept = []
    for steps in (1, 2):
        flags = trainer_flags(tiny_run, run, f"--train_steps={steps}")
        command = [sys.executable, "-m", "t2tlite.bin.t2t_trainer", *flags]
        subprocess.run([*command, f"--hparams={changes}"], check=True)
        programs = sorted(run.glob("xla/*/*.pb"))
        kept.append([(file, file.stat().st_mtime_ns) for file in programs])
    assert kept[0] == kept[1] != []
