"""Opening a data directory: the right problem, or a message that says what is wrong with it."""

from __future__ import annotations

import pytest
from tiny_task import FileTask, TinyTask, sentences

from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate


def test_open_dataset_by_name(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"which has none\. Run t2t-datagen"):
        open_dataset(tmp_path)
    generate(TinyTask(), tmp_path, num_processes=1)
    assert open_dataset(tmp_path).name == "tiny_task"
    assert open_dataset(tmp_path, "tiny_task_rev").manifest.reverse
    with pytest.raises(FileNotFoundError, match=r"no finished data of other in .*Finished data there: tiny_task\."):
        open_dataset(tmp_path, "other")
    with pytest.raises(ValueError, match=r"split must be one of train, dev, test\. Received: 'valid'"):
        open_dataset(tmp_path).store("valid")

    raw = tmp_path / "raw.tsv"
    raw.write_text("".join(f"{s}\t{t}\n" for s, t in sentences(60, 4)))
    generate(FileTask(train=str(raw)), tmp_path, num_processes=1)
    with pytest.raises(ValueError, match=r"several problems\. Name one: file_task, tiny_task"):
        open_dataset(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [("{", "is damaged"), ("[]", "is damaged"), ("{}", "is damaged")],
)
def test_damaged_manifest(tmp_path, content, message):
    generate(TinyTask(), tmp_path, num_processes=1)
    (tmp_path / "tiny_task" / "manifest.json").write_text(content)

    with pytest.raises(ValueError, match=f"manifest.json {message}.*run t2t-datagen again"):
        open_dataset(tmp_path)


def test_manifest_of_another_format(tmp_path):
    generate(TinyTask(), tmp_path, num_processes=1)
    path = tmp_path / "tiny_task" / "manifest.json"
    path.write_text(path.read_text().replace('"format": 1', '"format": 7'))

    for act in (lambda: open_dataset(tmp_path), lambda: generate(TinyTask(), tmp_path)):
        with pytest.raises(ValueError, match=r"reads data of format 1\. Received: format 7"):
            act()
