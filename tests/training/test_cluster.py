"""What TF_CONFIG and SLURM say of the workers."""

import json
import queue
import re
import socket

import pytest

from t2tlite.training import strategy
from t2tlite.training.workers import Cluster, find_cluster


def config(cluster, task_type, index):
    task = {"type": task_type, "index": index}
    return json.dumps({"cluster": cluster, "task": task, "environment": "cloud"})


TWO = {"worker": ["host0:2222", "host1:2222"]}


@pytest.mark.parametrize(
    "text",
    [
        "{'cluster': 1}",
        "[]",
        json.dumps({"cluster": TWO}),
        config(TWO, "worker", "first"),
        config(TWO, "worker", 2),
        config(TWO, "chief", 0),
        config({"ps": ["host2:2222"]}, "ps", 0),
        config({"chief": TWO["worker"]}, "chief", 0),
        config({"worker": ["host0", "host1"]}, "worker", 0),
    ],
)
def test_invalid_tf_config_is_one_message(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    received = re.escape(f"Received: {text!r}: ")
    with pytest.raises(ValueError, match=rf"must be like .*on each worker.*{received}"):
        find_cluster()


def test_workers_are_found(monkeypatch):
    cluster = {"worker": ["b:1", "c:1"], "chief": ["a:1"]}
    monkeypatch.setenv("TF_CONFIG", config(cluster, "worker", "1"))
    assert find_cluster() == Cluster(["a:1", "b:1", "c:1"], "c:1")


@pytest.mark.parametrize(
    "text", ["", config({"chief": ["127.0.0.1:2222"]}, "chief", 0)]
)
def test_one_worker_trains_without_a_cluster(monkeypatch, text):
    monkeypatch.setenv("TF_CONFIG", text)
    assert find_cluster() is None


def test_slurm_tasks_are_workers(monkeypatch):
    monkeypatch.setenv("TF_CONFIG", "")  # restored after the test
    monkeypatch.delenv("SLURM_PROCID", raising=False)
    with pytest.raises(ValueError, match=r"needs a job step \(srun"):
        find_cluster("slurm")
    for name, value in {
        "SLURM_STEP_NODELIST": "node[07-08]",
        "SLURM_STEP_TASKS_PER_NODE": "2,1",
        "SLURM_STEP_NUM_TASKS": "3",
        "SLURM_PROCID": "2",
        "SLURM_JOB_ID": "1001",
    }.items():
        monkeypatch.setenv(name, value)
    actual = find_cluster("slurm")
    workers = ["node07:15016", "node07:15017", "node08:15016"]
    assert actual == Cluster(workers, "node08:15016")
    assert find_cluster() == actual  # TensorFlow reads TF_CONFIG


def test_absent_workers_are_reported(monkeypatch):
    lines = queue.Queue()
    monkeypatch.setattr(strategy, "REPORT_ABSENT_SECONDS", 0.05)
    monkeypatch.setattr(strategy, "say", lines.put)
    with socket.socket() as present, socket.socket() as closed:
        present.bind(("127.0.0.1", 0))
        present.listen()
        closed.bind(("127.0.0.1", 0))  # and does not listen
        addresses = []
        for listener in (present, closed):
            addresses.append(f"127.0.0.1:{listener.getsockname()[1]}")
        with strategy._reporting_absent_workers(Cluster(addresses, addresses[0])):
            line = lines.get(timeout=60)
    refused = f"{addresses[1]} (Connection refused)"
    assert line == f"Waiting for other workers: {refused}."
