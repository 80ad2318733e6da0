"""t2t-decoder between pipes and devices; what it checks before it decodes, and when it
prints the score.
"""

import os
import threading

import pytest
from decode_cases import LINES, contents, interrupted

from t2tlite.bin import t2t_decoder
from t2tlite.data.token_store import TokenStore
from t2tlite.programs.bulk import decode_split


def feed(pipe, lines):
    """Writes lines to a pipe from a thread, which need not be read to the end."""
    os.mkfifo(pipe) if not pipe.exists() else None

    def run():
        with open(pipe, "w", encoding="utf-8") as file:
            try:
                file.writelines(f"{line}\n" for line in lines)
                file.flush()
            except BrokenPipeError:
                return

    threading.Thread(target=run, daemon=True).start()


@pytest.fixture
def from_pipe(file, tmp_path):
    """from_pipe(lines): the exit status of decoding a pipe that has these lines."""
    pipe = tmp_path / "pipe"
    flags = [f"--decode_from_file={pipe}", f"--decode_to_file={file.target}"]

    def decode(lines):
        feed(pipe, lines)
        return t2t_decoder.main([f"--output_dir={file.run}", *flags])

    return decode


def test_pipe_is_read_once_and_resumed(file, from_pipe, tmp_path, capsys, calls):
    expected = file.whole()
    assert interrupted(from_pipe, calls, 3 + 2, LINES)
    assert from_pipe(["cat", *LINES]) == 1
    message = (
        f"{tmp_path}/pipe does not begin with the lines that {file.part} is of. Delete"
        " that file."
    )
    assert message in capsys.readouterr().err
    assert from_pipe(LINES) == 0
    assert calls.windows == file.windows * 2
    assert contents(file.folder) == expected


def test_too_long_line_of_a_pipe_is_named(file, from_pipe, tmp_path, capsys):
    assert from_pipe([*LINES[:9], "cat " * 2100]) == 1
    assert (
        f"at most 2,048 tokens. Received: {tmp_path}/pipe, line 10 with 2,"
        in capsys.readouterr().err
    )
    assert len(file.part.read_text().splitlines()) == 8


def test_split_to_a_device_resumes(split, capfd, calls):
    assert interrupted(split, calls, 1, "--decode_to_file=/dev/stdout")
    assert capfd.readouterr().out == ""
    assert split("--decode_to_file=/dev/stdout") == 0
    assert len(capfd.readouterr().out.splitlines()) > 40
    assert calls.windows == split.windows


def test_file_to_a_device_is_a_stream(file, capfd):
    assert file("--decode_to_file=/dev/stdout") == 0
    assert capfd.readouterr().out.splitlines()[:3] == [
        "katze rot hund sieht",
        "",
        "fisch maus mag",
    ]
    assert os.path.islink("/dev/stdout")


@pytest.mark.parametrize("name", ["in.txt/out.txt", "/proc/nothing/out.txt"])
def test_unwritable_output_is_refused(file, tmp_path, capsys, calls, name):
    assert file(f"--decode_to_file={tmp_path / name}") == 1
    assert "out.txt cannot be written: " in capsys.readouterr().err
    assert calls.windows == []


def test_unwritable_run_is_refused(split, capsys, calls):
    split.folder.touch()
    assert split() == 1
    assert "decodes/test.120.txt cannot be written: " in capsys.readouterr().err
    assert calls.windows == []
    split.folder.unlink()


def test_too_long_sentence_of_a_split_is_named(split, capsys, monkeypatch, calls):
    source_text = TokenStore.source_text
    monkeypatch.setattr(
        TokenStore,
        "source_text",
        lambda store: [*source_text(store)[1:], "cat " * 2100],
    )
    assert split() == 1
    assert (
        "at most 2,048 tokens. Received: the sources of test, line 40 with 2,"
        in capsys.readouterr().err
    )
    assert calls.windows == []


def test_score_is_printed_before_it_is_recorded(split, capsys, monkeypatch):
    def fail(*arguments):
        raise OSError("No space left on device.")

    monkeypatch.setattr(decode_split, "write_lines", fail)
    assert split() == 1
    output = capsys.readouterr()
    assert "\nBLEU " in output.out
    assert output.err.endswith("No space left on device.\n")
