"""A folder that one process at a time may write."""

import errno
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import portalocker
import pytest

from t2tlite.files.own_files import LOCK, locked, only_process

REFUSED = r"^Only one process at a time can bake\. Received: \S*/oven, which another"


def test_second_process_is_refused_and_changes_nothing(tmp_path):
    oven = tmp_path / "oven"
    with only_process(oven, "bake"):
        with pytest.raises(ValueError, match=REFUSED), only_process(oven, "bake"):
            pass
        (oven / "bread").touch()
    assert [path.name for path in oven.iterdir()] == ["bread"]
    with only_process(oven, "bake"):
        (oven / "bread").unlink()
    assert not oven.exists()  # left empty


def test_users_file_of_the_locks_name_stays(tmp_path):
    (tmp_path / LOCK).write_text("of another program")
    with only_process(tmp_path, "bake"):
        pass
    assert (tmp_path / LOCK).read_text() == "of another program"


def test_a_process_can_wait_for_the_other(tmp_path):
    """The first one leaves the folder empty, and so removes it, while the second
    waits.
    """
    oven, order = tmp_path / "oven", []

    def second():
        with only_process(oven, "bake", wait=True):
            order.append("second")
            (oven / "bread").touch()

    waiting = threading.Thread(target=second)
    with only_process(oven, "bake"):
        waiting.start()
        time.sleep(0.2)
        order.append("first")
    waiting.join(60)
    assert order == ["first", "second"]
    assert [path.name for path in oven.iterdir()] == ["bread"]


def test_the_lock_ends_with_a_process_that_is_killed(tmp_path):
    oven = tmp_path / "oven"
    code = (
        "import pathlib, sys, time; from t2tlite.files.own_files import only_process\n"
    )
    code += (
        "with only_process(pathlib.Path(sys.argv[1]), 'bake'): print('locked',"
        " flush=True); time.sleep(600)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(oven)], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout.readline() == "locked\n"
        with pytest.raises(ValueError, match=REFUSED), only_process(oven, "bake"):
            pass
        process.kill()
    assert (oven / LOCK).exists()
    with only_process(oven, "bake"):
        pass


def test_a_lock_file_removed_by_its_owner_is_not_locked(tmp_path, monkeypatch):
    """Between opening and locking, the owner removes its file, and another process
    locks a new one.
    """
    lock_handle, second = portalocker.lock, []

    def slow_lock(handle: int, how: portalocker.LockFlags) -> None:
        if not second:
            (tmp_path / LOCK).unlink()
            second.append(Path.open(tmp_path / LOCK, "w"))
            lock_handle(second[0], how)
        lock_handle(handle, how)

    monkeypatch.setattr(portalocker, "lock", slow_lock)
    with (
        pytest.raises(ValueError, match="which another process is using"),
        only_process(tmp_path, "bake"),
    ):
        pass
    second[0].close()


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    """The system's function is what fails, below portalocker's."""

    def no_locks(handle: int, how: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("portalocker.portalocker.LOCKER", no_locks)
    with only_process(tmp_path / "oven", "bake"):
        assert (tmp_path / "oven").is_dir()
    assert not (tmp_path / "oven").exists()


def test_a_file_that_another_process_renames_before_it_is_locked(tmp_path, monkeypatch):
    """What is then written goes to a file of that name, and not to the one renamed."""
    part, whole, lock_handle = tmp_path / "out.part", tmp_path / "out", portalocker.lock
    part.write_text("theirs")

    def rename_first(handle, flags):
        if not whole.exists():
            part.rename(whole)
        lock_handle(handle, flags)

    monkeypatch.setattr(portalocker, "lock", rename_first)
    with locked(part, "bake") as handle:
        os.write(handle, b"ours")
    assert (whole.read_text(), part.read_text()) == ("theirs", "ours")
