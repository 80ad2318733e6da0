"""The same files however they are made: on more cores, in several attempts, after a
full disk. None made twice.
"""

import errno
import gzip
import itertools
import json
import os
from pathlib import Path

import pytest
from tiny_task import FileTask, TinyTask, contents, sentences, write_pairs

from t2tlite.data import encode_shards
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.files import atomic_file
from t2tlite.files.own_files import only_process
from t2tlite.problems.parallel_text import ParallelText


def test_two_cores_make_the_same_files(tmp_path, uninterrupted):
    generate(TinyTask(), tmp_path, num_processes=2)
    assert contents(tmp_path) == uninterrupted


class InterruptedRunError(Exception):
    pass


@pytest.mark.parametrize("writes", range(9))
def test_interrupted_anywhere_then_finished_equals_uninterrupted(
    tmp_path, uninterrupted, monkeypatch, writes
):
    """The run ends in the middle of writing file number `writes` of its 10, leaving a
    temporary file as kill would.
    """
    counter = itertools.count()

    def replace(source, target):
        if next(counter) == writes:
            Path(source).with_name(".left.arrow.0123abcd.tmp").write_bytes(b"half")
            raise InterruptedRunError
        os.rename(source, target)

    with monkeypatch.context() as patch:
        patch.setattr(atomic_file.os, "replace", replace)
        with pytest.raises(InterruptedRunError):
            generate(TinyTask(), tmp_path, num_processes=1)
    message = r"no finished data of tiny_task"
    with pytest.raises(FileNotFoundError, match=message):
        open_dataset(tmp_path, "tiny_task")
    before = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*/*.arrow")}
    data = generate(TinyTask(), tmp_path, num_processes=1)
    assert not data.already_there
    assert contents(tmp_path) == uninterrupted
    assert len(before) == max(0, writes - 2)  # after the vocabulary and unfinished.json
    # finished shards were kept
    assert {path: path.stat().st_mtime_ns for path in before} == before


OTHER = TinyTask(train=tuple(sentences(400, 9)))


@pytest.mark.parametrize(
    ("task", "file", "content"),
    [(OTHER, "train-00007.arrow", b"other text"), (TinyTask(), "vocab.model", b"")],
)
def test_unusable_leftovers_are_made_anew(
    tmp_path, uninterrupted, monkeypatch, task, file, content
):
    """What an interrupted run left was made from other text, or its vocabulary is
    damaged.
    """
    with monkeypatch.context() as patch:
        patch.setattr(encode_shards, "write_shard", None)  # fails at the first shard
        with pytest.raises(TypeError):
            generate(task, tmp_path, num_processes=1)
    (tmp_path / "tiny_task" / file).write_bytes(content)
    generate(TinyTask(), tmp_path, num_processes=1)
    assert contents(tmp_path) == uninterrupted


def test_complete_data_is_left_alone(data_dir):
    before = {path: path.stat().st_mtime_ns for path in data_dir.rglob("*")}
    data = generate(TinyTask(), data_dir)
    assert data.already_there
    assert "already complete, nothing to do" in str(data)
    assert {path: path.stat().st_mtime_ns for path in data_dir.rglob("*")} == before


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"vocab_size": 320}, "vocab_size was 330, now 320"),
        ({"max_length": 9}, "max_length was 0, now 9"),
        ({"dev": (("a", "b"),)}, "dev was .*, now a,b|dev was"),
    ],
)
def test_complete_data_of_other_options_is_never_overwritten(
    data_dir, uninterrupted, changes, message
):
    message = f" has data made from something else: ({message}).*Delete"
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(**changes), data_dir, num_processes=1)
    assert contents(data_dir) == uninterrupted


def test_data_that_is_older_than_an_option_is_complete(tmp_path):
    generate(TinyTask(), tmp_path, num_processes=1)
    manifest = tmp_path / "tiny_task" / "manifest.json"
    record = json.loads(manifest.read_text())
    del record["options"]["max_length_ratio"], record["options"]["user_symbols"]
    manifest.write_text(json.dumps(record))
    assert generate(TinyTask(), tmp_path, num_processes=1).already_there
    message = r"something else: max_length_ratio was 0\.0, now 2\.0\. Delete"
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(max_length_ratio=2.0), tmp_path, num_processes=1)


def test_raw_files_that_change_move_or_go(tmp_path, monkeypatch):
    raw, data = write_pairs(tmp_path / "raw.tsv"), tmp_path / "data"

    def made(path):
        problem = ParallelText(train_tsv=(str(path),), dev_tsv=(str(path),))
        return generate(problem, data, num_processes=1)

    made(raw)
    before = contents(data)
    (tmp_path / "moved").mkdir()
    moved = tmp_path / "moved" / "raw.tsv"
    moved.write_bytes(raw.read_bytes())
    with monkeypatch.context() as patch:
        patch.setattr(ParallelText, "pairs", lambda *_: pytest.fail("must not read"))
        assert made(moved).already_there
    packed = tmp_path / "raw.tsv.gz"
    packed.write_bytes(gzip.compress(raw.read_bytes()))
    assert made(packed).already_there
    moved.write_text(moved.read_text().replace("cat", "cow"))
    with pytest.raises(ValueError, match="parallel_text now yields other pairs"):
        made(moved)
    # gone: the data is still good
    raw.unlink()
    assert made(raw).already_there
    assert contents(data) == before


def test_raw_file_that_changes_while_data_is_made(tmp_path, monkeypatch):
    """The manifest records the file that was read."""
    raw, data = write_pairs(tmp_path / "raw.tsv"), tmp_path / "data"
    generate(FileTask(train=str(raw)), tmp_path / "unchanged", num_processes=1)
    encode_chunk = encode_shards._encode_chunk

    def change(*work):
        raw.write_text("other\tpairs\n")
        return encode_chunk(*work)

    with monkeypatch.context() as patch:
        patch.setattr(encode_shards, "_encode_chunk", change)
        generate(FileTask(train=str(raw)), data, num_processes=1)
    assert contents(data) == contents(tmp_path / "unchanged")
    with pytest.raises(ValueError, match="file_task now yields other pairs"):
        generate(FileTask(train=str(raw)), data)


def test_a_users_problem_that_yields_other_pairs(tmp_path, monkeypatch, capsys):
    """Its options and files are the same; its code, or what that reads, is not."""
    raw, data = write_pairs(tmp_path / "raw.tsv"), tmp_path / "data"
    task = FileTask(train=str(raw))
    generate(task, data, num_processes=1)
    before = contents(data)
    unchanged = FileTask.pairs

    def in_upper_case(self, split, tmp_dir):
        for source, target in unchanged(self, split, tmp_dir):
            yield source.upper(), target

    def more(self, split, tmp_dir):
        yield from unchanged(self, split, tmp_dir)
        if split == "dev":
            yield "one", "more"

    for pairs in (in_upper_case, more):
        monkeypatch.setattr(FileTask, "pairs", pairs)
        message = r"else: file_task now yields other pairs\. Delete it, or use another"
        with pytest.raises(ValueError, match=message):
            generate(task, data)
    # what cannot be read now, say without a network, is assumed to be unchanged
    monkeypatch.setattr(FileTask, "pairs", lambda *_: 1 / 0)
    assert generate(task, data).already_there
    assert "Its data is kept, since the pairs cannot be read" in capsys.readouterr().err
    monkeypatch.setattr(FileTask, "pairs", unchanged)
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 7)
    assert generate(task, data).already_there
    # data of an earlier version, which did not record the text
    monkeypatch.setattr(FileTask, "pairs", more)
    manifest = data / "file_task" / "manifest.json"
    record = json.loads(manifest.read_text())
    del record["text_sha256"]
    manifest.write_text(json.dumps(record))
    assert generate(task, data).already_there
    assert contents(data).keys() == before.keys()


@pytest.mark.parametrize("file", range(3))
def test_full_disk(tmp_path, uninterrupted, monkeypatch, file):
    counter = itertools.count()

    def fsync(_):
        if next(counter) == file:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fsync)
        with pytest.raises(OSError, match=r"No space left on device: '.*tiny_task"):
            generate(TinyTask(), tmp_path, num_processes=1)
    assert not list(tmp_path.rglob("*.tmp"))
    generate(TinyTask(), tmp_path, num_processes=1)
    assert contents(tmp_path) == uninterrupted


def test_only_one_process_at_a_time(tmp_path):
    message = r"^Only one process at a time can make data.*tiny_task, which another"
    with (
        only_process(tmp_path / "tiny_task", "make data"),
        pytest.raises(ValueError, match=message),
    ):
        generate(TinyTask(), tmp_path, num_processes=1)
    assert not generate(TinyTask(), tmp_path, num_processes=1).already_there
