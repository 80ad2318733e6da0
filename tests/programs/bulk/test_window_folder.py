"""The folder of windows: what it keeps, finds, refuses and removes, whatever decodes."""

import contextlib
import hashlib
import os
import random
import re

import pytest
from bulk_cases import names

from t2tlite.decoding.source_text import Origin
from t2tlite.files.lock import only_process
from t2tlite.files.text_files import read_lines
from t2tlite.programs.bulk.window_folder import (
    WindowFolder,
    open_windows,
    write_input,
    write_output,
)
from t2tlite.programs.bulk.windows import (
    Input,
    Window,
    WindowOutput,
    cut,
    ends_at_marked_line,
)

LINES = [f"line {number}" for number in range(20)]
SIZE = 4  # of windows
KEY = "0" * 32
END = "the end"  # when all windows are decoded, but OUT is not written


class Upper:
    """Writes lines in capitals, by windows."""

    def __init__(self, target, size=SIZE):
        self.target = target
        self.size = size
        self.decoded = []  # the first line of each window
        self.stop_at = ""  # a first line, or END

    def __call__(self, lines, lines_again=None):
        inputs = iter([lines, lines if lines_again is None else lines_again])

        def windows():
            text = Input(Origin("in.txt"), lambda: next(inputs))
            return cut(text, ends_at_marked_line(self.size))

        with open_windows(self.target, self.key) as folder:
            folder.plan(windows())
            for file, window in folder.missing(windows()):
                if window.lines[0] == self.stop_at:
                    raise KeyboardInterrupt
                self.decoded.append(window.lines[0])
                upper = [line.upper() for line in window.lines]
                write_output(file, WindowOutput(upper, {"sentences": len(upper)}, 0.5))
            if self.stop_at == END:
                raise KeyboardInterrupt
            return folder.publish()

    def stopped(self, lines, stop_at):
        """Decodes up to the window that begins with `stop_at`, or all but OUT."""
        self.stop_at = stop_at
        with pytest.raises(KeyboardInterrupt):
            self(lines)
        self.stop_at = ""
        self.decoded.clear()

    @property
    def folder(self):
        return self.target.with_name(f"{self.target.name}.windows")

    def file(self, lines):
        """The output of a window."""
        return self.folder / f"{self.key(Window(lines))}.json"

    @staticmethod
    def key(window):
        return hashlib.sha256(repr(window.lines).encode()).hexdigest()[:32]


@pytest.fixture
def upper(tmp_path):
    return Upper(tmp_path / "out.txt")


def written(target):
    return list(read_lines(target))


def test_windows_become_the_output(upper, tmp_path):
    totals = upper(LINES)
    assert written(upper.target) == [line.upper() for line in LINES]
    assert names(tmp_path) == ["out.txt"]
    assert totals.counts == {"sentences": 20}
    assert totals.seconds == 5 * 0.5


def test_equal_windows_are_decoded_once(upper):
    totals = upper(LINES[:4] * 5)
    assert upper.decoded == ["line 0"]
    assert written(upper.target) == [line.upper() for line in LINES[:4] * 5]
    assert totals.counts == {"sentences": 20}


def test_empty_input(upper, tmp_path):
    upper([])
    assert upper.target.read_bytes() == b""
    assert names(tmp_path) == ["out.txt"]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("change", ["replace", "insert", "delete"])
def test_edited_input_decodes_the_windows_around_the_change(tmp_path, change, seed):
    draw = random.Random(seed)
    lines = [f"{draw.random()} {number}" for number in range(5000)]
    upper = Upper(tmp_path / "out.txt", size=128)
    upper.stopped(lines, END)
    edited = list(lines)
    at = draw.randrange(1000, 3000)
    if change == "delete":
        del edited[at]
    else:
        edited[at : at + (change == "replace")] = ["another"]
    upper(edited)
    assert len(upper.decoded) <= 4  # of about 35
    assert written(upper.target) == [line.upper() for line in edited]


def test_what_is_done_is_reported(upper, capsys):
    upper.stopped(LINES, "line 8")
    assert capsys.readouterr().err == (
        f"8 lines are done, in {upper.folder}. The same command decodes the others.\n"
    )
    upper(LINES)
    assert capsys.readouterr().err == (
        f"Resuming: 8 lines are done, in {upper.folder}.\n"
    )
    assert upper.decoded == ["line 8", "line 12", "line 16"]


def test_nothing_done_leaves_nothing(upper, tmp_path, capsys):
    upper.stopped(LINES, "line 0")
    assert list(tmp_path.iterdir()) == []
    assert capsys.readouterr().err == ""


def test_windows_of_other_inputs_stay_until_out_is_written(upper, capsys):
    upper.stopped(LINES, "line 8")
    capsys.readouterr()
    upper.stopped(LINES[8:], "line 12")
    assert capsys.readouterr().err == (
        f"{upper.folder} also has 2 windows of another input, checkpoint, option or version,"
        " not used, and removed once out.txt is complete.\n"
        f"4 lines are done, in {upper.folder}. The same command decodes the others.\n"
    )
    upper(LINES)
    assert upper.decoded == ["line 12", "line 16"]
    assert not upper.folder.exists()


def _cut_short(text):
    return text[:-20]


def _change_letter(text):
    return text.replace("LINE 5", "LINE 6")


def _other_version(text):
    return text.replace('"format_version": 1', '"format_version": 2')


def _wrong_type(text):
    return text.replace('"sentences": 4', '"sentences": "four"')


