"""t2t-decoder writes what is done as it goes, and the same command resumes after an interruption or a kill."""

from __future__ import annotations

import fcntl
import gzip
import itertools
import json
import os
import signal
import threading
from types import SimpleNamespace

import pytest

from t2tlite.bin import t2t_decoder
from t2tlite.config import DecodeHParams
from t2tlite.programs.bulk import decode as runs_decode
from t2tlite.programs.bulk import decode_split as runs_decode_split
from t2tlite.programs.bulk.decode import decode_lines
from t2tlite.programs.runs.translator import Origin, Translator
from t2tlite.tasks.task import Hypothesis, open_task

SENTENCES = ["red cat sees dog", "", "fish likes mouse", "black horse bites bird today", "dog hears dog often", "cat"]
LINES = [SENTENCES[i % 6] for i in range(11)]
WINDOW = 3  # so there are four, the last with two lines


@pytest.fixture(autouse=True)
def small_windows(loaded_once, monkeypatch):
    monkeypatch.setattr(runs_decode, "WINDOW", WINDOW)


@pytest.fixture
def windows(monkeypatch):
    """The first source of each window that is decoded or scored; `stop_at` has what happens before a window."""
    seen = SimpleNamespace(sources=[], stop_at={})
    for name in ("decode", "score"):
        original = getattr(Translator, name)

        def recorded(self, sources, *rest, original=original):
            if action := seen.stop_at.pop(len(seen.sources), None):
                action()
            seen.sources.append(list(sources))
            return original(self, sources, *rest)

        monkeypatch.setattr(Translator, name, recorded)
    return seen


def interrupt():
    raise KeyboardInterrupt


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


@pytest.fixture
def command(tiny_run, tmp_path):
    """command(target, *flags) calls t2t-decoder with in.txt, of LINES, and returns the exit status."""
    source = write(tmp_path / "in.txt", LINES)

    def run(target, *more, mode="decode_from_file", source=source):
        return t2t_decoder.main(
            [f"--output_dir={tiny_run.run}", f"--{mode}={source}", f"--decode_to_file={target}", *more]
        )

    return run


def names(folder):
    return sorted(path.name for path in folder.iterdir())


# a window after the other


def test_windows_are_read_as_they_are_needed_and_equal_one_decoding_of_all(tiny_run, load):
    model = load(tiny_run.run, None)
    endless = itertools.chain(LINES[:9], itertools.repeat("cat"))
    found = (window.lines for window in decode_lines(model, endless, model.options()))
    assert list(itertools.chain.from_iterable(itertools.islice(found, 3))) == model.translate(LINES[:9])
    assert next(endless) == "cat"


def test_a_window_can_be_decoded_by_itself(tiny_run, load):
    model = load(tiny_run.run, None)
    options = model.options(return_beams=2)
    whole = list(decode_lines(model, LINES, options))
    alone = next(decode_lines(model, LINES[6:9], options, Origin("in.txt", 6)))
    assert alone == whole[2]
    assert alone.lines[0].startswith("6 ||| katze rot hund sieht ||| log_prob= -")


def test_rules_by_which_the_batch_matters_keep_one_window():
    class Whole:
        """Decodes nothing, and returns how many sentences it was given."""

        target_encoder = SimpleNamespace(encode_batch=lambda texts: [[] for _ in texts])

        def task_under(self, options):
            return open_task("translation", {})

        def decode(self, sentences, *rest):
            return [[Hypothesis(str(len(sentences)), 0.0, 0.0)] for _ in sentences]

    (window,) = decode_lines(Whole(), LINES, DecodeHParams(t2t_rules=True))
    assert window.lines == ["11"] * 11
    assert [len(window.lines) for window in decode_lines(Whole(), LINES, DecodeHParams())] == [3, 3, 3, 2]


def test_standard_output_gets_each_window_at_once(tiny_run, tmp_path, capsys, windows):
    shown = []
    windows.stop_at = {i: lambda: shown.append(capsys.readouterr().out) for i in range(4)}
    source = write(tmp_path / "in.txt", LINES)
    assert t2t_decoder.main([f"--output_dir={tiny_run.run}", f"--decode_from_file={source}"]) == 0
    assert [text.count("\n") for text in shown] == [0, 3, 3, 3]
    assert shown[1] == "katze rot hund sieht\n\nfisch maus mag\n"
    assert names(tmp_path) == ["in.txt"]


# resuming


