"""What native libraries print while they load; how TensorFlow is imported."""

import gc
import importlib
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from t2tlite.bin import command as frame
from t2tlite.bin.command import Command, load_tensorflow
from t2tlite.bin.groups import TensorFlowFlags
from t2tlite.machine import import_tensorflow, quiet_stderr


@pytest.fixture
def level(monkeypatch):
    """Sets TF_CPP_MIN_LOG_LEVEL for one test."""
    return lambda value: monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", value)


@pytest.mark.parametrize(
    ("value", "shown"), [(None, ""), ("3", ""), ("0", "start-up message ")]
)
def test_messages_are_suppressed_unless_asked_for(capfd, monkeypatch, value, shown):
    if value is None:
        monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    else:
        monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", value)
    os.write(2, b"before ")
    with quiet_stderr():
        os.write(2, b"start-up message ")
    os.write(2, b"after")
    # TensorFlow reads it as well
    assert os.environ["TF_CPP_MIN_LOG_LEVEL"] == (value or "3")
    assert capfd.readouterr().err == f"before {shown}after"


def test_a_block_in_another_thread_leaves_stderr_as_it_was(capfd, level):
    level("3")
    with ThreadPoolExecutor(1) as thread, quiet_stderr():
        inner = quiet_stderr()
        thread.submit(inner.__enter__).result()
    os.write(2, b"after the first ")
    inner.__exit__(None, None, None)
    os.write(2, b"and the second")
    assert capfd.readouterr().err == "after the first and the second"


@pytest.fixture
def imports(monkeypatch):
    """Lets TensorFlow seem not to be imported, and its import do nothing; whether
    garbage is collected meanwhile.
    """
    enabled = []
    modules = dict(sys.modules)
    import_really = importlib.import_module

    def import_module(name):
        enabled.append(gc.isenabled())
        sys.modules[name] = modules.get(name) or import_really(name)
        return sys.modules[name]

    monkeypatch.delitem(sys.modules, "tensorflow")
    monkeypatch.setattr(importlib, "import_module", import_module)
    return enabled


def test_collector_pauses_while_tensorflow_is_imported(imports):
    import_tensorflow()
    assert imports == [False, False]  # TensorFlow, Keras
    assert gc.isenabled()


def test_commands_freeze_the_objects_of_tensorflow_once(imports, monkeypatch):
    calls = []
    monkeypatch.setattr(gc, "freeze", lambda: calls.append("tensorflow" in sys.modules))
    command = Command(TensorFlowFlags, "Doc.", lambda flags: load_tensorflow())
    assert command([]) == command([]) == 0
    assert calls == [True]


def test_optional_packages_are_hidden_from_tensorflow(monkeypatch):
    """`colorsys` stands for a package that nobody has imported, `json` for one that
    somebody has.
    """
    monkeypatch.setattr(frame, "OPTIONAL", ("colorsys", "json"))
    monkeypatch.delitem(sys.modules, "colorsys", raising=False)
    monkeypatch.delitem(sys.modules, "tensorflow")
    during = {}
    monkeypatch.setattr(frame, "import_tensorflow", lambda: during.update(sys.modules))
    load_tensorflow()
    assert during["colorsys"] is None  # an import raises ModuleNotFoundError
    assert during["json"] is json
    assert importlib.import_module("colorsys").__name__ == "colorsys"
