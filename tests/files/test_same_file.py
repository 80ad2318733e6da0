"""Which outputs are files that are read."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from t2tlite.files.same_file import check_not_overwritten, is_same_folder, is_within

REFUSED = r"^A command must not write over a file that it uses\. Received: --out, the"


@pytest.fixture
def text(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    path = tmp_path / "text"
    path.write_text("a\n", encoding="utf-8")
    (tmp_path / "symbolic").symlink_to("text")
    (tmp_path / "chain").symlink_to("symbolic")
    (tmp_path / "hard").hardlink_to(path)
    (tmp_path / "linked").symlink_to("folder/..")
    return path


SPELLINGS = [
    "text", "./text", "folder/../text", "symbolic", "chain", "hard", "linked/text",
    "linked/hard", "//{}/text",
]  # fmt: skip


@pytest.mark.parametrize("output", SPELLINGS)
@pytest.mark.parametrize("source", ["text", "chain", "hard"])
def test_the_same_file(text, output, source):
    output = output.format(text.parent)
    with pytest.raises(ValueError, match=rf"{REFUSED} same file as --in\."):
        check_not_overwritten([("--out", output)], [("--other", "x"), ("--in", source)])


@pytest.mark.parametrize("output", ["new", "text.gz", "folder/text", "Text2"])
def test_another_file(text, output):
    check_not_overwritten([("--out", output)], [("--in", text)])


def test_devices_may_be_read_and_written(text):
    check_not_overwritten([("--out", "/dev/null")], [("--in", "/dev/null")])


PROGRAM = """
import sys
from t2tlite.files.same_file import check_not_overwritten
check_not_overwritten([("--out", eval(sys.argv[1]))], [("--in", eval(sys.argv[2]))])
"""


@pytest.mark.parametrize(
    ("shell", "output", "source"),
    [
        ("< text", "'hard'", "0"),
        ("< text", "'text'", "'/dev/stdin'"),
        (">> text", "'/dev/stdout'", "'symbolic'"),
        ("< text >> text", "1", "0"),
    ],
)
def test_redirected_files(text, shell, output, source):
    command = f'"$0" -c "$1" "{output}" "{source}" {shell}'
    done = subprocess.run(
        ["sh", "-c", command, sys.executable, PROGRAM],
        env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])},
        stderr=subprocess.PIPE,
        text=True,
        check=False,
    )
    assert "ValueError: A command must not write over a file" in done.stderr
    piped = f'cat text | "$0" -c "$1" "{output}" "{source}" | cat'
    if shell == "< text >> text":
        done = subprocess.run(
            ["sh", "-c", piped, sys.executable, PROGRAM], stderr=subprocess.PIPE
        )
        assert done.stderr == b""


def test_two_outputs(text):
    outputs = [("--picture", "new.svg"), ("--html", "folder/../new.svg")]
    with pytest.raises(ValueError, match=r"uses\. Received: --html, the same"):
        check_not_overwritten(outputs, [])
    (text.parent / "new.svg").touch()
    with pytest.raises(ValueError, match=r"--html, the same file as --picture\."):
        check_not_overwritten(outputs, [])
    check_not_overwritten([("--picture", "/dev/null"), ("--html", "/dev/null")], [])


def test_folders(text):
    folder = text.parent / "folder"
    assert is_same_folder(Path("linked"), text.parent)
    assert is_same_folder(Path("new/../new"), Path("linked/new"))
    assert not is_same_folder(folder, text.parent)
    assert is_within(folder / "new" / "x", Path("linked"))
    assert is_within(Path("linked/new/x"), text.parent / "new")
    assert not is_within(text.parent, folder)
