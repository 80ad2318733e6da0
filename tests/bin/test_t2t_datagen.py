"""The command t2t-datagen, from its flags to its files, and killed in the middle."""

import gzip
import os
import signal
import subprocess
import sys
import time

import pytest
from corpora import datagen_flags, write_corpora
from run_command import said
from tiny_run import last_of_each
from tiny_task import contents

from t2tlite.bin import t2t_datagen
from t2tlite.data import encode_shards
from t2tlite.data.dataset import open_dataset

SLOW = """
import sys, time
from t2tlite.data import encode_shards
from t2tlite.files import atomic_file
from t2tlite.bin import t2t_datagen
encode_shards.CHUNK_PAIRS = 40
tasks = atomic_file.unpickled
def slow(*args):
    for task in tasks(*args):
        time.sleep(0.3)
        yield task
atomic_file.unpickled = slow
if __name__ == "__main__":
    sys.exit(t2t_datagen.main(sys.argv[1:]))
"""


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """The flags for text files in the current folder."""
    monkeypatch.chdir(tmp_path)
    write_corpora(tmp_path, train=400, dev=30)
    return datagen_flags("train", "dev")


def test_own_files(corpus, tmp_path, capsys):
    data = f"--data_dir={tmp_path}/data"
    for message in ("parallel_text: made in", "already complete, nothing to do"):
        assert message in said(capsys, t2t_datagen, *corpus, data).out
    dataset = open_dataset(tmp_path / "data", "parallel_text_rev")
    assert len(dataset.store("train")) == 400
    lines = (tmp_path / "dev.en").read_text().splitlines()
    assert dataset.store("dev").target_text() == lines


@pytest.fixture
def begun(corpus, tmp_path):
    """The command, in two processes of its own, in the middle of its work, and its data
    directory.
    """
    (tmp_path / "script.py").write_text(SLOW)
    data = tmp_path / "data"
    flags = last_of_each(*corpus, "--num_processes=2", f"--data_dir={data}")
    command = [sys.executable, str(tmp_path / "script.py"), *flags]
    pipes = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE}
    with subprocess.Popen(
        command, text=True, start_new_session=True, **pipes
    ) as running:
        give_up = time.monotonic() + 60
        while not list(data.glob("*/train-00001.arrow")) and time.monotonic() < give_up:
            time.sleep(0.02)
        yield running, data


def test_killed_in_the_middle_then_run_again(
    begun, corpus, tmp_path, monkeypatch, capsys
):
    running, data = begun
    running.send_signal(signal.SIGKILL)
    # ends when the encoding processes, which hold it too, have ended
    running.stderr.read()
    shards = {path: path.stat().st_mtime_ns for path in data.glob("*/*.arrow")}
    assert 2 <= len(shards) < 11
    with pytest.raises(FileNotFoundError, match="no finished data of parallel_text"):
        open_dataset(data, "parallel_text")

    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 40)
    for folder in (data, tmp_path / "whole"):
        assert t2t_datagen.main([*corpus, f"--data_dir={folder}"]) == 0
        assert "parallel_text: made in" in capsys.readouterr().out
    assert {path: path.stat().st_mtime_ns for path in shards} == shards
    assert contents(data) == contents(tmp_path / "whole")


def test_interrupted_by_the_user(begun):
    running, data = begun
    # as the terminal does: every process of the command
    os.killpg(running.pid, signal.SIGINT)
    message = running.communicate()[1]
    assert running.returncode == 130
    assert message.rstrip().endswith("Interrupted.")
    assert "Traceback" not in message
    assert not list(data.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("damaged", "message"),
    [
        ({"train.en": b"caf\xe9\n", "train.de": b"Kaffee\n"}, "train.en"),
        ({"dev.de": b"too few\n"}, "dev.de"),
        ({"dev.de": None}, "dev.de"),
        ({"train.en": gzip.compress(b"one\n")[:-3]}, "train.en"),
    ],
    ids=["not UTF-8", "uneven", "missing", "cut short"],
)
def test_bad_files_change_nothing(corpus, tmp_path, capsys, damaged, message):
    data_dir, new = tmp_path / "made", tmp_path / "new"
    assert t2t_datagen.main([*corpus, f"--data_dir={data_dir}"]) == 0
    before = contents(data_dir)
    for name, content in damaged.items():
        (tmp_path / name).unlink()
        if content is not None:
            (tmp_path / name).write_bytes(content)
    out, err = said(capsys, t2t_datagen, *corpus, f"--data_dir={new}", status=1)
    assert message in err.splitlines()[-1]
    assert "Traceback" not in err
    assert out == ""
    assert not list(new.glob("*"))
    t2t_datagen.main([*corpus, f"--data_dir={data_dir}"])
    assert contents(data_dir) == before
