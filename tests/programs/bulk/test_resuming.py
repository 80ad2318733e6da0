"""Decoding of a file and a split that is interrupted or killed resumes, and ends with
what a whole run writes.
"""

import contextlib
import errno
import os
import re
import threading

import pytest
from bulk_cases import LINES, contents, names, write

from t2tlite.data.token_store import TokenStore
from t2tlite.programs.bulk import decode_split
from t2tlite.programs.bulk.decode_file import decode_file
from t2tlite.programs.bulk.jobs import ScoreJob
from t2tlite.programs.bulk.part import Part

SAMPLING = "sampling_method=random,sampling_temp=2.0"
N_BEST = "return_beams=2"
JSONL = {"output_format": "jsonl"}
CTRANSLATE2 = {"model": (None, "ctranslate2")}


@pytest.mark.parametrize(
    ("case", "changes", "more"),
    [
        ("file", "", {}),
        ("file", N_BEST, {**JSONL, "alignments": True}),
        ("file", SAMPLING, {}),
        ("split", "", {}),
        ("split", N_BEST, {}),
        ("split", "", CTRANSLATE2),
        ("split", SAMPLING, {}),
    ],
    indirect=["case"],
)
def test_interrupted_work_resumes(case, capsys, calls, changes, more):
    expected = case.whole(changes, **more)
    report = capsys.readouterr().out
    (name,) = (name for name in expected if name.endswith(".txt"))
    case.target = case.folder / name
    part = f"{case.target}.part"
    done = sum(case.windows[:2])
    case.interrupted(2, changes, **more)
    output = capsys.readouterr()
    assert output.out == ""
    assert names(case.folder) == [f"{name}.part"]
    assert case.windows_done() == 2
    summary = case(changes, **more)
    output = capsys.readouterr()
    assert f"Resuming: {done} lines are done, in {part}.\n" in output.err
    assert calls.windows == case.windows  # none of them twice
    assert contents(case.folder) == expected
    speed = (
        rf"^{sum(case.windows)} sentences in \S+ s, \S+ sentences/s, [\d,]+ target"
        r" tokens/s$"
    )
    assert re.search(speed, summary or output.out, re.MULTILINE)
    assert re.sub(speed, "", output.out, flags=re.MULTILINE) == re.sub(
        speed, "", report, flags=re.MULTILINE
    )


@pytest.mark.parametrize("more", [{}, JSONL])
def test_interrupted_scoring_resumes(file, tmp_path, calls, more):
    pairs = write(tmp_path / "in.tsv", [f"{line}\tkatze {line}" for line in LINES])
    file.decode = lambda job, target: decode_file(job, pairs, target)
    expected = file.whole(kind=ScoreJob, **more)
    file.interrupted(2, kind=ScoreJob, **more)
    file(kind=ScoreJob, **more)
    assert calls.windows == [4, 4, 3]
    assert contents(file.folder) == expected


def test_outputs_of_a_split_are_written_through_a_link(split, tmp_path):
    link = tmp_path / "link.txt"
    link.symlink_to("linked.txt")
    split.interrupted(1, target=link)
    assert (tmp_path / "linked.txt.part").exists()
    split(target=link)
    assert link.is_symlink()
    assert len((tmp_path / "linked.txt").read_text().splitlines()) == 40


def test_interrupted_scoring_of_a_split_resumes(split, calls):
    expected = split.whole()
    split.interrupted("score")
    for name in ("src", "json"):
        (split.folder / f".test.120.{name}.0123abcd.tmp").write_text("half of a file")
    split()
    assert calls.windows == split.windows
    assert contents(split.folder) == expected


@pytest.mark.parametrize("window", [1, 2, 3])
def test_full_disk_leaves_the_older_output(case, capsys, monkeypatch, window):
    case()
    before = contents(case.folder)
    capsys.readouterr()
    added, add = [], Part.add

    def full(self, *work):
        added.append(work)
        if len(added) == window:
            raise OSError(errno.ENOSPC, "No space left on device")
        add(self, *work)

    message = f"No space left on device: '{case.target}'"
    with monkeypatch.context() as patch:
        patch.setattr(Part, "add", full)
        with pytest.raises(OSError, match=re.escape(message)):
            case()
    done = sum(case.windows[: window - 1])
    capsys.readouterr()
    after = contents(case.folder)
    assert {name: after[name] for name in after if ".part" not in name} == before
    assert len(after) - len(before) == (window > 1)
    case()
    stderr = capsys.readouterr().err
    assert (f"Resuming: {done} lines are done" in stderr) == (done > 0)
    assert contents(case.folder) == before


def test_batches_of_sentences_make_a_split_one_window(split, calls):
    rules = "t2t_rules=true"
    expected = split.whole(rules)
    split.interrupted(0, rules)
    assert list(split.folder.iterdir()) == []
    split.interrupted("score", rules)
    split(rules)
    assert calls.windows == [40]
    assert contents(split.folder) == expected


def test_score_is_printed_before_it_is_recorded(split, capsys, monkeypatch):
    def fail(*arguments):
        raise OSError("No space left on device.")

    monkeypatch.setattr(decode_split.text_files, "write_lines", fail)
    with pytest.raises(OSError, match="No space left"):
        split()
    assert "BLEU " in capsys.readouterr().out


def test_too_long_sentence_of_a_split_is_named(split, monkeypatch, calls):
    source_text = TokenStore.source_text
    monkeypatch.setattr(
        TokenStore,
        "source_text",
        lambda store: [*source_text(store)[1:], "cat " * 2100],
    )
    message = "at most 2,048 tokens. Received: the sources of test, line 40 with 2,"
    with pytest.raises(ValueError, match=message):
        split()
    assert calls.windows == []


@pytest.fixture
def pipe(file, tmp_path):
    """pipe(lines): lets the file be a pipe that has these lines."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    file.decode = lambda job, target: decode_file(job, path, target)

    def feed(lines):
        def run():
            with (
                contextlib.suppress(BrokenPipeError),  # it need not be read to the end
                path.open("w", encoding="utf-8") as sink,
            ):
                sink.writelines(f"{line}\n" for line in lines)
                sink.flush()

        threading.Thread(target=run, daemon=True).start()

    return feed


def test_pipe_is_read_once_and_resumed(file, pipe, capsys):
    pipe(LINES)
    expected = file.whole()
    pipe(LINES)
    file.interrupted(2)
    capsys.readouterr()
    pipe(LINES)
    file()
    assert "Resuming: 8 lines are done, in " in capsys.readouterr().err
    assert file.calls.windows == file.windows
    assert contents(file.folder) == expected
