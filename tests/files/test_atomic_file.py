"""Where output goes: files replaced at once, links that stay, devices that are written
and never replaced.
"""

import errno
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from t2tlite.files.atomic_file import (
    check_name,
    check_writable,
    write_text,
)

needs_descriptors = pytest.mark.skipif(
    not os.path.exists("/dev/fd/1"), reason="this system has no /dev/fd"
)


def test_a_symbolic_link_stays_and_its_target_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    target, link, relative = (
        tmp_path / "kept" / "real.txt",
        tmp_path / "link.txt",
        tmp_path / "relative.txt",
    )
    target.write_text("old")
    link.symlink_to(target)
    relative.symlink_to("link.txt")
    before = target.stat().st_ino
    write_text(relative, "new")
    assert (link.readlink(), relative.readlink()) == (target, Path("link.txt"))
    assert target.read_text() == "new"
    # replaced, so that a killed process leaves the old file
    assert target.stat().st_ino != before
    assert sorted(path.name for path in tmp_path.rglob("*")) == [
        "kept",
        "link.txt",
        "real.txt",
        "relative.txt",
    ]


@needs_descriptors
@pytest.mark.parametrize("redirection", [">", ">>"])
@pytest.mark.parametrize("name", ["/dev/fd/1", "link"])
def test_standard_output_redirected_to_a_file(
    tmp_path: Path, redirection: str, name: str
) -> None:
    """What was written before and what comes after stay; neither the device nor the
    file is replaced.
    """
    (tmp_path / "link").symlink_to("/dev/stdout")
    script = (
        "import sys; from t2tlite.files.text_files import write_lines; print(1);"
        " write_lines(sys.argv[1], ['2'])"
    )
    command = f'{{ echo 0; "$0" -c "$1" {name}; echo 3; }} {redirection} out'
    before = os.lstat("/dev/stdout").st_ino
    (tmp_path / "out").write_text("old\n")
    inode = (tmp_path / "out").stat().st_ino
    subprocess.run(
        ["bash", "-c", command, sys.executable, script], check=True, cwd=tmp_path
    )
    assert (tmp_path / "out").read_text() == (
        "old\n" if redirection == ">>" else ""
    ) + "0\n1\n2\n3\n"
    assert (tmp_path / "out").stat().st_ino == inode
    assert os.lstat("/dev/stdout").st_ino == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["link", "out"]


def test_a_pipe_is_written_and_stays(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with subprocess.Popen(["cat", tmp_path / "pipe"], stdout=subprocess.PIPE) as reader:
        check_writable(tmp_path / "pipe")
        write_text(tmp_path / "pipe", "through")
        assert reader.stdout is not None
        assert reader.stdout.read() == b"through"
    assert (tmp_path / "pipe").is_fifo()


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder", r"Is a directory: '.*folder'"),
        ("file/out", "file'"),
        ("/proc/nothing/out", "'/proc/nothing'"),
    ],
)
def test_a_place_that_cannot_be_written(
    tmp_path: Path, path: str, message: str
) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=message):
        check_writable(tmp_path / path)


def test_text_is_written_whole_or_not_at_all(tmp_path):
    file = tmp_path / "new" / "file.txt"
    write_text(file, "one\n")
    with pytest.raises(UnicodeEncodeError, match="surrogates not allowed"):
        write_text(file, "two \udc80\n")
    assert file.read_text() == "one\n"
    assert [path.name for path in file.parent.iterdir()] == ["file.txt"]


@pytest.mark.skipif(os.name == "nt", reason="names are UTF-16 on Windows")
def test_a_name_that_is_not_utf_8(tmp_path: Path, monkeypatch) -> None:
    for name in ("é", "/x/日本", "."):
        check_name(name)
    message = r"File names must be UTF-8, .* Received: '/x/lat\\udcedn'\."
    with pytest.raises(ValueError, match=message):
        check_name("/x/lat\udcedn")
    folder = tmp_path / "lat\udcedn"  # the current folder counts too
    folder.mkdir()
    monkeypatch.chdir(folder)
    with pytest.raises(ValueError, match=r"lat\\udcedn/out'"):
        check_name("out")
    # a locale in Latin-1, where TensorFlow would write another name
    monkeypatch.setattr(os, "fsencode", lambda name: name.encode("latin-1"))
    with pytest.raises(ValueError, match=r"Received: '/x/\\xe9'"):
        check_name("/x/é")


needs_full = pytest.mark.skipif(
    not os.path.exists("/dev/full"), reason="this system has no /dev/full"
)


def test_a_full_disk_is_named_and_the_file_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    full = mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "No space left"))
    message = rf"^\[Errno {errno.ENOSPC}\] No space left: '{path}'$"
    with full, pytest.raises(OSError, match=message):
        write_text(path, "new")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out"]


@needs_full
def test_a_full_standard_output_is_one_message(fixtures: Path) -> None:
    """Python alone would report it when the process ends, with status 120."""
    files = fixtures / "bleu/grammar_ende.hyp", fixtures / "bleu/grammar_ende.ref"
    flags = [f"--translation={files[0]}", f"--reference={files[1]}"]
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "t2tlite.bin.t2t_bleu", *flags],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr.endswith(
        ": No space left on device: standard output. Free some space and run the same"
        " command again.\n"
    )
    assert done.stderr.count("\n") == 1
