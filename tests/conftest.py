"""What every test finds: four logical CPU devices, a quiet TensorFlow, a trained run,
the fixture files.
"""

from __future__ import annotations

import functools
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
import tiny_treebank
from fixture_files import FIXTURES

from t2tlite.machine import import_tensorflow

if TYPE_CHECKING:
    from tiny_run import TinyRun

    from t2tlite.programs.runs.translator import Translator

NUM_DEVICES = 4  # the most replicas a test may ask for

# as it is in what a script starts in the background
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# as it is under nohup; Windows has no such signal
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)

SHARED = Path(
    os.environ.get("T2TLITE_SHARED", Path(__file__).resolve().parents[2] / "shared")
)
WHERE_SHARED = (
    "put the folder `shared` beside the checkout, or name it with the environment"
    " variable T2TLITE_SHARED"
)


def pytest_configure(config: pytest.Config) -> None:
    """Starts TensorFlow with its devices in each process that runs tests; others need
    not wait for it.
    """
    is_worker = hasattr(config, "workerinput")
    # processes that share the machine's cores need no threads of their own
    if is_worker:
        os.environ.setdefault("TF_NUM_INTRAOP_THREADS", "1")
    if is_worker or config.getoption("dist", "no") == "no":
        import_tensorflow()
        gc.freeze()  # as in the commands
        import tensorflow as tf

        # Only possible before TensorFlow first runs anything, so here and not in the
        # fixture.
        tf.config.set_logical_device_configuration(
            tf.config.list_physical_devices("CPU")[0],
            [tf.config.LogicalDeviceConfiguration()] * NUM_DEVICES,
        )


@pytest.fixture(scope="session", autouse=True)
def temporary_files_deleted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What libraries leave in the system's folder of temporary files goes where pytest
    deletes it after the tests.
    """
    folder = str(tmp_path_factory.mktemp("temporary"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", folder)
        patch.setattr(tempfile, "tempdir", folder)
        yield


@pytest.fixture(scope="session", autouse=True)
def written_without_waiting_for_the_disk() -> Iterator[None]:
    """What tests write need not survive a loss of power, and thousands of small files
    take long otherwise.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "fsync", lambda handle: None)
        yield


@pytest.fixture(scope="session")
def cpu_devices() -> list[str]:
    """Names of four logical CPU devices, for tests that run several replicas: ["CPU:0",
    ..., "CPU:3"].
    """
    return [f"CPU:{i}" for i in range(NUM_DEVICES)]


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory: pytest.TempPathFactory) -> TinyRun:
    """The run of tiny_run.py, trained once in a session of tests: some five seconds.
    Read only.
    """
    from tiny_run import shared_tiny_run

    return shared_tiny_run(tmp_path_factory)


@pytest.fixture
def tiny_run_copy(tiny_run, tmp_path: Path) -> Path:
    """A copy of that run, without what other tests decoded with it."""
    return Path(
        shutil.copytree(
            tiny_run.run, tmp_path / "copy", ignore=shutil.ignore_patterns("decodes")
        )
    )


@pytest.fixture(scope="session")
def once() -> SimpleNamespace:
    """Functions that make a strategy, and a model within it, once for the same
    arguments.
    """
    import tensorflow as tf

    from t2tlite.models.transformer import Transformer
    from t2tlite.training.strategy import make_strategy

    @functools.cache
    def built(strategy: tf.distribute.Strategy, *arguments: object) -> object:
        return Transformer.from_hparams(*arguments)

    return SimpleNamespace(
        make_strategy=functools.cache(make_strategy),
        from_hparams=lambda *arguments: built(tf.distribute.get_strategy(), *arguments),
    )


