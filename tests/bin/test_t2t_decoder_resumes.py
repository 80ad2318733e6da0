"""t2t-decoder resumes a file and a split after an interruption or a kill, and ends with what a whole run writes."""

import errno
import fcntl
import gzip
import json
import os
import re
import shutil
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from tiny_run import change_manifest

from t2tlite.bin import t2t_decoder
from t2tlite.data.token_store import TokenStore
from t2tlite.programs.bulk import decode_file, decode_split
from t2tlite.programs.runs.translator import Translator
from t2tlite.run_folder import RunFolder

SENTENCES = ["red cat sees dog", "", "fish likes mouse", "black horse bites bird today", "dog hears dog often", "cat"]
LINES = [SENTENCES[i % 6] for i in range(11)]
SAMPLING = "--decode_hparams=sampling_method=random,sampling_temp=2.0"
N_BEST = "--decode_hparams=return_beams=2"
JSONL = "--output_format=jsonl"


def interrupt():
    raise KeyboardInterrupt


def write(path, lines):
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(folder):
    """The files of a folder, with times left out of the records."""
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    return {
        name: {**json.loads(content), "seconds": None} if name.endswith(".json") else content
        for name, content in files.items()
    }


class Case:
    """t2t-decoder for a file or a split, which is decoded in three windows."""

    def __init__(self, run: Path, folder: Path, target: Path, windows: list[int], flags: list[str]) -> None:
        self.run, self.folder, self.target, self.windows, self.flags = run, folder, target, windows, flags

    def __call__(self, *more: str, target: Path | None = None) -> int:
        output = [f"--decode_to_file={target}"] if target else []
        return t2t_decoder.main([f"--output_dir={self.run}", *self.flags, *output, *more])

    @property
    def part(self) -> Path:
        """The unfinished output."""
        return Path(f"{self.target}.part")

    def whole(self, *more: str) -> dict:
        """The files that are written without an interruption; they are then removed."""
        assert self(*more) == 0
        files = contents(self.folder)
        shutil.rmtree(self.folder)
        return files


@pytest.fixture(scope="module")
def run(tiny_run, tmp_path_factory):
    """A copy of the run, in which splits are decoded, by default with a narrow beam."""
    ignored = shutil.ignore_patterns("decodes")
    run = shutil.copytree(tiny_run.run, tmp_path_factory.mktemp("run") / "copy", ignore=ignored)
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
    """The sizes of windows that are decoded or scored; `stop` has what happens before a window, or before "score"."""
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


def interrupted(run, calls, window, *arguments, **options):
    """Whether a command ends as after Ctrl-C, which comes before a window."""
    calls.stop = {window: interrupt}
    return run(*arguments, **options) == 130


# resuming


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
    message = f"{done} lines are done, in {part}. The same command resumes after them.\nt2tlite: Interrupted.\n"
    output = capsys.readouterr()
    assert output.err.endswith(message)
    assert output.out == ""
    assert names(case.folder) == [part.name, f"{part.name}.json"]
    assert case(*more) == 0
    output = capsys.readouterr()
    assert f"Resuming after line {done}.\n" in output.err
    assert calls.windows == case.windows * 2  # none of them twice
    assert contents(case.folder) == expected
    speed = rf"^{sum(case.windows)} sentences in \S+ s, \S+ sentences/s, [\d,]+ target tokens/s$"
    assert re.search(speed, output.out + output.err, re.MULTILINE)
    assert re.sub(speed, "", output.out, flags=re.MULTILINE) == re.sub(speed, "", report, flags=re.MULTILINE)


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
        patch.setattr("t2tlite.programs.bulk.outputs.ResumableOutput.discard", lambda output: None)
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


def test_full_disk_leaves_the_older_output(case, capsys, monkeypatch):
    assert case() == 0
    before = contents(case.folder)
    synced, fsync = [], os.fsync

    def full(handle):
        synced.append(handle)
        if len(synced) == 4:  # the first record, the output and the record of a window, the output of the second
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        assert case() == 1
    stderr = capsys.readouterr().err
    assert f"{case.windows[0]} lines are done, in " in stderr
    assert stderr.endswith("No space left on device\n")
    assert {name: content for name, content in contents(case.folder).items() if ".part" not in name} == before
    assert case() == 0
    assert contents(case.folder) == before