@pytest.mark.parametrize(
    ("mode", "name", "more"),
    [
        ("decode_from_file", "out.txt", []),
        ("decode_from_file", "new/out.txt.gz", ["--decode_hparams=return_beams=2"]),
        ("score_file", "scores.txt", []),
        ("decode_from_file", "out.jsonl", ["--output_format=jsonl", "--alignments", "--decode_hparams=return_beams=2"]),
        ("score_file", "scores.jsonl", ["--output_format=jsonl"]),
        ("decode_from_file", "samples.txt", ["--decode_hparams=sampling_method=random,sampling_temp=2.0"]),
    ],
)
def test_an_interrupted_command_resumes(tmp_path, command, capsys, windows, mode, name, more):
    source = write(tmp_path / "in.tsv", [f"{line}\tkatze {line}" for line in LINES]) if mode == "score_file" else None
    arguments = {"mode": mode, **({"source": source} if source else {})}
    assert command(tmp_path / "whole" / name, *more, **arguments) == 0
    expected, target = (tmp_path / "whole" / name).read_bytes(), tmp_path / name

    windows.stop_at = {4 + 2: interrupt}
    assert command(target, *more, **arguments) == 130
    part = f"{target}.part"
    assert capsys.readouterr().err.endswith(
        f"6 lines are done, in {part}. The same command resumes after them.\nt2tlite: Interrupted.\n"
    )
    assert not target.exists()

    assert command(target, *more, **arguments) == 0
    stderr = capsys.readouterr().err
    assert "Resuming after line 6.\n" in stderr
    assert "11 sentences in " in stderr
    assert [len(window) for window in windows.sources[4:]] == [3, 3, 3, 2]  # none of them twice
    assert target.read_bytes() == expected
    assert not list(target.parent.glob("*.part*"))
    if name.endswith(".gz"):
        assert gzip.decompress(expected).decode().startswith("0 ||| katze rot hund sieht ||| log_prob= -")


def test_what_a_killed_process_had_not_recorded_is_made_again(tmp_path, command, windows):
    assert command(tmp_path / "whole.txt") == 0
    windows.stop_at = {4 + 1: interrupt}
    assert command(tmp_path / "out.txt") == 130
    with (tmp_path / "out.txt.part").open("a") as file:
        file.write("half of a wind")
    assert command(tmp_path / "out.txt") == 0
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()

    write(tmp_path / "out.txt.part", ["of a first window"])  # without a record
    for name in (".out.txt.part.json.0123abcd.tmp", ".out.txt.0123abcd.tmp", ".out.txt.gz.0123abcd.tmp"):
        write(tmp_path / name, ["half of a file"])
    assert command(tmp_path / "out.txt") == 0
    assert names(tmp_path) == [".out.txt.gz.0123abcd.tmp", "in.txt", "out.txt", "whole.txt"]  # of another file
    assert (tmp_path / "out.txt").read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_sigterm(tmp_path, command, capsys, windows):
    windows.stop_at = {1: lambda: os.kill(os.getpid(), signal.SIGTERM)}
    before = signal.getsignal(signal.SIGTERM)
    assert command(tmp_path / "out.txt") == 128 + signal.SIGTERM
    assert "3 lines are done, in " in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
    assert json.loads((tmp_path / "out.txt.part.json").read_text())["lines"] == 3


def test_interrupted_in_the_first_window(tmp_path, command, windows):
    windows.stop_at = {0: interrupt}
    assert command(tmp_path / "out.txt") == 130
    assert names(tmp_path) == ["in.txt"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("option", "out.txt.part cannot be resumed: it was made with another beam_size. Starting anew."),
        ("format", "out.txt.part cannot be resumed: it was made with another output_format. Starting anew."),
        ("input", "out.txt.part cannot be resumed: the input has changed. Starting anew."),
        ("checkpoint", "out.txt.part cannot be resumed: it was made with another checkpoint. Starting anew."),
        ("shorter", "out.txt.part cannot be resumed: it has changed since it was written. Starting anew."),
        ("negative", "out.txt.part cannot be resumed: out.txt.part.json is damaged. Starting anew."),
        ("damaged", "out.txt.part cannot be resumed: out.txt.part.json is damaged. Starting anew."),
    ],
    ids=["option", "format", "input", "checkpoint", "shorter", "negative", "damaged"],
)
def test_what_was_made_with_something_else_is_not_resumed(
    tiny_run, tmp_path, command, capsys, windows, change, message
):
    target, part = tmp_path / "out.txt", tmp_path / "out.txt.part"
    windows.stop_at = {2: interrupt}
    assert command(target) == 130
    more = []
    if change == "option":
        more = ["--decode_hparams=beam_size=1"]
    elif change == "format":
        more = ["--output_format=nbest"]
    elif change == "input":
        write(tmp_path / "in.txt", ["cat", *LINES[1:]])
    elif change == "checkpoint":
        more = [f"--checkpoint_path={tiny_run.run}/model.ckpt-80"]
    elif change == "shorter":
        part.write_bytes(part.read_bytes()[:-1])
    else:
        text = '{"made_with": {}, "lines": -1}' if change == "negative" else '{"lines": "six"'
        part.with_name("out.txt.part.json").write_text(text)
    assert command(target, *more) == 0
    assert message in capsys.readouterr().err
    assert len(windows.sources) == 2 + 4
    assert command(tmp_path / "other.txt", *more) == 0
    assert target.read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_lines_may_be_added_behind_those_that_are_done(tmp_path, command, windows):
    windows.stop_at = {2: interrupt}
    assert command(tmp_path / "out.txt") == 130
    write(tmp_path / "in.txt", [*LINES, "fish likes mouse"])
    assert command(tmp_path / "out.txt") == 0
    assert (tmp_path / "out.txt").read_text().splitlines()[-2:] == ["hund oft hund hoert", "fisch maus mag"]
    assert len(windows.sources) == 4


