"""t2tlite without what only POSIX, or only Linux, has."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest
from tiny_run import SMALL, checkpoint_names, trainer_flags

ROOT = Path(__file__).resolve().parents[1]

# modules of the standard library that Windows lacks
POSIX_MODULES = """
fcntl grp posix pty pwd readline resource syslog termios tty
""".split()

# A library such as tqdm imports them where they are, so they are refused to t2tlite
# alone. tensorflow_text is refused to all.
UNAVAILABLE = f"""
import builtins, errno, os, signal, sys

import_module = builtins.__import__

def portable_import(name, globals=None, *rest, **named):
    importer = (globals or {{}}).get("__name__", "")
    if name in {POSIX_MODULES} and importer.startswith("t2tlite"):
        raise ModuleNotFoundError(f"{{importer}} imports {{name}}")
    return import_module(name, globals, *rest, **named)

builtins.__import__ = portable_import
sys.modules["tensorflow_text"] = None

stat = os.stat

def stat_without_proc(path, *rest, **named):
    if str(path).startswith("/proc"):
        raise FileNotFoundError(errno.ENOENT, "no such file", path)
    return stat(path, *rest, **named)

os.stat = stat_without_proc
for name in ("pread", "sched_getaffinity", "sysconf_names"):
    delattr(os, name)
for name in ("SIGHUP", "SIGPIPE", "pthread_sigmask"):
    delattr(signal, name)
"""

EVERY_MODULE = """
import importlib, pkgutil
import t2tlite
for module in pkgutil.walk_packages(t2tlite.__path__, "t2tlite."):
    importlib.import_module(module.name)
"""

TRAIN = """
from t2tlite.bin import t2t_trainer
raise SystemExit(t2t_trainer.main(sys.argv[1:]))
"""


def sources() -> list[Path]:
    folders = ("t2tlite", "problems", "hparams", "bin")
    return sorted(path for name in folders for path in (ROOT / name).rglob("*.py"))


def test_no_module_needs_what_windows_lacks():
    """An import inside a function may fail, and is then handled there."""
    files = sources()
    assert len(files) > 100
    for file in files:
        for statement in ast.parse(file.read_text(encoding="utf-8")).body:
            names = []
            if isinstance(statement, ast.Import):
                names = [alias.name for alias in statement.names]
            elif isinstance(statement, ast.ImportFrom):
                names = [statement.module]
            assert not {*POSIX_MODULES, "tensorflow_text"} & set(names), file


@pytest.mark.slow
def test_every_module_and_training_without_posix(tiny_run, tmp_path):
    """With data that it makes itself, in a process of its own."""
    run = tmp_path / "run"
    flags = trainer_flags(
        tiny_run,
        run,
        "--generate_data",
        "--num_processes=1",
        f"--data_dir={tmp_path / 'data'}",
        "--train_steps=10",
        f"--hparams={SMALL}",
    )
    code = UNAVAILABLE + EVERY_MODULE + TRAIN
    trained = subprocess.run(
        [sys.executable, "-c", code, *flags], capture_output=True, text=True
    )
    assert trained.returncode == 0, trained.stderr
    assert checkpoint_names(run) == ["model.ckpt-10"]
    assert not list(run.glob(".lock"))
