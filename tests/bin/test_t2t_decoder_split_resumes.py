"""t2t-decoder --split resumes after an interruption or a kill, and ends with the files and scores of a whole run."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import signal
from types import SimpleNamespace

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.data.token_store import TokenStore
from t2tlite.programs.bulk import decode as runs_decode
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder

WINDOW = 16  # so there are three of the 40 sentences, the last with eight
NAMES = ["test.120.json", "test.120.ref", "test.120.src", "test.120.txt"]


@pytest.fixture(autouse=True)
def small_windows(loaded_once, monkeypatch):
    monkeypatch.setattr(runs_decode, "WINDOW", WINDOW)


@pytest.fixture
def calls(monkeypatch):
    """The windows that are decoded, and how often is scored; `stop` has what happens before a window, or the score."""
    seen = SimpleNamespace(windows=[], scored=0, stop={})
    decode, score = Translator.decode, Translator.score_outputs

    def decoded(self, sources, *rest):
        if action := seen.stop.pop(len(seen.windows), None):
            action()
        seen.windows.append(len(sources))
        return decode(self, sources, *rest)

    def scored(self, *arguments, **options):
        if action := seen.stop.pop("score", None):
            action()
        seen.scored += 1
        return score(self, *arguments, **options)

    monkeypatch.setattr(Translator, "decode", decoded)
    monkeypatch.setattr(Translator, "score_outputs", scored)
    return seen


def interrupt():
    raise KeyboardInterrupt


def contents(folder):
    """The files of a folder, their times left out of the records."""
    found = {}
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        found[path.name] = {**json.loads(content), "seconds": None} if path.suffix == ".json" else content
    return found


def clear(folder):
    for path in folder.iterdir():
        path.unlink()


def without_speed(report):
    return re.sub(r"^40 sentences in .*$", "", report, flags=re.MULTILINE)


def split(run, *more):
    return t2t_decoder.main([f"--output_dir={run}", "--split=test", *more])


# resuming


@pytest.mark.parametrize(
    "more",
    [
        [],
        ["--decode_hparams=return_beams=2"],
        ["--engine=ctranslate2"],
        ["--decode_hparams=sampling_method=random,sampling_temp=2.0"],
    ],
    ids=["best", "n-best", "ctranslate2", "sampling"],
)
def test_an_interrupted_split_resumes(tiny_run_copy, capsys, calls, more):
    assert split(tiny_run_copy, *more) == 0
    report, expected = capsys.readouterr().out, contents(tiny_run_copy / "decodes")
    assert len(expected) == 4
    clear(tiny_run_copy / "decodes")

    calls.stop = {3 + 2: interrupt}
    assert split(tiny_run_copy, *more) == 130
    (name,) = (name for name in expected if name.endswith(".txt"))
    message, part = capsys.readouterr(), tiny_run_copy / "decodes" / f"{name}.part"
    assert message.err.endswith(
        f"32 lines are done, in {part}. The same command resumes after them.\nt2tlite: Interrupted.\n"
    )
    assert message.out == ""
    assert sorted(contents(tiny_run_copy / "decodes")) == [part.name, f"{part.name}.json"]

    assert split(tiny_run_copy, *more) == 0
    message = capsys.readouterr()
    assert "Resuming after line 32.\n" in message.err
    assert calls.windows == [16, 16, 8] * 2  # none of them twice
    assert contents(tiny_run_copy / "decodes") == expected
    assert without_speed(message.out) == without_speed(report)
    counted = r"^40 sentences in \S+ s, \S+ sentences/s, [\d,]+ target tokens/s$"
    assert re.search(counted, message.out, re.MULTILINE)


def test_killed_while_it_was_scored_or_written(tiny_run_copy, capsys, calls):
    assert split(tiny_run_copy) == 0
    expected = contents(tiny_run_copy / "decodes")
    clear(tiny_run_copy / "decodes")
    calls.stop = {"score": lambda: os.kill(os.getpid(), signal.SIGTERM)}
    assert split(tiny_run_copy) == 128 + signal.SIGTERM
    assert "40 lines are done, in " in capsys.readouterr().err
    for name in ("test.120.txt", "test.120.src", "test.120.json", "test.120.txt.part.json"):
        (tiny_run_copy / "decodes" / f".{name}.0123abcd.tmp").write_text("half of a file")
    with (tiny_run_copy / "decodes" / "test.120.txt.part").open("a") as file:
        file.write("half of a window")
    assert split(tiny_run_copy) == 0
    assert calls.windows == [16, 16, 8] * 2
    assert contents(tiny_run_copy / "decodes") == expected


def test_under_rules_by_which_the_batch_matters_a_split_is_one_window(tiny_run_copy, capsys, calls):
    rules = "--decode_hparams=t2t_rules=true"
    assert split(tiny_run_copy, rules) == 0
    expected = contents(tiny_run_copy / "decodes")
    clear(tiny_run_copy / "decodes")
    calls.stop = {1: interrupt}
    assert split(tiny_run_copy, rules) == 130
    assert contents(tiny_run_copy / "decodes") == {}
    calls.stop = {"score": interrupt}
    assert split(tiny_run_copy, rules) == 130
    assert split(tiny_run_copy, rules) == 0
    assert calls.windows == [40, 40]
    assert contents(tiny_run_copy / "decodes") == expected


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz", "link.txt"])
def test_another_output_file(tiny_run_copy, tmp_path, calls, name):
    (tmp_path / "link.txt").symlink_to("linked.txt")
    assert split(tiny_run_copy, f"--decode_to_file={tmp_path / name}") == 0
    expected = (tmp_path / name).read_bytes()
    (tmp_path / name).write_text("an older output\n")
    calls.stop = {3 + 1: interrupt}
    assert split(tiny_run_copy, f"--decode_to_file={tmp_path / name}") == 130
    assert (tmp_path / name).read_text() == "an older output\n"
    assert split(tiny_run_copy, f"--decode_to_file={tmp_path / name}") == 0
    assert (tmp_path / name).read_bytes() == expected
    assert calls.windows == [16, 16, 8] * 2
    assert not list(tmp_path.glob("*.part*"))
    assert sorted(contents(tiny_run_copy / "decodes")) == ["test.120.json", "test.120.ref", "test.120.src"]


def test_standard_output_as_a_file(tiny_run_copy, capfd, calls):
    calls.stop = {1: interrupt}
    assert split(tiny_run_copy, "--decode_to_file=/dev/stdout") == 130
    assert capfd.readouterr().out == ""
    assert split(tiny_run_copy, "--decode_to_file=/dev/stdout") == 0
    assert len(capfd.readouterr().out.splitlines()) > 40
    assert calls.windows == [16, 16, 8]


# what cannot be resumed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("option", "out.txt.part cannot be resumed: it was made with another beam_size. Starting anew."),
        ("checkpoint", "out.txt.part cannot be resumed: it was made with another checkpoint. Starting anew."),
        ("data", "out.txt.part cannot be resumed: the input has changed. Starting anew."),
        ("split", "out.txt.part cannot be resumed: the input has changed. Starting anew."),
        ("file", "out.txt.part cannot be resumed: it was made with another work. Starting anew."),
        ("damaged", "out.txt.part cannot be resumed: it has changed since it was written. Starting anew."),
    ],
    ids=["option", "checkpoint", "data", "split", "file", "damaged"],
)
def test_what_was_made_with_something_else_is_not_resumed(
    tiny_run_copy, tmp_path, capsys, monkeypatch, calls, change, message
):
    target, more = tmp_path / "out.txt", []
    calls.stop = {2: interrupt}
    if change == "file":
        lines = tmp_path / "in.txt"
        lines.write_text("red cat sees dog\n" * 40)
        flags = [f"--output_dir={tiny_run_copy}", f"--decode_from_file={lines}", f"--decode_to_file={target}"]
        assert t2t_decoder.main(flags) == 130
    else:
        assert split(tiny_run_copy, f"--decode_to_file={target}") == 130
    if change == "option":
        more = ["--decode_hparams=beam_size=1"]
    elif change == "checkpoint":
        more = [f"--checkpoint_path={tiny_run_copy}/model.ckpt-80"]
    elif change == "data":
        source_text = TokenStore.source_text
        monkeypatch.setattr(TokenStore, "source_text", lambda store: ["cat", *source_text(store)[1:]])
    elif change == "split":
        more = ["--split=dev"]
    elif change == "damaged":
        part = tmp_path / "out.txt.part"
        part.write_bytes(part.read_bytes().replace(b"katze", b"katzf", 1))
    assert split(tiny_run_copy, f"--decode_to_file={target}", *more) == 0
    assert message in capsys.readouterr().err
    assert calls.windows[2:] == [16, 16, 8]
    assert split(tiny_run_copy, f"--decode_to_file={tmp_path / 'other.txt'}", *more) == 0
    assert target.read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_other_options_have_another_output(tiny_run_copy, calls):
    calls.stop = {2: interrupt}
    assert split(tiny_run_copy) == 130
    assert split(tiny_run_copy, "--decode_hparams=beam_size=1") == 0
    assert split(tiny_run_copy) == 0
    assert calls.windows == [16, 16, *[16, 16, 8], 8]
    assert len(contents(tiny_run_copy / "decodes")) == 8


def test_a_second_process_that_writes_the_same_output_is_refused(tiny_run_copy, capsys, calls):
    (tiny_run_copy / "decodes").mkdir()
    with (tiny_run_copy / "decodes" / "test.120.txt.part").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert split(tiny_run_copy) == 1
    assert (
        f"Only one process can write an output. Received: {tiny_run_copy}/decodes/test.120.txt, and"
        in capsys.readouterr().err
    )
    assert calls.windows == []
    assert split(tiny_run_copy) == 0


def test_a_full_disk_leaves_the_results_of_before(tiny_run_copy, capsys, monkeypatch, calls):
    assert split(tiny_run_copy) == 0
    before = contents(tiny_run_copy / "decodes")
    synced, fsync = [], os.fsync

    def full(handle):
        synced.append(handle)
        if len(synced) == 3:  # the output and the record of the first window, the output of the second
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert split(tiny_run_copy) == 1
    stderr = capsys.readouterr().err
    assert "16 lines are done, in " in stderr
    assert stderr.endswith("No space left on device\n")
    assert {
        name: content for name, content in contents(tiny_run_copy / "decodes").items() if ".part" not in name
    } == before
    assert split(tiny_run_copy) == 0
    assert contents(tiny_run_copy / "decodes") == before


def test_what_is_being_decoded_is_no_record_yet(tiny_run_copy, calls):
    assert split(tiny_run_copy) == 0
    calls.stop = {3 + 1: interrupt}
    assert split(tiny_run_copy) == 130
    records, complaints = RunFolder(tiny_run_copy).decode_records()
    assert [record.name for record in records] == ["test.120"]
    assert complaints == []


def test_a_sentence_that_is_too_long_is_named_before_anything_is_decoded(tiny_run_copy, capsys, monkeypatch, calls):
    source_text = TokenStore.source_text
    monkeypatch.setattr(TokenStore, "source_text", lambda store: [*source_text(store)[1:], "cat " * 2100])
    assert split(tiny_run_copy) == 1
    assert "at most 2,048 tokens. Received: the sources of test, line 40 with 2," in capsys.readouterr().err
    assert calls.windows == []
