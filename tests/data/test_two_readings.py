"""Text that is not the same when it is read a second time becomes no data."""

import dataclasses
import itertools
import random

import pytest
from tiny_task import FileTask, TinyTask, contents, write_pairs

from t2tlite.data import encode_shards
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate


def _without_last(pairs):
    return pairs[:-1]


def _with_another(pairs):
    return (*pairs, ("one", "more"))


def _swapped(pairs):
    """Equally many pairs, of which the 101st and the 102nd change places."""
    return (*pairs[:100], pairs[101], pairs[100], *pairs[102:])


def _moved_boundary(pairs):
    """The same text, cut into source and target at another place."""
    return (*pairs[:-1], ("a b", "c"))


@pytest.mark.parametrize(
    ("split", "change", "message"),
    [
        ("dev", _without_last, r"30 pairs of dev at first, then 29\."),
        ("dev", _with_another, r"30 pairs of dev at first, then more\."),
        ("train", _swapped, r"another pair 101 of train the second time, \('"),
        (
            "test",
            _moved_boundary,
            r"another pair 20 of test the second time, \('a b', ",
        ),
    ],
)
@pytest.mark.parametrize("pipeline", [None, Pipeline("DirectRunner")])
def test_text_that_changes_between_the_readings(
    tmp_path, monkeypatch, uninterrupted, split, change, message, pipeline
):
    if pipeline is not None:
        pytest.importorskip("apache_beam")
    unchanged = TinyTask.pairs
    readings = itertools.count()

    def pairs(self, wanted, tmp_dir):
        is_second = next(readings) > 2
        pairs = getattr(self, wanted)
        yield from change(pairs) if is_second and wanted == split else pairs

    monkeypatch.setattr(TinyTask, "pairs", pairs)
    with pytest.raises(ValueError, match=f"same pairs each time.*Received: {message}"):
        generate(TinyTask(), tmp_path, num_processes=1, pipeline=pipeline)
    with pytest.raises(FileNotFoundError, match="no finished data"):
        open_dataset(tmp_path, "tiny_task")
    # no shard of other text is left for the next run to keep
    monkeypatch.setattr(TinyTask, "pairs", unchanged)
    generate(TinyTask(), tmp_path, num_processes=1)
    assert contents(tmp_path) == uninterrupted


@pytest.mark.parametrize("content", [None, "other\tpairs\n" * 9])
def test_file_that_changes_after_it_was_read(tmp_path, monkeypatch, content):
    """The manifest would record the hash of another file than the data's."""
    raw = write_pairs(tmp_path / "raw.tsv")
    encode_chunk = encode_shards._encode_chunk

    def change(*args):
        if content is None:
            raw.unlink(missing_ok=True)
        else:
            raw.write_text(content)
        return encode_chunk(*args)

    def read(self, split, tmp_dir):
        if split == "dev":
            return iter([("cat", "CAT")])
        return iter([line.split("\t") for line in raw.read_text().splitlines()])

    monkeypatch.setattr(FileTask, "pairs", read)
    monkeypatch.setattr(encode_shards, "_encode_chunk", change)
    with pytest.raises(
        ValueError, match=r"Received: .*raw\.tsv, which has changed since it was read\."
    ):
        generate(FileTask(train=str(raw)), tmp_path / "data", num_processes=1)
    with pytest.raises(FileNotFoundError, match="no finished data"):
        open_dataset(tmp_path / "data", "file_task")


def test_pairs_that_move_from_dev_to_train(tmp_path):
    """A problem that shuffles without a seed before it splits."""

    @dataclasses.dataclass(frozen=True)
    class Shuffled(TinyTask):
        def pairs(self, split, tmp_dir):
            pairs = [*self.train, *self.dev, *self.test]
            random.shuffle(pairs)
            ends = {"train": (0, 230), "dev": (230, 260), "test": (260, 280)}
            yield from pairs[slice(*ends[split])]

    with pytest.raises(
        ValueError, match=r"another pair \d+ of train the second time.*have a seed"
    ):
        generate(Shuffled(), tmp_path, num_processes=1)


def test_splits_that_change_between_the_readings(tmp_path, monkeypatch):
    splits = iter([*[("train", "dev", "test")] * 2, *[("train", "dev")] * 9])
    monkeypatch.setattr(TinyTask, "splits", lambda self: next(splits))
    with pytest.raises(
        ValueError,
        match=r"Received: the splits train, dev, test at first, then train, dev\.",
    ):
        generate(TinyTask(), tmp_path, num_processes=1)
    monkeypatch.setattr(TinyTask, "splits", lambda self: ("train", "dev", "dev"))
    with pytest.raises(ValueError, match="the splits train and dev, and each once"):
        generate(TinyTask(), tmp_path, num_processes=1)
