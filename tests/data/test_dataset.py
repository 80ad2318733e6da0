"""Opening a data directory: the right problem, or a message that says what is wrong
with it.
"""

import random

import pytest
from tiny_task import FileTask, TinyTask, contents, write_pairs

from t2tlite.config import HParams
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.run_folder import RunFolder


def test_open_dataset_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"must hold data\. .* Run t2t-datagen"):
        open_dataset(tmp_path)
    generate(TinyTask(), tmp_path, num_processes=1)
    assert open_dataset(tmp_path).name == "tiny_task"
    assert open_dataset(tmp_path, "tiny_task_rev").manifest.reverse
    message = r"no finished data of other in .*Finished data there: tiny_task\."
    with pytest.raises(FileNotFoundError, match=message):
        open_dataset(tmp_path, "other")
    message = r"split must be one of train, dev, test\. Received: 'valid'"
    with pytest.raises(ValueError, match=message):
        open_dataset(tmp_path).store("valid")
    raw = write_pairs(tmp_path / "raw.tsv")
    generate(FileTask(train=str(raw)), tmp_path, num_processes=1)
    with pytest.raises(ValueError, match=r"problems: file_task, tiny_task\. Name one"):
        open_dataset(tmp_path)


@pytest.mark.parametrize("content", ["{", "[]", '{"format_version": 1}'])
def test_damaged_manifest(data_dir, content):
    (data_dir / "tiny_task" / "manifest.json").write_text(content)
    message = r"manifest\.json is damaged.*run t2t-datagen again"
    with pytest.raises(ValueError, match=message):
        open_dataset(data_dir)


def test_manifest_of_another_format(data_dir):
    path = data_dir / "tiny_task" / "manifest.json"
    text = path.read_text().replace('"format_version": 1', '"format_version": 7')
    path.write_text(text)
    message = r"manifest\.json must have format_version 1.* Received: 7\."
    with pytest.raises(ValueError, match=message):
        open_dataset(data_dir)
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(), data_dir)


def flip_a_bit(path, draw):
    content = bytearray(path.read_bytes())
    content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
    path.write_bytes(content)


def test_changed_bit_in_a_shard_is_an_error_before_it_is_read(data_dir):
    draw = random.Random(1)
    for _ in range(100):
        path = data_dir / "tiny_task" / f"train-0000{draw.randrange(5)}.arrow"
        before = path.read_bytes()
        flip_a_bit(path, draw)
        message = rf"{path} must have the SHA-256 .* Run t2t-datagen again"
        with pytest.raises(ValueError, match=message):
            open_dataset(data_dir).store("train")
        assert len(open_dataset(data_dir).store("dev")) == 30  # which is not damaged
        path.write_bytes(before)
    assert len(open_dataset(data_dir).store("train")) == 230


@pytest.mark.parametrize(
    "name", ["vocab.model", "train-00000.arrow", "dev-00000.arrow"]
)
def test_data_in_which_a_bit_changed_is_made_again(data_dir, uninterrupted, name):
    flip_a_bit(data_dir / "tiny_task" / name, random.Random(name))
    assert not generate(TinyTask(), data_dir, num_processes=1).already_there
    assert contents(data_dir) == uninterrupted


def test_data_that_lost_a_shard_is_made_again(data_dir, uninterrupted):
    (data_dir / "tiny_task" / "train-00002.arrow").unlink()
    with pytest.raises(FileNotFoundError, match=r"is missing\. Run t2t-datagen again"):
        open_dataset(data_dir).store("train")
    assert not generate(TinyTask(), data_dir, num_processes=1).already_there
    assert contents(data_dir) == uninterrupted


def test_a_bit_that_changed_in_a_vocabulary_is_found(data_dir, tmp_path):
    run, path = RunFolder(tmp_path / "run"), data_dir / "tiny_task" / "vocab.model"
    run.create(HParams(), open_dataset(data_dir).manifest, [path])
    assert run.encoders()[0].vocab_size == 330
    flip_a_bit(path, random.Random(2))
    with pytest.raises(ValueError, match=rf"{path} .*\. Run t2t-datagen again\."):
        _ = open_dataset(data_dir).encoders
    copy = run.path / "vocab.model"
    flip_a_bit(copy, random.Random(2))
    with pytest.raises(ValueError, match=rf"{copy} .*\. Copy it again from where "):
        run.encoders()


@pytest.mark.parametrize("name", ["run", "other_task"])
def test_a_run_in_the_folder_of_data_is_not_taken_for_data(data_dir, name):
    """The manifests of both are called manifest.json."""
    run, vocabulary = RunFolder(data_dir / name), data_dir / "tiny_task" / "vocab.model"
    run.create(HParams(), open_dataset(data_dir).manifest, [vocabulary])
    assert open_dataset(data_dir).name == "tiny_task"
    with pytest.raises(FileNotFoundError, match="no finished data of other_task in"):
        open_dataset(data_dir, "other_task")
    run.create(HParams(), open_dataset(data_dir).manifest, [vocabulary])
    assert generate(TinyTask(), data_dir).already_there


def test_a_run_and_data_never_share_a_folder(data_dir, uninterrupted, tmp_path):
    dataset = open_dataset(data_dir)
    vocabulary = dataset.folder / "vocab.model"
    message = r"--output_dir must be a folder of its own\. .*tiny_task, which holds"
    with pytest.raises(ValueError, match=message):
        RunFolder(dataset.folder).check_path()
    assert contents(data_dir) == uninterrupted
    run = RunFolder(data_dir / "file_task")
    run.create(HParams(), dataset.manifest, [vocabulary])
    raw = write_pairs(tmp_path / "raw.tsv")
    with pytest.raises(ValueError, match=r"file_task must hold data\. Received: the f"):
        generate(FileTask(train=str(raw)), data_dir, num_processes=1)
    assert run.manifest().problem == "tiny_task"
