"""A cluster: Beam's pipelines on Dask make the data and the translations that one
process makes.

A scheduler and two worker processes on this machine stand for it. One worker is killed
in the middle of the work.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from bulk_cases import SENTENCES

from t2tlite.bin import t2t_decoder
from t2tlite.programs.bulk import decode_file

pytest.importorskip("distributed")
# Beam's and Dask's own warnings
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WAIT_SECONDS = 120
LINES = [f"{SENTENCES[i % 6]} {i}" for i in range(500)]  # no two windows are equal


@dataclasses.dataclass(frozen=True)
class Cluster:
    """A running scheduler, and its worker processes."""

    flags: list[str]  # that run a pipeline on it
    workers: list[subprocess.Popen]


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    file = tmp_path / "scheduler.json"
    local = [f"--scheduler-file={file}", "--host=127.0.0.1", "--no-dashboard"]
    worker = [
        "dask_worker",
        *local,
        "--nthreads=1",
        "--no-nanny",
        f"--local-directory={tmp_path}/dask",
    ]
    with contextlib.ExitStack() as stack:
        start = stack.enter_context
        start(process(["dask_scheduler", *local, "--port=0"]))
        wait_until(file.exists, "the scheduler")
        workers = [start(process(worker)) for _ in range(2)]
        address = json.loads(file.read_text())["address"]
        yield Cluster(
            [
                "--beam_runner=DaskRunner",
                f"--beam_options=--dask_client_address={address}",
            ],
            workers,
        )


@contextlib.contextmanager
def process(command: list[str]) -> Iterator[subprocess.Popen]:
    """A program of Dask, killed at the end."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "TF_CPP_MIN_LOG_LEVEL": "3",
    }
    arguments = [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:]]
    with subprocess.Popen(
        arguments, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_until(is_true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < end, f"{what} took too long"
        time.sleep(0.02)


@contextlib.contextmanager
def killed_worker(cluster: Cluster, is_started: Callable[[], bool]) -> Iterator[None]:
    """Kills a worker once `is_started` is true, which must happen inside the block."""

    def kill() -> None:
        wait_until(is_started, "the pipeline")
        cluster.workers[0].kill()

    thread = threading.Thread(target=kill)
    thread.start()
    yield
    thread.join()
    assert cluster.workers[0].wait(WAIT_SECONDS) < 0


def test_translations_equal_those_of_one_process(
    cluster, tiny_run, tmp_path, monkeypatch
):
    monkeypatch.setattr(decode_file, "FILE_WINDOW", 20)
    source = tmp_path / "in.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    command = [
        f"--output_dir={tiny_run.run}",
        f"--decode_from_file={source}",
        "--decode_hparams=beam_size=2",
    ]
    assert t2t_decoder.main([*command, f"--decode_to_file={tmp_path}/local.txt"]) == 0
    pieces = tmp_path / "dask.txt.pieces"
    with killed_worker(cluster, lambda: any(pieces.glob("*.part"))):
        assert (
            t2t_decoder.main(
                [*command, f"--decode_to_file={tmp_path}/dask.txt", *cluster.flags]
            )
            == 0
        )
    assert (tmp_path / "dask.txt").read_bytes() == (tmp_path / "local.txt").read_bytes()
    assert len((tmp_path / "dask.txt").read_text().splitlines()) == 500