@pytest.fixture
def fake_dev_losses(once: SimpleNamespace, monkeypatch: pytest.MonkeyPatch) -> list:
    """Lets training steps do nothing, and evaluations find the losses that a test adds
    to this list.

    An exception in the list is raised in the evaluation, and a signal comes during it.
    No batches are made, and all runs of the same hparams have one model, which is built
    once.
    """
    outcomes: list = []

    def evaluate() -> object:
        outcome = outcomes.pop(0)
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, signal.Signals):
            signal.raise_signal(outcome)
            raise AssertionError("the evaluation continued after a signal")
        return Evaluation(outcome, 0.5, 10)

    from t2tlite.programs.runs import train
    from t2tlite.training import loop, strategy
    from t2tlite.training.evaluation import Evaluation
    from t2tlite.training.train_step import StepResult

    monkeypatch.setattr(
        loop,
        "make_train_step",
        lambda *_: lambda batches, stop: StepResult(1.0, 10.0),
    )
    monkeypatch.setattr(loop, "make_trial", lambda *_: lambda: 1.0)
    monkeypatch.setattr(loop, "make_evaluation", lambda *_: evaluate)
    monkeypatch.setattr(loop, "distribute", lambda *_: [])
    monkeypatch.setattr(strategy, "make_strategy", once.make_strategy)
    monkeypatch.setattr(train, "get_model", lambda name: once)
    return outcomes


@pytest.fixture
def no_training(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a run begin, but train nothing."""
    from t2tlite.training import loop
    from t2tlite.training.evaluation import Evaluation

    monkeypatch.setattr(
        loop,
        "train",
        lambda setup, config, signals: setup.begin() or Evaluation(1.0, 0.5, 10),
    )


@pytest.fixture(scope="session")
def load() -> Callable[[Path, Path | None], Translator]:
    """load(run, checkpoint) of programs.runs.load, but once for each: a model keeps the
    searches that it traced.
    """
    from t2tlite.programs.runs.load import load

    return functools.cache(load)


@pytest.fixture(scope="session")
def model(tiny_run, load) -> Translator:
    """The tiny run, loaded."""
    return load(tiny_run.run, None)


@pytest.fixture
def loaded_once(load, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets commands and t2tlite.load use the models that the fixture `load` has
    loaded.
    """
    monkeypatch.setattr("t2tlite.programs.runs.load.load", load)


@pytest.fixture
def eagerly() -> Iterator[None]:
    """Lets functions of TensorFlow run operation by operation during a test."""
    from eager import run_eagerly

    with run_eagerly():
        yield


@pytest.fixture(scope="session")
def fixtures() -> Path:
    """The folder tests/fixtures: what other programs computed, as its README says."""
    return FIXTURES


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of larger cases beside the project's root; tests that use it are
    marked `shared`.
    """
    if not (SHARED / "data").is_dir():
        message = f"no larger cases at {SHARED}: {WHERE_SHARED}."
        if os.environ.get("CI", "").lower() not in ("", "0", "false"):
            pytest.fail(
                f"CI must run every test, and there are {message}", pytrace=False
            )
        pytest.skip(message)
    return SHARED


@pytest.fixture(
    scope="session", params=["small", pytest.param("large", marks=pytest.mark.shared)]
)
def t2t(request: pytest.FixtureRequest) -> Path:
    """A folder of what tensor2tensor computed with a model of 16 dimensions, and one
    with a model of 64.
    """
    return (
        FIXTURES / "tensor2tensor"
        if request.param == "small"
        else request.getfixturevalue("shared") / "t2t"
    )


treebank = pytest.fixture(tiny_treebank.treebank)
own_trees = pytest.fixture(tiny_treebank.own_trees)


@pytest.fixture
def tree_file(request: pytest.FixtureRequest, trees_of: str) -> Path:
    """A file of clean trees, one a line."""
    if trees_of == "grammar":
        return FIXTURES / "evalb" / "gold.trees"
    return request.getfixturevalue("shared") / "data" / "trees" / f"{trees_of}.trees"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "shared" in getattr(item, "fixturenames", ()):
            item.add_marker("shared")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = [
        report
        for report in terminalreporter.stats.get("skipped", [])
        if WHERE_SHARED in str(report.longrepr)
    ]
    if skipped:
        terminalreporter.write_line(
            f"{len(skipped)} tests were skipped for want of larger cases:"
            f" {WHERE_SHARED}."
        )
    if fuzzing := sys.modules.get("fuzzing"):
        for line in fuzzing.counts():
            terminalreporter.write_line(line)
