"""What t2t-decoder cannot resume is made anew or refused, and is never mixed with
another output.
"""

import fcntl
import re
from pathlib import Path

import pytest
from decode_cases import LINES, contents, interrupted, write

from t2tlite.data.token_store import TokenStore
from t2tlite.run_folder import RunFolder


def change_input(case, monkeypatch):
    write(case.target.parent.parent / "in.txt", ["cat", *LINES[1:]])
    source_text = TokenStore.source_text
    monkeypatch.setattr(
        TokenStore, "source_text", lambda store: ["cat", *source_text(store)[1:]]
    )


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
        (
            "file",
            ["--decode_hparams=beam_size=1"],
            "it was made with another beam_size",
        ),
        ("file", ["--output_format=nbest"], "it was made with another output_format"),
        (
            "file",
            ["--checkpoint_path=RUN/model.ckpt-80"],
            "it was made with another checkpoint",
        ),
        (
            "file",
            ["--engine=ctranslate2"],
            "it was made with another engine, quantization",
        ),
        ("file", change_input, "the input has changed"),
        ("file", shorten_output, "it has changed since it was written"),
        (
            "file",
            damage_record('"lines": 8', '"lines": -8'),
            "out.txt.part.json is damaged",
        ),
        (
            "file",
            damage_record('"lines": 8', '"lines": "eight'),
            "out.txt.part.json is damaged",
        ),
        (
            "split",
            ["--decode_hparams=beam_size=1"],
            "it was made with another beam_size",
        ),
        (
            "split",
            ["--checkpoint_path=RUN/model.ckpt-80"],
            "it was made with another checkpoint",
        ),
        ("split", ["--split=dev"], "the input has changed"),
        ("split", change_input, "the input has changed"),
        ("split", change_output, "it has changed since it was written"),
    ],
    indirect=["case"],
)
def test_changed_output_is_made_anew(
    case, tmp_path, capsys, monkeypatch, calls, change, reason
):
    case.target = tmp_path / "new" / "out.txt"
    assert interrupted(case, calls, 2, target=case.target)
    more = []
    if isinstance(change, list):
        more = [flag.replace("RUN", str(case.run)) for flag in change]
    else:
        change(case, monkeypatch)
    assert case(*more, target=case.target) == 0
    assert (
        f"out.txt.part cannot be resumed: {reason}. Starting anew."
        in capsys.readouterr().err
    )
    assert calls.windows[2:] == case.windows
    assert case(*more, target=tmp_path / "other.txt") == 0
    assert case.target.read_bytes() == (tmp_path / "other.txt").read_bytes()


def test_file_is_not_resumed_as_a_split(file, split, capsys, calls):
    write(file.target.parent.parent / "in.txt", ["red cat sees dog"] * 40)
    assert interrupted(file, calls, 2)
    assert split(target=file.target) == 0
    assert (
        "cannot be resumed: it was made with another work. Starting anew."
        in capsys.readouterr().err
    )


@pytest.mark.parametrize(
    "text", ["a chapter of mine", '{"format_version": 1, "lines": 0}', ""]
)
@pytest.mark.parametrize("ends", [[".part"], [".part.json"], [".part", ".part.json"]])
def test_foreign_part_is_refused(case, tmp_path, capsys, calls, ends, text):
    target = tmp_path / "out.txt"
    foreign = [tmp_path / f"out.txt{end}" for end in ends]
    for path in foreign:
        write(path, [text])
    assert case(target=target) == 1
    assert (
        f"{target}.part must be what t2t-decoder has done of out.txt. Received: "
        in capsys.readouterr().err
    )
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
    message = (
        r"out\.txt\.part\.json, which is not its record of format_version 1: it begins"
        r" .*format_version\": 2"
    )
    assert re.search(message, capsys.readouterr().err)
    assert (part.read_bytes(), record.read_text()) == (before, later)
    assert len(calls.windows) == 2


def test_added_lines_are_decoded_after_those_done(file, calls):
    assert interrupted(file, calls, 2)
    write(file.target.parent.parent / "in.txt", [*LINES, "fish likes mouse"])
    assert file() == 0
    assert file.target.read_text().splitlines()[-2:] == [
        "hund oft hund hoert",
        "fisch maus mag",
    ]
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
    message = (
        f"Only one process can write an output. Received: {case.target}, and another"
        " writes"
    )
    assert message in capsys.readouterr().err
    assert calls.windows == []
    assert case() == 0
