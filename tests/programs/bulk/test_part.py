"""OUT.part: what it keeps, finds, refuses and leaves, whatever decodes."""

import hashlib
import random
import re

import pytest
from bulk_cases import names

from t2tlite.decoding.text_decoder import Origin
from t2tlite.files.own_files import locked
from t2tlite.files.text_files import read_lines
from t2tlite.programs.bulk.part import (
    PART_HEADER,
    Window,
    WindowOutput,
    cut,
    encoded,
    open_part,
)
from t2tlite.tasks.task import Output

LINES = [f"line {number}" for number in range(20)]
SIZE = 4  # of windows
END = "the end"  # when all windows are decoded, but OUT is not written


class Upper:
    """Writes lines in capitals, by windows."""

    def __init__(self, target, size=SIZE):
        self.target = target
        self.size = size
        self.decoded = []  # the first line of each window
        self.stop_at = ""  # a first line, or END

    def __call__(self, lines):
        windows = cut(lines, Origin("in.txt"), self.size)
        with open_part(self.target, self.key) as part:
            for window in list(part.missing(windows)):
                if window.lines[0] == self.stop_at:
                    raise KeyboardInterrupt
                self.decoded.append(window.lines[0])
                part.add(window, self.output(window.lines))
            if self.stop_at == END:
                raise KeyboardInterrupt
            return part.publish(self.lines)

    def stopped(self, lines, stop_at):
        """Decodes up to the window that begins with `stop_at`, or all but OUT."""
        self.stop_at = stop_at
        with pytest.raises(KeyboardInterrupt):
            self(lines)
        self.stop_at = ""
        self.decoded.clear()

    @property
    def part(self):
        return self.target.with_name(f"{self.target.name}.part")

    @staticmethod
    def output(lines):
        outputs = [[Output(line.upper(), -1.0, -2.0)] for line in lines]
        return WindowOutput(lines, outputs, {"sentences": len(lines), "tokens": 9})

    @staticmethod
    def lines(output, first_number):
        return [outputs[0].text for outputs in output.n_best]

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
    assert totals == {"sentences": 20, "tokens": 5 * 9}


def test_equal_windows_are_decoded_once(upper):
    totals = upper(LINES[:4] * 5)
    assert upper.decoded == ["line 0"]
    assert written(upper.target) == [line.upper() for line in LINES[:4] * 5]
    assert totals["sentences"] == 20


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
    assert capsys.readouterr().err == ""
    upper(LINES)
    assert capsys.readouterr().err == (
        f"Resuming: 8 lines are done, in {upper.part}.\n"
    )
    assert upper.decoded == ["line 8", "line 12", "line 16"]


def test_nothing_done_leaves_nothing(upper, tmp_path):
    upper.stopped(LINES, "line 0")
    assert list(tmp_path.iterdir()) == []


def test_windows_of_other_inputs_stay_until_out_is_written(upper):
    upper.stopped(LINES, "line 8")
    upper.stopped(LINES[8:], "line 12")
    upper(LINES)
    assert upper.decoded == ["line 12", "line 16"]
    assert not upper.part.exists()


DAMAGED = b"LINE 5"


@pytest.mark.parametrize(
    "change", [b"LINE 6", b"", b"LINE 5\n", b"\xff", b'", 5, "', b"[" * 10_000]
)
def test_damaged_window_is_decoded_again(upper, change):
    upper.stopped(LINES, END)
    content = upper.part.read_bytes()
    assert content.count(DAMAGED) == 1
    upper.part.write_bytes(content.replace(DAMAGED, change))
    upper(LINES)
    assert upper.decoded == ["line 4"]
    assert written(upper.target) == [line.upper() for line in LINES]


@pytest.mark.parametrize(
    "content",
    [b"mine", b"mine\n" * 99, PART_HEADER.replace(b"1", b"2"), b"\0\xff" * 99],
)
def test_foreign_file_is_refused(upper, content):
    upper.part.write_bytes(content)
    message = (
        "out.txt.part is not what this t2t-decoder keeps of out.txt. Move it, or name"
        " another output."
    )
    with pytest.raises(ValueError, match=re.escape(message)):
        upper(LINES)
    assert upper.part.read_bytes() == content
    assert upper.decoded == []