def test_a_second_process_that_writes_the_same_output_is_refused(tmp_path, command, capsys):
    with (tmp_path / "out.txt.part").open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert command(tmp_path / "out.txt") == 1
    stderr = capsys.readouterr().err
    assert f"Only one process can write an output. Received: {tmp_path}/out.txt, and another writes" in stderr
    assert command(tmp_path / "out.txt") == 0


# pipes and links


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
    return pipe


def test_a_pipe_is_read_once_and_resumed(tmp_path, command, capsys, windows):
    pipe, target = tmp_path / "pipe", tmp_path / "out.txt"
    windows.stop_at = {2: interrupt}
    assert command(target, source=feed(pipe, LINES)) == 130
    assert command(target, source=feed(pipe, ["cat", *LINES])) == 1
    assert (
        f"{pipe} does not begin with the lines that {target}.part is of. Delete that file." in capsys.readouterr().err
    )
    assert command(target, source=feed(pipe, LINES)) == 0
    assert len(windows.sources) == 4
    assert command(tmp_path / "whole.txt") == 0
    assert target.read_bytes() == (tmp_path / "whole.txt").read_bytes()


def test_the_line_of_a_pipe_that_is_too_long_is_named(tmp_path, command, capsys):
    pipe = feed(tmp_path / "pipe", [*LINES[:7], "cat " * 2100])
    assert command(tmp_path / "out.txt", source=pipe) == 1
    assert f"at most 2,048 tokens. Received: {pipe}, line 8 with 2," in capsys.readouterr().err
    assert len((tmp_path / "out.txt.part").read_text().splitlines()) == 6


def test_a_link_stays_and_its_target_is_written(tmp_path, command):
    (tmp_path / "kept").mkdir()
    (tmp_path / "out.txt").symlink_to("kept/real.txt")
    assert command(tmp_path / "out.txt") == 0
    assert (tmp_path / "out.txt").readlink().name == "real.txt"
    assert len((tmp_path / "kept" / "real.txt").read_text().splitlines()) == 11
    assert names(tmp_path / "kept") == ["real.txt"]


def test_standard_output_as_a_file(command, capfd):
    assert command("/dev/stdout") == 0
    assert capfd.readouterr().out.splitlines()[:3] == ["katze rot hund sieht", "", "fisch maus mag"]
    assert os.path.islink("/dev/stdout")


# what is checked before anything is decoded


@pytest.mark.parametrize("name", ["in.txt/out.txt", "/proc/nothing/out.txt"])
def test_an_output_that_cannot_be_written(tmp_path, command, capsys, windows, name):
    assert command(tmp_path / name) == 1
    assert "out.txt cannot be written: " in capsys.readouterr().err
    assert windows.sources == []


def test_a_run_that_cannot_be_written(tiny_run_copy, capsys, windows):
    (tiny_run_copy / "decodes").touch()
    assert t2t_decoder.main([f"--output_dir={tiny_run_copy}", "--split=test"]) == 1
    assert "decodes/test.120.txt cannot be written: " in capsys.readouterr().err
    assert windows.sources == []


def test_the_score_is_printed_before_the_records_are_written(tiny_run_copy, capsys, monkeypatch):
    def fail(*arguments):
        raise OSError("No space left on device.")

    monkeypatch.setattr(runs_decode_split, "write_lines", fail)
    assert t2t_decoder.main([f"--output_dir={tiny_run_copy}", "--split=test"]) == 1
    output = capsys.readouterr()
    assert "\nBLEU " in output.out
    assert output.err.endswith("No space left on device.\n")


def test_the_checkpoint_is_reported_unless_it_is_the_newest(tiny_run, tmp_path, command, capsys):
    assert command(tmp_path / "out.txt") == 0
    assert "checkpoint" not in capsys.readouterr().err
    assert command(tmp_path / "out.txt", "--checkpoint_path=best") == 0
    assert f"Using checkpoint {tiny_run.run}/best/model.ckpt-" in capsys.readouterr().err