def test_batches_of_sentences_make_a_split_one_window(split, calls):
    rules = "--decode_hparams=t2t_rules=true"
    expected = split.whole(rules)
    assert interrupted(split, calls, 1, rules)
    assert names(split.folder) == []
    assert interrupted(split, calls, "score", rules)
    assert split(rules) == 0
    assert calls.windows == [40, 40]
    assert contents(split.folder) == expected


# what cannot be resumed


def change_input(case, monkeypatch):
    write(case.target.parent.parent / "in.txt", ["cat", *LINES[1:]])
    source_text = TokenStore.source_text
    monkeypatch.setattr(TokenStore, "source_text", lambda store: ["cat", *source_text(store)[1:]])


def change_output(case, monkeypatch):
    case.part.write_bytes(case.part.read_bytes().replace(b"katze", b"katzf", 1))


def shorten_output(case, monkeypatch):
    case.part.write_bytes(case.part.read_bytes()[:-1])


def damage_record(old, new):
    def change(case, monkeypatch):
        record = Path(f"{case.part}.json")
        text = record.read_text()
        assert old in text
        record.write_text(text.replace(old, new))

    return change


@pytest.mark.parametrize(
    ("case", "change", "reason"),
    [
        ("file", ["--decode_hparams=beam_size=1"], "it was made with another beam_size"),
        ("file", ["--output_format=nbest"], "it was made with another output_format"),
        ("file", ["--checkpoint_path=RUN/model.ckpt-80"], "it was made with another checkpoint"),
        ("file", ["--engine=ctranslate2"], "it was made with another engine, quantization"),
        ("file", change_input, "the input has changed"),
        ("file", shorten_output, "it has changed since it was written"),
        ("file", damage_record('"lines": 8', '"lines": -8'), "out.txt.part.json is damaged"),
        ("file", damage_record('"lines": 8', '"lines": "eight'), "out.txt.part.json is damaged"),
        ("split", ["--decode_hparams=beam_size=1"], "it was made with another beam_size"),
        ("split", ["--checkpoint_path=RUN/model.ckpt-80"], "it was made with another checkpoint"),
        ("split", ["--split=dev"], "the input has changed"),
        ("split", change_input, "the input has changed"),
        ("split", change_output, "it has changed since it was written"),
    ],
    indirect=["case"],
)
def test_changed_output_is_made_anew(case, tmp_path, capsys, monkeypatch, calls, change, reason):
    case.target = tmp_path / "new" / "out.txt"
    assert interrupted(case, calls, 2, target=case.target)
    more = []
    if isinstance(change, list):
        more = [flag.replace("RUN", str(case.run)) for flag in change]
    else:
        change(case, monkeypatch)
    assert case(*more, target=case.target) == 0
    assert f"out.txt.part cannot be resumed: {reason}. Starting anew." in capsys.readouterr().err
    assert calls.windows[2:] == case.windows
    assert case(*more, target=tmp_path / "other.txt") == 0
    assert case.target.read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_file_is_not_resumed_as_a_split(file, split, capsys, calls):
    write(file.target.parent.parent / "in.txt", ["red cat sees dog"] * 40)
    assert interrupted(file, calls, 2)
    assert split(target=file.target) == 0
    assert "cannot be resumed: it was made with another work. Starting anew." in capsys.readouterr().err


@pytest.mark.parametrize("text", ["a chapter of mine", '{"format_version": 1, "lines": 0}', ""])
@pytest.mark.parametrize("ends", [[".part"], [".part.json"], [".part", ".part.json"]])
def test_foreign_part_is_refused(case, tmp_path, capsys, calls, ends, text):
    target = tmp_path / "out.txt"
    foreign = [tmp_path / f"out.txt{end}" for end in ends]
    for path in foreign:
        write(path, [text])
    assert case(target=target) == 1
    assert f"{target}.part must be what t2t-decoder has done of out.txt. Received: " in capsys.readouterr().err
    assert [path.read_text() for path in foreign] == [f"{text}\n"] * len(ends)
    assert calls.windows == []
    for path in foreign:
        path.unlink()
    assert case(target=target) == 0


