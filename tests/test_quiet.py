"""What native libraries print while they load."""

from __future__ import annotations

import os

import pytest

from t2tlite.quiet import quiet_stderr


@pytest.fixture
def level(monkeypatch):
    """Sets TF_CPP_MIN_LOG_LEVEL for one test."""
    return lambda value: monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", value)


def test_holds_back_what_a_native_library_writes(capfd, level):
    level("3")
    os.write(2, b"before ")
    with quiet_stderr():
        os.write(2, b"start-up message ")
    os.write(2, b"after")
    assert capfd.readouterr().err == "before after"


def test_prints_it_when_the_block_fails(capfd, level):
    def load() -> None:
        with quiet_stderr():
            os.write(2, b"the reason why")
            raise ImportError("no such library")

    level("3")
    with pytest.raises(ImportError, match="no such library"):
        load()
    os.write(2, b", after")
    assert capfd.readouterr().err == "the reason why, after"


def test_holds_nothing_back_where_messages_are_asked_for(capfd, level):
    level("0")
    with quiet_stderr():
        os.write(2, b"start-up message")
    assert capfd.readouterr().err == "start-up message"


def test_silence_is_the_default(capfd, monkeypatch):
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    with quiet_stderr():
        os.write(2, b"start-up message")
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == "3"  # TensorFlow reads it as well
    assert capfd.readouterr().err == ""


def test_one_inside_another(capfd, level):
    level("3")
    with quiet_stderr():
        with quiet_stderr():
            os.write(2, b"inner")
        os.write(2, b"outer")
    os.write(2, b"after")
    assert capfd.readouterr().err == "after"


def test_leaves_no_file_open(level):
    level("3")
    count = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    for _ in range(5):
        with quiet_stderr():
            pass
    assert (len(os.listdir("/proc/self/fd")) if count else 0) == count
