"""t2t-decoder resumes a file and a split after an interruption or a kill, and ends with
what a whole run writes.
"""

import errno
import gzip
import json
import os
import re
import signal
from pathlib import Path
from unittest.mock import Mock

import pytest
from decode_cases import LINES, contents, interrupt, interrupted, names, write

SAMPLING = "--decode_hparams=sampling_method=random,sampling_temp=2.0"
N_BEST = "--decode_hparams=return_beams=2"
JSONL = "--output_format=jsonl"


@pytest.mark.parametrize(
    ("case", "more"),
    [
        ("file", []),
        ("file", [JSONL, "--alignments", N_BEST]),
        ("file", [SAMPLING]),
        ("split", []),
        ("split", [N_BEST]),
        ("split", ["--engine=ctranslate2"]),
        ("split", [SAMPLING]),
    ],
    indirect=["case"],
)
def test_interrupted_command_resumes(case, capsys, calls, more):
    expected = case.whole(*more)
    report = capsys.readouterr().out
    (name,) = (name for name in expected if name.endswith(".txt"))
    done, part = sum(case.windows[:2]), case.folder / f"{name}.part"
    assert interrupted(case, calls, 3 + 2, *more)
    message = (
        f"{done} lines are done, in {part}. The same command resumes after"
        " them.\nt2tlite: Interrupted.\n"
    )
    output = capsys.readouterr()
    assert output.err.endswith(message)
    assert output.out == ""
    assert names(case.folder) == [part.name, f"{part.name}.json"]
    assert case(*more) == 0
    output = capsys.readouterr()
    assert f"Resuming after line {done}.\n" in output.err
    assert calls.windows == case.windows * 2  # none of them twice
    assert contents(case.folder) == expected
    speed = (
        rf"^{sum(case.windows)} sentences in \S+ s, \S+ sentences/s, [\d,]+ target"
        r" tokens/s$"
    )
    assert re.search(speed, output.out + output.err, re.MULTILINE)
    assert re.sub(speed, "", output.out, flags=re.MULTILINE) == re.sub(
        speed, "", report, flags=re.MULTILINE
    )


@pytest.mark.parametrize("more", [[], [JSONL]])
def test_interrupted_scoring_resumes(run, file, tmp_path, calls, more):
    pairs = write(tmp_path / "in.tsv", [f"{line}\tkatze {line}" for line in LINES])
    file.flags = [f"--score_file={pairs}", f"--decode_to_file={file.target}"]
    expected = file.whole(*more)
    assert interrupted(file, calls, 3 + 2, *more)
    assert file(*more) == 0
    assert calls.windows == [4, 4, 3] * 2
    assert contents(file.folder) == expected


@pytest.mark.parametrize("name", ["out.txt.gz", "link.txt"])
def test_interrupted_command_keeps_the_older_output(case, tmp_path, calls, name):
    (tmp_path / "link.txt").symlink_to("linked.txt")
    target = tmp_path / name
    assert case(N_BEST, target=target) == 0
    expected = target.read_bytes()
    target.write_text("an older output\n")
    assert interrupted(case, calls, 3 + 1, N_BEST, target=target)
    assert target.read_text() == "an older output\n"
    assert case(N_BEST, target=target) == 0
    assert target.read_bytes() == expected
    assert calls.windows == case.windows * 2
    assert not list(tmp_path.glob("*.part*"))
    assert (tmp_path / "link.txt").is_symlink()
    if name.endswith(".gz"):
        assert gzip.decompress(expected).decode().startswith("0 ||| ")


def test_killed_window_is_decoded_again(case, calls):
    expected = case.whole()
    assert interrupted(case, calls, 3 + 1)
    with case.part.open("a") as file:
        file.write("half of a window")
    for name in (case.target.name, case.part.name + ".json", case.target.name + "x"):
        (case.folder / f".{name}.0123abcd.tmp").write_text("half of a file")
    assert case() == 0
    (case.folder / f".{case.target.name}x.0123abcd.tmp").unlink()  # of another file
    assert contents(case.folder) == expected
    assert calls.windows == case.windows * 2


