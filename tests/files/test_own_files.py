"""What t2tlite replaces and removes is its own: no link is followed to it."""

import ast
import re
from pathlib import Path

import pytest

from t2tlite.files.atomic_file import atomic_folder
from t2tlite.files.own_files import own, remove, remove_files

ROOT = Path(__file__).resolve().parents[2]
REMOVES = re.compile(r"\.(unlink|rmtree|rmdir|removedirs)$|^os\.re(move|place)$")


def test_only_this_package_removes():
    for folder in ("t2tlite", "problems", "hparams", "bin"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            if path.is_relative_to(ROOT / "t2tlite" / "files"):
                continue
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Attribute):
                    name = ast.unparse(node)
                    assert not REMOVES.search(name), f"{path}:{node.lineno}: {name}"


@pytest.fixture
def theirs(tmp_path):
    """A folder to which links lead."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    (folder / "letter").write_text("Dear ...")
    return folder


def test_a_link_is_not_own(tmp_path, theirs):
    assert own(theirs) == theirs
    assert own(tmp_path / "new") == tmp_path / "new"
    for target in (theirs, tmp_path / "nothing"):
        link = tmp_path / f"to_{target.name}"
        link.symlink_to(target)
        message = f"{link} must not be a link.* Received: one to {target}"
        with pytest.raises(ValueError, match=message):
            own(link)


def test_links_themselves_are_removed(tmp_path, theirs):
    ours = tmp_path / "ours"
    for depth in ("", "below"):
        (ours / depth).mkdir()
        (ours / depth / "folder").symlink_to(theirs)
        (ours / depth / "file").symlink_to(theirs / "letter")
    remove_files(ours, lambda name: True)
    assert [path.name for path in ours.iterdir()] == ["below"]
    remove(ours)
    assert list(tmp_path.iterdir()) == [theirs]
    (tmp_path / "link").symlink_to(theirs)
    remove(tmp_path / "link")
    assert (theirs / "letter").read_text() == "Dear ..."


@pytest.mark.parametrize("name", ["", "new", "old", "other"])
def test_a_folder_is_not_built_through_a_link(tmp_path, theirs, name):
    """Links that lie in the work folder are removed; one that is it is refused."""
    work = tmp_path / "work"
    if name:
        work.mkdir()
    (work / name).symlink_to(theirs)
    target = tmp_path / "target"

    def build():
        with atomic_folder(target, work) as folder:
            (folder / "house").write_text("built")

    if name:
        build()
        assert (target / "house").read_text() == "built"
    else:
        with pytest.raises(ValueError, match="work must not be a link"):
            build()
    assert [path.name for path in theirs.iterdir()] == ["letter"]
