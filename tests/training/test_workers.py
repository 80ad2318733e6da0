"""Two worker processes on one machine: they train what one process trains, and end and
resume together.
"""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import tensorflow as tf
from tiny_run import checkpoint_names, tensors, trainer_flags

from t2tlite.bin import t2t_trainer
from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer
from t2tlite.programs.runs import train
from t2tlite.programs.runs.load import run_dataset
from t2tlite.run_folder import RunFolder
from t2tlite.training import workers
from t2tlite.training.learning_rates import make_optimizer
from t2tlite.training.loop_config import LoopConfig
from t2tlite.training.workers import (
    Stop,
    check_workers_agree,
    is_chief,
    lost_worker_is_an_error,
    worker_names,
)

SECONDS = 600  # for anything that two processes do: the machine may be busy


def cluster_of(jobs, address="host:{}"):
    """The cluster with these jobs, such as ["chief", "worker"], and the task of each
    process.
    """
    cluster: dict[str, list[str]] = {}
    tasks = []
    for number, job in enumerate(jobs):
        tasks.append((job, len(cluster.setdefault(job, []))))
        cluster[job].append(address.format(number))
    return cluster, tasks


def process(cluster, task):
    """A strategy of which only the cluster is known."""
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
        tf.train.ClusterSpec(cluster), task_type=task[0], task_id=task[1]
    )
    return SimpleNamespace(cluster_resolver=resolver)


@pytest.mark.parametrize(
    "jobs", [["worker", "worker"], ["chief", "worker", "worker"], ["chief"], ["worker"]]
)
def test_one_process_of_a_cluster_writes_the_run(jobs):
    cluster, tasks = cluster_of(jobs)
    assert [task for task in tasks if is_chief(process(cluster, task))] == tasks[:1]
    assert is_chief(tf.distribute.get_strategy())


def test_workers_that_differ_are_named(monkeypatch):
    cluster, tasks = cluster_of(["chief", "worker", "worker"])
    worker = process(cluster, tasks[2])
    assert worker_names(worker) == ["chief 0", "worker 0", "worker 1"]
    lines = ["step 6", "step 0", "step 6"]
    monkeypatch.setattr(workers, "gather", lambda *_: lines)
    message = (
        r"Received: chief 0 has step 6; worker 0 has step 0; worker 1 has step 6\."
    )
    with pytest.raises(ValueError, match=message):
        check_workers_agree(worker, lines[2])
    lines[1] = "step 6"
    check_workers_agree(worker, lines[2])


@pytest.mark.parametrize("name", ["evaluations.json", "best/best.json"])
def test_workers_with_other_evaluations_differ(tiny_run, tiny_run_copy, name):
    """They decide when to stop early; workers that do not agree would wait for each
    other in different places.
    """
    text = (tiny_run_copy / name).read_text()
    (tiny_run_copy / name).write_text(text.replace('"step": 120', '"step": 80'))
    dataset = run_dataset(RunFolder(tiny_run.run))
    hparams = RunFolder(tiny_run.run).hparams()
    config = LoopConfig(train_steps=130)
    lines = []
    for run in (tiny_run.run, tiny_run.run, tiny_run_copy):
        lines.append(train._what_is_trained(RunFolder(run), dataset, hparams, config))
    assert lines[0] == lines[1] != lines[2]
    assert lines[0].startswith("newest checkpoint 120, t2tlite ")


def test_lost_worker_is_one_message():
    cluster, tasks = cluster_of(["worker", "worker"])
    text = (
        "Graph execution error:\n\nCollective ops is aborted by: Connection reset by"
        " peer\nThe error could be"
    )
    with (
        pytest.raises(
            ConnectionError, match=r"A worker was lost; .*\(Connection reset"
        ),
        lost_worker_is_an_error(process(cluster, tasks[0])),
    ):
        raise tf.errors.UnavailableError(None, None, text)
    with (
        pytest.raises(tf.errors.UnavailableError, match="Connection reset"),
        lost_worker_is_an_error(tf.distribute.get_strategy()),
    ):
        raise tf.errors.UnavailableError(None, None, text)


