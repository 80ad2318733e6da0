"""Data made by the workers of an Apache Beam pipeline: the same files, however many
workers, killed or not.
"""

import re
import sys

import pytest
from tiny_task import TinyTask, contents

from t2tlite.bin import t2t_datagen
from t2tlite.data import encode_shards
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.generate import generate
from t2tlite.files.atomic_file import temporary_path

pytestmark = pytest.mark.filterwarnings("ignore")  # Beam's own

DIRECT = "--beam_runner=DirectRunner"
TWO_THREADS = "--direct_num_workers=2 --direct_running_mode=multi_threading"
TWO_PROCESSES = "--direct_num_workers=2 --direct_running_mode=multi_processing"


@pytest.mark.parametrize(
    "options", ["", TWO_THREADS, pytest.param(TWO_PROCESSES, marks=pytest.mark.slow)]
)
def test_the_files_are_those_made_locally(
    tmp_path, uninterrupted, monkeypatch, options, capfd
):
    # a relative path is the same folder for workers elsewhere
    monkeypatch.chdir(tmp_path)
    data = generate(TinyTask(), "beam", pipeline=Pipeline("DirectRunner", options))
    assert contents(tmp_path / "beam") == uninterrupted
    assert str(data.dataset.folder) == "beam/tiny_task"
    assert generate(
        TinyTask(), "beam", pipeline=Pipeline("DirectRunner", options)
    ).already_there
    # before Beam reads its options
    shown = capfd.readouterr().err.replace("INFO:__main__:Logging handler created", "")
    assert re.findall(r"INFO:.*", shown) == []


def test_worker_killed_while_it_writes(tmp_path, uninterrupted, monkeypatch):
    write = encode_shards.write_shard

    def write_after_a_kill(path, *args, **more):
        # another worker's, which was killed with the same task
        temporary_path(path).touch()
        return write(path, *args, **more)

    monkeypatch.setattr(encode_shards, "write_shard", write_after_a_kill)
    generate(TinyTask(), tmp_path / "beam", pipeline=Pipeline("DirectRunner"))
    assert contents(tmp_path / "beam") == uninterrupted


def test_failed_pipeline_keeps_only_finished_shards(
    tmp_path, uninterrupted, monkeypatch
):
    write = encode_shards.write_shard

    def fail_at_three(path, *args, **more):
        if path.name == "train-00003.arrow":
            raise OSError("the disk is gone")
        return write(path, *args, **more)

    with monkeypatch.context() as patch:
        patch.setattr(encode_shards, "write_shard", fail_at_three)
        message = (
            r"pipeline of DirectRunner failed: the disk is gone.* The same command"
        )
        with pytest.raises(ChildProcessError, match=message):
            generate(TinyTask(), tmp_path / "beam", pipeline=Pipeline("DirectRunner"))
    left = contents(tmp_path / "beam")
    assert {
        name: left[name] for name in left if name.endswith(".arrow")
    }.items() <= uninterrupted.items()
    assert not list((tmp_path / "beam").rglob("*.tmp"))
    generate(TinyTask(), tmp_path / "beam", pipeline=Pipeline("DirectRunner"))
    assert contents(tmp_path / "beam") == uninterrupted


def test_workers_that_do_not_see_the_folder(tmp_path, monkeypatch):
    monkeypatch.setattr(encode_shards, "_encode_chunk", lambda *work: None)
    message = r"file system that all share\. Received: no .*/dev-00000\.arrow\."
    with pytest.raises(ChildProcessError, match=message):
        generate(TinyTask(), tmp_path, pipeline=Pipeline("DirectRunner"))
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list(tmp_path.rglob("manifest.json"))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--beam_runner=Spork"], "Received: Unexpected pipeline runner"),
        (["--beam_runner=nowhere.Runner"], "need pip install"),
        ([DIRECT, "--beam_options='"], "Received: No closing quotation"),
        (["--beam_options=-x"], "--beam_runner must be given."),
    ],
)
def test_mistakes_are_reported_before_anything_is_made(
    tmp_path, capsys, flags, message
):
    flags = ["--problem=grammar_ende", f"--data_dir={tmp_path}", *flags]
    assert t2t_datagen.main(flags) == 1
    assert message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_without_apache_beam(tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "apache_beam", None)
    flags = ["--problem=grammar_ende", "--beam_runner=DirectRunner"]
    assert t2t_datagen.main([*flags, f"--data_dir={tmp_path}"]) == 1
    stderr = capsys.readouterr().err
    assert "pip install 't2tlite[beam]'" in stderr