def test_temporary_files_of_killed_processes_are_removed(upper, tmp_path):
    for name in ("out.txt", "out.txtx"):
        (tmp_path / f".{name}.0123abcd.tmp").write_text("half of a file")
    upper(LINES)
    assert names(tmp_path) == [".out.txtx.0123abcd.tmp", "out.txt"]  # of another file


def test_pieces_of_workers_are_taken_up(upper, tmp_path):
    """Those of a pipeline that was killed, with what it had not finished."""
    upper.stopped(LINES, "line 4")
    pieces = tmp_path / "out.txt.pieces"
    pieces.mkdir()
    for first in (8, 12):
        lines = LINES[first : first + 4]
        key = upper.key(Window(lines))
        (pieces / f"{key}.part").write_bytes(encoded(key, upper.output(lines)))
    (pieces / f".{'0' * 32}.part.0123abcd.tmp").write_text("half of a file")
    upper(LINES)
    assert upper.decoded == ["line 4", "line 16"]
    assert written(upper.target) == [line.upper() for line in LINES]
    assert names(tmp_path) == ["out.txt"]


def test_only_pieces_are_removed(upper, tmp_path):
    photo = tmp_path / "out.txt.pieces" / "photo.jpg"
    photo.parent.mkdir()
    photo.touch()
    upper(LINES)
    assert names(tmp_path) == ["out.txt", "out.txt.pieces/photo.jpg"]


def test_second_process_is_refused(upper):
    with locked(upper.part, "decode"):
        message = (
            "Only one process at a time can decode to out.txt. Received:"
            f" {upper.part}, which another process is using."
        )
        with pytest.raises(ValueError, match=re.escape(message)):
            upper(LINES)
    assert upper.decoded == []
    upper(LINES)


@pytest.mark.parametrize("name", ["out.txt", "out.txt.gz"])
def test_whatever_a_kill_left_of_the_file_resumes(tmp_path, name):
    """Lines are only appended, so that a kill leaves its beginning."""
    upper = Upper(tmp_path / name)
    upper.stopped(LINES, END)
    content = upper.part.read_bytes()
    ends = [at for at, byte in enumerate(content, 1) if byte == ord("\n")]
    assert len(ends) == 1 + 5
    moments = {*range(0, len(content), 37)}
    for end in ends:
        moments |= {end - 1, end}
    for moment in sorted(moments):
        upper.part.write_bytes(content[:moment])
        upper.target.write_bytes(b"")
        upper.decoded.clear()
        upper(LINES)
        whole = sum(end <= moment for end in ends[1:])
        assert len(upper.decoded) == 5 - whole
        assert written(upper.target) == [line.upper() for line in LINES]
        assert names(tmp_path) == [name]


def test_outputs_are_read_as_they_were(tmp_path):
    odd = "ein\u2028\x85 'Wort'\t\"\\ \U0001f600"
    n_best = [
        [
            Output(odd, -1 / 3, -2e-17, (3, 999_999), alignment=[(0, 1)]),
            Output("", 0.0, float("-inf")),
        ],
        [Output("(TOP (S (NN bird)))", -0.1, -0.25, (7,), "(S XX")],
        [],
    ]
    window = Window([odd, "bird", ""])
    written = WindowOutput(window.lines, n_best, {"sentences": 3})
    with open_part(tmp_path / "out.txt", Upper.key) as part:
        assert list(part.missing([window])) == [window]
        part.add(window, written)
        [output] = part.outputs()
        part.remove()
    assert output.sources == window.lines
    assert output.n_best[0][0].as_json() == n_best[0][0].as_json()
    assert output.n_best[0][0].ids == n_best[0][0].ids
    assert output.n_best[0][1:] + output.n_best[1:] == n_best[0][1:] + n_best[1:]
