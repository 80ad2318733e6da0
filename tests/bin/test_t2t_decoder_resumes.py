"""t2t-decoder that is interrupted or stopped: its status and messages, and what it
checks before it decodes. tests/programs/bulk tests what is kept.
"""

import shutil

import pytest
from tiny_run import last_of_each

from t2tlite.bin import t2t_decoder
from t2tlite.programs.bulk import decode_file, decode_split
from t2tlite.programs.runs.translator import Translator

LINES = ["red cat sees dog", "", "fish likes mouse"] * 4


class Command:
    """t2t-decoder with these flags."""

    def __init__(self, run, target, *flags):
        self.target = target
        self.part = target.with_name(f"{target.name}.part")
        self.flags = [f"--output_dir={run}", *flags]

    def __call__(self, *more):
        return t2t_decoder.main(last_of_each(*self.flags, *more))


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of the run, in which splits are decoded."""
    return shutil.copytree(
        tiny_run.run,
        tmp_path_factory.mktemp("run") / "copy",
        ignore=shutil.ignore_patterns("decodes"),
    )


@pytest.fixture(autouse=True)
def windows(loaded_once, monkeypatch):
    monkeypatch.setattr(decode_file, "FILE_WINDOW", 4)
    monkeypatch.setattr(decode_split, "SPLIT_WINDOW", 15)


@pytest.fixture
def file(run, tmp_path):
    source, target = tmp_path / "in.txt", tmp_path / "new" / "out.txt"
    source.write_text("".join(f"{line}\n" for line in LINES))
    flags = f"--decode_from_file={source}", f"--decode_to_file={target}"
    return Command(run, target, *flags)


@pytest.fixture
def split(run):
    yield Command(run, run / "decodes" / "test.120.txt", "--split=test")
    shutil.rmtree(run / "decodes", ignore_errors=True)


@pytest.fixture(params=["file", "split"])
def command(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def stop(monkeypatch):
    """stop(action): lets the second window, if any, begin with this action, once."""
    decode, actions, sizes = Translator.decode, [], []

    def decoded(self, sources, *rest, **more):
        sizes.append(len(sources))
        if len(sizes) == 2 and actions:
            actions.pop()()
        return decode(self, sources, *rest, **more)

    monkeypatch.setattr(Translator, "decode", decoded)
    return actions.append


def interrupt():
    raise KeyboardInterrupt


def test_interrupted_command_resumes(command, capsys, stop):
    stop(interrupt)
    assert command() == 130
    assert capsys.readouterr().err.endswith("t2tlite: Interrupted.\n")
    assert not command.target.exists()
    assert command() == 0
    assert f" lines are done, in {command.part}.\n" in capsys.readouterr().err
    assert not command.part.exists()
    resumed = command.target.read_bytes()
    shutil.rmtree(command.target.parent)
    assert command() == 0
    assert command.target.read_bytes() == resumed


def test_split_to_a_device_resumes(split, capfd, stop):
    stop(interrupt)
    assert split("--decode_to_file=/dev/stdout") == 130
    assert capfd.readouterr().out == ""
    assert split.part.exists()
    assert split("--decode_to_file=/dev/stdout") == 0
    output = capfd.readouterr()
    assert len(output.out.splitlines()) > 40
    assert "Resuming: 15 lines" in output.err


@pytest.mark.parametrize("name", ["in.txt/out.txt", "/proc/nothing/out.txt"])
def test_unwritable_output_is_refused(file, tmp_path, capsys, monkeypatch, name):
    monkeypatch.setattr(Translator, "decode", None)
    assert file(f"--decode_to_file={tmp_path / name}") == 1
    assert " cannot be used: " in capsys.readouterr().err


def test_unwritable_run_is_refused(split, capsys, monkeypatch):
    monkeypatch.setattr(Translator, "decode", None)
    split.target.parent.touch()
    assert split() == 1
    assert " cannot be used: " in capsys.readouterr().err
    split.target.parent.unlink()