def test_killed_first_window_is_decoded_again(case, monkeypatch, calls):
    """As after SIGKILL, which leaves OUT.part as it is."""
    expected = case.whole()
    calls.stop = {3: interrupt}
    with monkeypatch.context() as patch:
        patch.setattr(
            "t2tlite.programs.bulk.outputs.ResumableOutput.discard", lambda output: None
        )
        assert case() == 130
    case.part.write_text("half of a window")
    assert case() == 0
    assert contents(case.folder) == expected


def test_killed_scoring_of_a_split_resumes(split, capsys, calls):
    expected = split.whole()
    calls.stop = {"score": lambda: os.kill(os.getpid(), signal.SIGTERM)}
    assert split() == 128 + signal.SIGTERM
    assert "40 lines are done, in " in capsys.readouterr().err
    for name in ("src", "json"):
        (split.folder / f".test.120.{name}.0123abcd.tmp").write_text("half of a file")
    assert split() == 0
    assert calls.windows == split.windows * 2
    assert contents(split.folder) == expected


def test_sigterm_keeps_what_is_done(case, capsys, calls):
    calls.stop = {1: lambda: os.kill(os.getpid(), signal.SIGTERM)}
    before = signal.getsignal(signal.SIGTERM)
    assert case() == 128 + signal.SIGTERM
    assert f"{case.windows[0]} lines are done, in " in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
    assert json.loads(Path(f"{case.part}.json").read_text())["lines"] == case.windows[0]


def test_interrupted_first_window_leaves_nothing(case, calls):
    assert interrupted(case, calls, 0)
    assert names(case.folder) == []


# what is synchronised in this order: the first record, the output and the record of a
# window, the output and the record of the second
FULL_AT = {1: 0, 2: 0, 3: 0, 4: 1, 5: 1}


@pytest.mark.parametrize("at", FULL_AT)
def test_full_disk_leaves_the_older_output(case, capsys, monkeypatch, at):
    assert case() == 0
    before = contents(case.folder)
    synced, fsync = [], os.fsync

    def full(handle):
        synced.append(handle)
        if len(synced) == at:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert case() == 1
    stderr = capsys.readouterr().err
    done = sum(case.windows[: FULL_AT[at]])
    assert (f"{done} lines are done, in {case.part}." in stderr) == (done > 0)
    message = (
        f"t2tlite: The disk of {case.target} is full. Free some space and run the same"
        " command again, which resumes, or name another output.\n"
    )
    assert stderr.endswith(message)
    after = contents(case.folder)
    assert {name: after[name] for name in after if ".part" not in name} == before
    assert (case.part.name in after) == (done > 0)
    assert case() == 0
    assert (f"Resuming after line {done}." in capsys.readouterr().err) == (done > 0)
    assert contents(case.folder) == before


def test_full_disk_while_the_output_is_compressed(file, capsys, monkeypatch, tmp_path):
    """All is decoded by then, and is not decoded again."""
    target = tmp_path / "new" / "out.gz"
    with monkeypatch.context() as patch:
        full = OSError(errno.ENOSPC, "No space left on device")
        patch.setattr("shutil.copyfileobj", Mock(side_effect=full))
        assert file(target=target) == 1
    assert f"The disk of {target} is full. Free some" in capsys.readouterr().err
    assert names(target.parent) == ["out.gz.part", "out.gz.part.json"]
    assert file(target=target) == 0
    assert "Resuming after line 11." in capsys.readouterr().err
    assert gzip.decompress(target.read_bytes()).count(b"\n") == 11
    assert names(target.parent) == ["out.gz"]


def test_batches_of_sentences_make_a_split_one_window(split, calls):
    rules = "--decode_hparams=t2t_rules=true"
    expected = split.whole(rules)
    assert interrupted(split, calls, 1, rules)
    assert names(split.folder) == []
    assert interrupted(split, calls, "score", rules)
    assert split(rules) == 0
    assert calls.windows == [40, 40]
    assert contents(split.folder) == expected