def test_workers_stop_at_the_same_step():
    cluster, tasks = cluster_of(["worker", "worker"])
    stops = [Stop(process(cluster, task)) for task in tasks]
    agreed = []
    for requests in [(0, 0), (0, 1), (0, 1), (0, 1)]:  # the second is, during step 1
        total = tf.constant(float(sum(requests)))
        for stop, requested in zip(stops, requests, strict=True):
            agreed.append(stop.agreed(bool(requested), total))
    assert agreed == [False] * 4 + [True] * 4
    waiting = Stop(process(cluster, tasks[0]))
    assert waiting.agreed(False, tf.constant(1.0), at_once=True)
    alone = Stop(tf.distribute.get_strategy())
    assert [alone.agreed(now, 0.0) for now in (False, True)] == [False, True]


@pytest.mark.parametrize("policy", ["float32", "mixed_float16"])
def test_chief_can_save_alone(cpu_devices, policy):
    """Reading a variable that is added up over the replicas would need the other
    workers.
    """
    hparams = HParams(
        hidden_size=8,
        filter_size=8,
        num_heads=1,
        num_hidden_layers=1,
        dtype_policy=policy,
    )
    strategy = tf.distribute.MirroredStrategy(cpu_devices[:2])
    with strategy.scope():
        model = Transformer.from_hparams(hparams, 20, 20)
        optimizer = make_optimizer(model)
    kept = [variable.value for variable in (*model.variables, *optimizer.variables)]
    assert len(kept) > 30
    assert {variable.synchronization for variable in kept} <= {
        tf.VariableSynchronization.AUTO,
        tf.VariableSynchronization.ON_WRITE,
    }


def free_ports(count: int) -> list[int]:
    sockets = [socket.socket() for _ in range(count)]
    for listener in sockets:
        listener.bind(("127.0.0.1", 0))
    ports = [listener.getsockname()[1] for listener in sockets]
    for listener in sockets:
        listener.close()
    return ports


