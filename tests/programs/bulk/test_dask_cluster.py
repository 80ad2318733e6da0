"""A cluster: Beam's pipelines on Dask make the data and the translations that one
process makes.

A scheduler and two worker processes on this machine stand for it. One worker is killed
in the middle of the work.
"""

import contextlib
import json
import os
import subprocess
import sys
import threading
import time

import pytest
from bulk_cases import SENTENCES, write
from tiny_task import contents

from t2tlite.bin import t2t_datagen, t2t_decoder
from t2tlite.data import encode_shards
from t2tlite.programs.bulk import decode_file

distributed = pytest.importorskip("distributed")
# Beam's and Dask's own warnings
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

WAIT_SECONDS = 120
LINES = [f"{SENTENCES[i % 6]} {i}" for i in range(500)]  # no two windows are equal


@contextlib.contextmanager
def process(name, *flags):
    """A program of Dask, killed at the end."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-m", f"distributed.cli.{name}", *flags]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=environment, **quiet) as running:
        try:
            yield running
        finally:
            running.kill()


def wait_until(is_true):
    end = time.monotonic() + WAIT_SECONDS
    while not is_true():
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.fixture
def cluster(tmp_path):
    """cluster(program, flags, folder, pattern): runs a program on a cluster, a worker of
    which is killed when there is such a file.
    """
    file = tmp_path / "scheduler.json"
    local = [f"--scheduler-file={file}", "--host=127.0.0.1", "--no-dashboard"]
    alone = ["--nthreads=1", "--no-nanny", f"--local-directory={tmp_path}/dask"]
    with contextlib.ExitStack() as stack:
        stack.enter_context(process("dask_scheduler", *local, "--port=0"))
        wait_until(file.exists)
        workers = []
        for _ in range(2):
            workers.append(stack.enter_context(process("dask_worker", *local, *alone)))
        address = json.loads(file.read_text())["address"]
        options = f"--dask_client_address={address} --dask_partition_size=1"
        beam = ["--beam_runner=DaskRunner", f"--beam_options={options}"]

        def run(program, flags, folder, pattern):
            def kill():
                wait_until(lambda: any(folder.rglob(pattern)))
                workers[0].kill()

            thread = threading.Thread(target=kill)
            thread.start()
            assert program.main([*flags, *beam]) == 0
            # Beam leaves it open; it would look for its scheduler beside later tests
            distributed.default_client().close()
            thread.join()
            assert workers[0].wait(WAIT_SECONDS) < 0

        yield run


def test_data_equals_that_of_one_process(cluster, tmp_path, monkeypatch):
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 100)
    make = ["--problem=grammar_ende", "--train_size=4000", "--vocab_size=600"]
    assert t2t_datagen.main([*make, f"--data_dir={tmp_path}/local"]) == 0
    folder = tmp_path / "dask_data"
    cluster(t2t_datagen, [*make, f"--data_dir={folder}"], folder, "*.arrow")
    assert contents(folder) == contents(tmp_path / "local")


def test_translations_equal_those_of_one_process(
    cluster, tiny_run, tmp_path, monkeypatch
):
    monkeypatch.setattr(decode_file, "FILE_WINDOW", 20)
    source = write(tmp_path / "in.txt", LINES)
    decode = [f"--output_dir={tiny_run.run}", f"--decode_from_file={source}"]
    decode.append("--decode_hparams=beam_size=2")
    local, dask = tmp_path / "local.txt", tmp_path / "dask.txt"
    assert t2t_decoder.main([*decode, f"--decode_to_file={local}"]) == 0
    pieces = tmp_path / "dask.txt.pieces"
    cluster(t2t_decoder, [*decode, f"--decode_to_file={dask}"], pieces, "*.part")
    assert dask.read_bytes() == local.read_bytes()
    assert len(dask.read_text().splitlines()) == 500
