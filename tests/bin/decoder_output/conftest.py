"""Fixtures of the tests of t2t-decoder's output: a run, a file and a split that it
decodes, a record of the windows.
"""

import shutil
from collections.abc import Callable
from types import SimpleNamespace

import pytest
from decode_cases import LINES, Case, write
from tiny_run import change_manifest

from t2tlite.programs.bulk import decode_file, decode_split
from t2tlite.programs.runs.translator import Translator


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of the run, in which splits are decoded, by default with a narrow beam."""
    ignored = shutil.ignore_patterns("decodes")
    run = shutil.copytree(
        tiny_run.run, tmp_path_factory.mktemp("run") / "copy", ignore=ignored
    )
    change_manifest(run, decode_defaults={"beam_size": 2})
    return run


@pytest.fixture
def file(run, tmp_path, loaded_once, monkeypatch):
    monkeypatch.setattr(decode_file, "FILE_WINDOW", 4)
    target = tmp_path / "new" / "out.txt"
    source = write(tmp_path / "in.txt", LINES)
    flags = [f"--decode_from_file={source}", f"--decode_to_file={target}"]
    return Case(run, target.parent, target, [4, 4, 3], flags)


@pytest.fixture
def split(run, loaded_once, monkeypatch):
    monkeypatch.setattr(decode_split, "SPLIT_WINDOW", 16)
    folder = run / "decodes"
    yield Case(run, folder, folder / "test.120.txt", [16, 16, 8], ["--split=test"])
    shutil.rmtree(folder, ignore_errors=True)


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