def start(tiny_run, folders, *flags, jobs=("worker", "worker"), before=("", "")):
    """Two workers of t2t-trainer, each with its --output_dir. `before` has code that
    each runs first.
    """
    ports = free_ports(2)
    cluster, tasks = cluster_of(jobs)
    for addresses in cluster.values():
        addresses[:] = [f"127.0.0.1:{ports.pop()}" for _ in addresses]
    started = []
    for (job, index), folder, code in zip(tasks, folders, before, strict=True):
        config = json.dumps({"cluster": cluster, "task": {"type": job, "index": index}})
        program = (
            f"import sys\nfrom t2tlite.bin import t2t_trainer\n{code}\n"
            "raise SystemExit(t2t_trainer.main(sys.argv[1:]))"
        )
        command = [sys.executable, "-c", program]
        worker = subprocess.Popen(
            [*command, *trainer_flags(tiny_run, folder, *flags)],
            env={**os.environ, "TF_CONFIG": config},
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(worker)
    return started


def finish(started) -> list[tuple[int, str]]:
    """Exit status and stderr of each worker."""
    errors = [worker.communicate(timeout=SECONDS)[1] for worker in started]
    return [
        (worker.returncode, text) for worker, text in zip(started, errors, strict=True)
    ]


def wait_for_checkpoint(run: Path, started) -> None:
    """Waits until the workers have saved one."""
    until = time.monotonic() + SECONDS
    while not checkpoint_names(run):
        assert time.monotonic() < until
        assert all(worker.poll() is None for worker in started), finish(started)
        time.sleep(0.05)


@pytest.mark.slow
def test_two_workers_equal_one(tiny_run, tmp_path):
    flags = [
        "--train_steps=6",
        "--local_eval_frequency=3",
        "--global_batch_tokens=1024",
        "--hparams=batch_size=512",
    ]
    together, alone, data = tmp_path / "together", tmp_path / "alone", tmp_path / "data"
    make = [*flags, f"--data_dir={data}", "--generate_data", "--num_processes=1"]
    for status, errors in finish(
        start(tiny_run, [together] * 2, *make, jobs=("chief", "worker"))
    ):
        assert status == 0, errors
    assert (
        t2t_trainer.main(trainer_flags(tiny_run, alone, *flags, f"--data_dir={data}"))
        == 0
    )
    first, second = (tensors(folder / "model.ckpt-6") for folder in (alone, together))
    names = [name for name in first if name.startswith("model/")]
    assert len(names) > 20
    for name in names:
        np.testing.assert_allclose(second[name], first[name], atol=1e-5, err_msg=name)
    assert {path.name.split(".")[0] for path in together.iterdir()} == {
        path.name.split(".")[0] for path in alone.iterdir()
    }
    assert len(list(together.glob("events.*"))) == 1  # the worker wrote nothing


@pytest.mark.slow
def test_killed_worker_ends_the_other_and_both_resume_exactly(tiny_run, tmp_path):
    flags = [
        "--train_steps=60",
        "--local_eval_frequency=20",
        "--hparams=batch_size=64,accumulate_steps=2",
    ]
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    for status, errors in finish(start(tiny_run, [whole] * 2, *flags)):
        assert status == 0, errors
    started = start(tiny_run, [broken] * 2, *flags)
    wait_for_checkpoint(broken, started)
    started[1].kill()
    (status, errors), _ = finish(started)
    assert status == 1
    assert "A worker was lost; " in errors
    assert "Start all again with the same command." in errors
    assert "Traceback" not in errors
    for status, errors in finish(start(tiny_run, [broken] * 2, *flags)):
        assert status == 0, errors
        assert "resuming from step " in errors
    first, second = (tensors(folder / "model.ckpt-60") for folder in (whole, broken))
    assert len(first) > 60
    for name, value in first.items():
        np.testing.assert_array_equal(second[name], value, err_msg=name)


CLOCK = """
import itertools, types
from t2tlite.training import loop
ticks = itertools.count(step={})
loop.time = types.SimpleNamespace(monotonic=lambda: next(ticks))
"""


@pytest.mark.slow
def test_each_worker_saves_by_its_own_clock(tiny_run, tmp_path):
    """Saving needs no other worker: here the chief saves at each step, and the other
    process only at the end.
    """
    run = tmp_path / "run"
    flags = ["--train_steps=8", "--local_eval_frequency=0"]
    clocks = [CLOCK.format(1000), CLOCK.format(0)]
    for status, errors in finish(start(tiny_run, [run] * 2, *flags, before=clocks)):
        assert status == 0, errors
    assert checkpoint_names(run) == [f"model.ckpt-{step}" for step in range(1, 9)]


BEFORE_TRAINING = """
import signal
from t2tlite.programs.runs import train
setup = train._setup
train._setup = lambda *args: (signal.raise_signal(signal.SIGTERM), setup(*args))[1]
"""


@pytest.mark.slow
def test_signal_to_one_worker_before_training_stops_all(tiny_run, tmp_path):
    run = tmp_path / "run"
    started = start(tiny_run, [run] * 2, before=["", BEFORE_TRAINING])
    for status, errors in finish(started):
        assert status == 128 + signal.SIGTERM, errors
        assert "Stopped by SIGTERM before the first step." in errors
    assert checkpoint_names(run) == []


@pytest.mark.slow
def test_signal_to_one_worker_stops_all(tiny_run, tmp_path):
    run = tmp_path / "run"
    flags = [
        "--train_steps=1000000",
        "--local_eval_frequency=0",
        "--save_checkpoints_secs=1",
    ]
    started = start(tiny_run, [run] * 2, *flags)
    wait_for_checkpoint(run, started)
    started[1].send_signal(signal.SIGTERM)
    ended = finish(started)
    assert [status for status, _ in ended] == [128 + signal.SIGTERM] * 2
    (newest,) = checkpoint_names(run)[-1:]
    for _, errors in ended:
        assert (
            f"at step {int(newest.split('-')[1]):,}; a checkpoint is saved." in errors
        )
    other = Path(shutil.copytree(run, tmp_path / "other"))
    for path in other.glob("model.ckpt-*"):
        path.unlink()
    for status, errors in finish(start(tiny_run, [run, other], *flags)):
        assert status == 1
        assert f"worker 0 has newest checkpoint {newest.split('-')[1]}, t2" in errors
        assert "worker 1 has newest checkpoint 0, t2tlite" in errors
        assert "Traceback" not in errors
    assert checkpoint_names(run)[-1] == newest
