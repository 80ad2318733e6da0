"""Fixtures of the tests of bulk decoding: a run, a file and a split that it decodes, a
record of the windows.
"""

import shutil
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from bulk_cases import LINES, Case, write
from tiny_run import change_manifest

from t2tlite.data.dataset import open_dataset
from t2tlite.programs.bulk import decode_file, decode_split
from t2tlite.programs.bulk.jobs import DecodeJob, LineFormat
from t2tlite.programs.runs.translator import Translator, decode_options
from t2tlite.run_folder import RunFolder


@pytest.fixture(scope="session")
def run(tiny_run, tmp_path_factory):
    """A copy of the run, in which splits are decoded, by default with a narrow beam."""
    ignored = shutil.ignore_patterns("decodes")
    run = shutil.copytree(
        tiny_run.run, tmp_path_factory.mktemp("run") / "copy", ignore=ignored
    )
    change_manifest(run, decode_defaults={"beam_size": 2})
    return run


@pytest.fixture
def open_job(run, load):
    """open_job(changes, ...): a job of the run, whose model is loaded once."""

    def make(changes="", kind=DecodeJob, model=(None,), **line_format):
        options = decode_options(RunFolder(run).manifest(), changes)
        return kind(load(run, *model), options, LineFormat(**line_format))

    return make


@pytest.fixture
def file(open_job, tmp_path, monkeypatch, calls):
    monkeypatch.setattr(decode_file, "FILE_WINDOW", 4)
    source = write(tmp_path / "in.txt", LINES)

    def decode(job, target):
        return decode_file.decode_file(job, source, target)

    return Case(decode, open_job, tmp_path / "new" / "out.txt", [4, 4, 3], calls)


@pytest.fixture
def split(run, tiny_run, open_job, monkeypatch, calls):
    monkeypatch.setattr(decode_split, "SPLIT_WINDOW", 15)
    dataset = open_dataset(tiny_run.data)
    default = run / "decodes" / "test.120.txt"

    def decode(job, target):
        path = None if target == default else target
        decode_split.decode_split(job, RunFolder(run), dataset, "test", path)

    yield Case(decode, open_job, default, [15, 15, 10], calls)
    shutil.rmtree(run / "decodes", ignore_errors=True)


@pytest.fixture(params=["file", "split"])
def case(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def calls(monkeypatch):
    """The sizes of windows that are decoded or scored; `stop` has what happens before a
    window, or before "score".
    """
    seen = SimpleNamespace(windows=[], stop={})

    def recorded(name: str, is_window: bool) -> Callable:
        original = getattr(Translator, name)

        def call(self, sources, *rest, **more):
            action = seen.stop.pop(len(seen.windows) if is_window else "score", None)
            if action:
                action()
            if is_window:
                seen.windows.append(len(sources))
            return original(self, sources, *rest, **more)

        return call

    for name in ("decode", "score_hypotheses", "score_outputs"):
        monkeypatch.setattr(Translator, name, recorded(name, name != "score_outputs"))
    return seen