def _negative(text):
    return text.replace('"sentences": 4', '"sentences": -4')


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (_cut_short, "is damaged: "),
        (_change_letter, "has changed since it was written. "),
        (_other_version, "must have format_version 1"),
        (_wrong_type, "is damaged: "),
        (_negative, "is damaged: "),
        (lambda text: "", "is damaged: "),
    ],
)
def test_damaged_window_is_decoded_again(upper, capsys, damage, message):
    upper.stopped(LINES, END)
    file = upper.file(LINES[4:8])
    text = file.read_text()
    assert damage(text) != text
    file.write_text(damage(text))
    upper(LINES)
    assert upper.decoded == ["line 4"]
    stderr = capsys.readouterr().err
    assert f"{file} {message}" in stderr
    assert "The same command decodes it again.\n" in stderr
    assert written(upper.target) == [line.upper() for line in LINES]


def test_output_under_the_name_of_another_is_damaged(upper):
    upper.stopped(LINES, END)
    upper.file(LINES[4:8]).replace(upper.file(LINES[8:12]))
    upper(LINES)
    assert upper.decoded == ["line 4", "line 8"]
    assert written(upper.target) == [line.upper() for line in LINES]


FOREIGN = ["photo.jpg", f"{KEY}.txt", f"{KEY[1:]}.json", f".{KEY}.json.tmp", "notes/x"]


@pytest.mark.parametrize("name", FOREIGN)
def test_foreign_folder_is_refused(upper, name):
    upper.stopped(LINES, "line 8")
    path = upper.folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("mine")
    before = names(upper.folder)
    message = (
        "out.txt.windows must have nothing but the windows of out.txt. Received:"
        f" {name.partition('/')[0]}, perhaps yours. Move it, or name another output."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        upper(LINES)
    assert names(upper.folder) == before
    assert path.read_text() == "mine"
    assert upper.decoded == []


def test_file_in_place_of_the_folder_is_refused(upper):
    upper.folder.write_text("mine")
    with pytest.raises(ValueError, match=r"must have nothing .* Received: a file, p"):
        upper(LINES)
    assert upper.folder.read_text() == "mine"


def test_only_windows_are_removed(upper, monkeypatch):
    def add_photo(folder):
        (upper.folder / "photo.jpg").touch()  # while it is decoded
        remove(folder)

    remove = WindowFolder.remove
    monkeypatch.setattr(WindowFolder, "remove", add_photo)
    upper(LINES)
    assert names(upper.folder) == ["photo.jpg"]
    assert written(upper.target) == [line.upper() for line in LINES]


def test_files_of_killed_processes_are_removed(upper, tmp_path):
    upper.stopped(LINES, "line 8")
    write_input(upper.folder / f"{KEY}.json", Window(LINES))
    for path in (upper.folder / f"{KEY}.json", upper.target, tmp_path / "out.txtx"):
        (path.parent / f".{path.name}.0123abcd.tmp").write_text("half of a file")
    upper.stopped(LINES, "line 8")
    assert len(names(upper.folder)) == 2
    upper(LINES)
    assert names(tmp_path) == [".out.txtx.0123abcd.tmp", "out.txt"]  # of another file


def test_second_process_is_refused(upper):
    upper.folder.mkdir()
    with only_process(upper.folder, "decode"):
        message = "Only one process at a time can decode to out.txt. Received: "
        with pytest.raises(ValueError, match=message):
            upper(LINES)
    assert upper.decoded == []
    upper(LINES)


@pytest.mark.parametrize(
    ("again", "left"),
    [
        (LINES[:-1], 1),
        ([*LINES, "more"], 0),
        (["other", *LINES[1:]], 5),
        (LINES[4:], 5),
        ([], 5),
    ],
)
def test_input_that_changes_after_it_was_checked_is_refused(upper, again, left):
    with pytest.raises(ValueError, match="The input must not change while it is dec"):
        upper(LINES, again)
    assert not upper.target.exists()
    upper.decoded.clear()
    upper(LINES)
    assert written(upper.target) == [line.upper() for line in LINES]
    assert len(upper.decoded) == left  # what was decoded before is kept


def test_input_is_read_twice(upper):
    reads = []

    def lines():
        reads.append("begun")
        yield from LINES

    upper.stopped(LINES, "line 8")
    upper(lines(), lines())
    assert reads == ["begun"] * 2


class Killed(BaseException):
    """From here on nothing is written or removed."""


OPERATIONS = ("fsync", "replace", "unlink", "rmdir", "mkdir")


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_killed_before_any_file_operation_resumes(tmp_path, monkeypatch, name):
    expected = [line.upper() for line in LINES]
    moment = 0
    is_killed = True
    while is_killed:
        moment += 1
        upper = Upper(tmp_path / str(moment) / name)
        upper.target.parent.mkdir()
        upper.target.write_bytes(b"")
        with monkeypatch.context() as patch:
            is_killed = _killed_at(moment, patch, upper)
        is_complete = upper.target.read_bytes() != b""
        upper(LINES)
        # not twice, except the window in work
        assert len(upper.decoded) <= 5 + 1 or is_complete
        assert written(upper.target) == expected
        assert names(upper.target.parent) == [name]
    assert moment > 20


def _killed_at(moment, patch, upper):
    """Whether the process is killed before it ends."""
    operations = []

    def counting(operation):
        def call(*arguments, **options):
            operations.append(operation)
            if len(operations) >= moment:
                raise Killed
            return operation(*arguments, **options)

        return call

    def open_lock(path, *arguments):
        lock = system_open(path, *arguments)
        locks.append(lock)
        return lock

    locks, system_open = [], os.open
    patch.setattr(os, "open", open_lock)
    for name in OPERATIONS:
        patch.setattr(os, name, counting(getattr(os, name)))
    try:
        upper(LINES)
    except Killed:
        for lock in locks:
            with contextlib.suppress(OSError):  # unless it is closed
                os.close(lock)
        return True
    return False