def test_part_of_another_format_version_is_refused(case, tmp_path, capsys, calls):
    target = tmp_path / "out.txt"
    assert interrupted(case, calls, 2, target=target)
    part, record = tmp_path / "out.txt.part", tmp_path / "out.txt.part.json"
    later = record.read_text().replace('"format_version": 1', '"format_version": 2')
    before = part.read_bytes()
    record.write_text(later)
    assert case(target=target) == 1
    message = r"out\.txt\.part\.json, which is not its record of format_version 1: it begins .*format_version\": 2"
    assert re.search(message, capsys.readouterr().err)
    assert (part.read_bytes(), record.read_text()) == (before, later)
    assert len(calls.windows) == 2


def test_added_lines_are_decoded_after_those_done(file, calls):
    assert interrupted(file, calls, 2)
    write(file.target.parent.parent / "in.txt", [*LINES, "fish likes mouse"])
    assert file() == 0
    assert file.target.read_text().splitlines()[-2:] == ["hund oft hund hoert", "fisch maus mag"]
    assert calls.windows == [4, 4, 4]


def test_other_options_of_a_split_have_another_output(split, calls):
    assert interrupted(split, calls, 2)
    assert split("--decode_hparams=beam_size=1") == 0
    assert split() == 0
    assert calls.windows == [16, 16, *split.windows, 8]
    assert len(contents(split.folder)) == 8


def test_unfinished_split_is_not_a_record(split, calls):
    assert split() == 0
    assert interrupted(split, calls, 3 + 1)
    records, complaints = RunFolder(split.run).decode_records()
    assert [record.name for record in records] == ["test.120"]
    assert complaints == []


def test_second_process_is_refused(case, capsys, calls):
    case.folder.mkdir()
    with case.part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert case() == 1
    message = f"Only one process can write an output. Received: {case.target}, and another writes"
    assert message in capsys.readouterr().err
    assert calls.windows == []
    assert case() == 0


# pipes and devices


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
    message = f"{tmp_path}/pipe does not begin with the lines that {file.part} is of. Delete that file."
    assert message in capsys.readouterr().err
    assert from_pipe(LINES) == 0
    assert calls.windows == file.windows * 2
    assert contents(file.folder) == expected


def test_too_long_line_of_a_pipe_is_named(file, from_pipe, tmp_path, capsys):
    assert from_pipe([*LINES[:9], "cat " * 2100]) == 1
    assert f"at most 2,048 tokens. Received: {tmp_path}/pipe, line 10 with 2," in capsys.readouterr().err
    assert len(file.part.read_text().splitlines()) == 8


def test_split_to_a_device_resumes(split, capfd, calls):
    assert interrupted(split, calls, 1, "--decode_to_file=/dev/stdout")
    assert capfd.readouterr().out == ""
    assert split("--decode_to_file=/dev/stdout") == 0
    assert len(capfd.readouterr().out.splitlines()) > 40
    assert calls.windows == split.windows


def test_file_to_a_device_is_a_stream(file, capfd):
    assert file("--decode_to_file=/dev/stdout") == 0
    assert capfd.readouterr().out.splitlines()[:3] == ["katze rot hund sieht", "", "fisch maus mag"]
    assert os.path.islink("/dev/stdout")


# what is checked before anything is decoded, and what is printed


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
    monkeypatch.setattr(TokenStore, "source_text", lambda store: [*source_text(store)[1:], "cat " * 2100])
    assert split() == 1
    assert "at most 2,048 tokens. Received: the sources of test, line 40 with 2," in capsys.readouterr().err
    assert calls.windows == []


def test_score_is_printed_before_it_is_recorded(split, capsys, monkeypatch):
    def fail(*arguments):
        raise OSError("No space left on device.")

    monkeypatch.setattr(decode_split, "write_lines", fail)
    assert split() == 1
    output = capsys.readouterr()
    assert "\nBLEU " in output.out
    assert output.err.endswith("No space left on device.\n")
