"""From text to a data directory: what is kept, what is dropped, what is refused.
test_generate_again.py interrupts and repeats it.
"""

import collections
import hashlib
import json
import random

import numpy as np
import pytest
from tiny_task import FileTask, TinyTask, contents, sentences, write_pairs

from t2tlite.data import encode_shards
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate


def test_what_is_stored_decodes_to_the_text(tmp_path):
    task = TinyTask()
    data = generate(task, tmp_path, num_processes=1).dataset
    assert data.name == "tiny_task"
    assert [*data.manifest.splits] == ["train", "dev", "test"]
    assert data.manifest.language_pair == ("en", "de")
    assert data.manifest.decode_defaults == TinyTask.decode_defaults
    assert data.encoders[1].vocab_size == 330
    for split in data.manifest.splits:
        store, pairs = data.store(split), getattr(task, split)
        rows = np.arange(len(pairs))
        sources = store.sources(rows, int(store.source_lengths.max()))
        targets = store.targets(rows, int(store.target_lengths.max()))
        for row, pair in enumerate(pairs):
            assert data.encoders[0].decode(sources[row]) == pair[0]
            assert data.encoders[1].decode(targets[row]) == pair[1]
        entry = data.manifest.splits[split]
        assert entry.pairs == len(pairs)
        assert entry.source_tokens == np.count_nonzero(sources)
        assert entry.longest_target == targets.shape[1]
    assert data.store("dev").source_text() == [source for source, _ in task.dev]
    assert data.store("test").target_text() == [target for _, target in task.test]
    with pytest.raises(ValueError, match="Only dev and test"):
        data.store("train").source_text()


def test_text_is_read_once(tmp_path):
    """Random numbers need no seed: all steps use the pairs of one reading."""
    yielded = collections.defaultdict(list)

    class Shuffled(TinyTask):
        def pairs(self, split, tmp_dir):
            assert split not in yielded
            yielded[split] = random.sample(getattr(self, split), 20)
            yield from yielded[split]

    data = generate(Shuffled(), tmp_path, num_processes=1).dataset
    for split, pairs in yielded.items():
        store = data.store(split)
        rows = store.sources(np.arange(len(store)), int(store.source_lengths.max()))
        texts = [data.encoders[0].decode(row) for row in rows]
        assert texts == [source for source, _ in pairs]
    text = hashlib.sha256()
    for split in ("train", "dev", "test"):
        lines = "".join(f"{source}\n{target}\n" for source, target in yielded[split])
        text.update(f"{split}\n".encode() + hashlib.sha256(lines.encode()).digest())
    assert data.manifest.text_sha256 == text.hexdigest()
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError, match="file"):  # before any is read
        generate(Shuffled(), tmp_path / "file")


def test_manifest(tmp_path):
    raw = write_pairs(tmp_path / "raw.tsv", 120)
    generate(FileTask(train=str(raw)), tmp_path / "data", num_processes=1)
    folder = tmp_path / "data" / "file_task"
    manifest = json.loads((folder / "manifest.json").read_text())
    digest = hashlib.sha256(raw.read_bytes()).hexdigest()
    assert manifest["format_version"] == 1
    assert manifest["problem"] == "file_task"
    assert manifest["options"] == {
        "vocab_size": 330,
        "vocab_type": "sentencepiece",
        "vocab_file": [],
        "user_symbols": [],
        "normalization": "nfc",
        "max_length": 0,
        "max_length_ratio": 0.0,
        "drop": [],
        "train": str(raw),
    }
    (entry,) = manifest["made_from"]
    assert entry == {"file": "raw.tsv", "bytes": raw.stat().st_size, "sha256": digest}
    assert manifest["vocabulary"]["type"] == "sentencepiece"
    assert manifest["vocabulary"]["size"] == 330
    shards = manifest["splits"]["train"]["shards"]
    for entry in [manifest["vocabulary"], *shards]:
        content = (folder / entry["file"]).read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()
    assert [shard["pairs"] for shard in shards] == [50, 50, 20]


def test_reversed_shares_the_folder_and_swaps(tiny_data):
    data = generate(TinyTask(reverse=True), tiny_data, num_processes=1)
    assert data.already_there
    assert data.dataset.name == "tiny_task_rev"
    assert data.dataset.manifest.language_pair == ("de", "en")
    targets = [target for _, target in TinyTask().dev]
    assert data.dataset.store("dev").source_text() == targets


def test_language_codes_are_recorded_as_bcp_47_spells_them(tmp_path, monkeypatch):
    monkeypatch.setattr(TinyTask, "source_language", "EN_us")
    data = generate(TinyTask(), tmp_path, num_processes=1).dataset
    assert data.manifest.language_pair == ("en-US", "de")


def test_blank_lines_leave_train_and_stay_in_dev(tmp_path):
    pairs = sentences(50, 1)
    pairs[3:3] = [("", "X"), (" \t", "X"), ("x", "\u3000"), ("", "")]
    dev = (("", "A CAT"), (" a  cat ", " "), *sentences(5, 2))
    task = TinyTask(train=tuple(pairs), dev=dev)
    data = generate(task, tmp_path, num_processes=1).dataset
    none = {"empty": 0, "too_long": 0, "length_ratio": 0}
    assert data.manifest.splits["train"].dropped == {**none, "empty": 4}
    assert data.manifest.splits["dev"].dropped == none
    assert len(data.store("train")) == 50
    store = data.store("dev")
    assert store.source_text()[:2] == ["", " a  cat "]
    assert store.source_lengths[0] == 1  # EOS alone
    assert store.target_text()[1] == " "


def test_length_limits_apply_to_train_alone(tmp_path):
    train = (*sentences(200, 1), *[("cat", "THE BIG RED"), ("the big red", "CAT")] * 15)
    unlimited = generate(
        TinyTask(train=train), tmp_path / "all", num_processes=1
    ).dataset.store("train")
    lengths = np.stack([unlimited.source_lengths, unlimited.target_lengths])
    too_long = lengths.max(0) > 25
    # the ratio is of the text's own tokens
    shorter, longer = (lengths - 1).min(0), (lengths - 1).max(0)
    ratio = ~too_long & (longer > 1.5 * shorter)
    assert 0 < too_long.sum() < 230
    assert 0 < ratio.sum() < 230
    vocab_file = (str(tmp_path / "all" / "tiny_task" / "vocab.model"),)
    limits = {"max_length": 25, "max_length_ratio": 1.5}
    data = generate(
        TinyTask(train=train, vocab_file=vocab_file, **limits),
        tmp_path / "some",
        num_processes=1,
    )
    splits = data.dataset.manifest.splits
    counts = {"empty": 0, "too_long": too_long.sum(), "length_ratio": ratio.sum()}
    assert splits["train"].dropped == counts
    kept = lengths[0][~too_long & ~ratio].tolist()
    assert data.dataset.store("train").source_lengths.tolist() == kept
    assert [splits["dev"].pairs, splits["test"].pairs] == [30, 20]
    line = f"dropped: {too_long.sum()} too long, {ratio.sum()} length ratio"
    assert line in str(data)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": ()}, "pair to keep in train. Received: 0."),
        (
            {"train": ((" ", "x"), ("y", ""))},
            "pair to keep in train. Received: 2.",
        ),
        ({"dev": ()}, "pair to keep in dev. Received: 0"),
        ({"test": (("a", None),)}, r"test pair 1: a pair \(source, target\) of "),
        ({"vocab_size": 99999}, r"vocab_size=99999, which must be at most \d+ for"),
        ({"max_length": -1}, "max_length must be at least 0"),
    ],
)
def test_bad_input_changes_nothing(tmp_path, data_dir, uninterrupted, changes, message):
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(**changes), tmp_path / "new", num_processes=1)
    assert not list((tmp_path / "new").glob("*"))
    with pytest.raises(ValueError, match=f"{message}|made from something else"):
        generate(TinyTask(**changes), data_dir, num_processes=1)
    assert contents(data_dir) == uninterrupted


def test_everything_dropped(tmp_path):
    message = r"a pair to keep in train\. Received: 230\."
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(max_length=1), tmp_path, num_processes=1)
    with pytest.raises(FileNotFoundError, match="no finished data"):
        open_dataset(tmp_path, "tiny_task")


@pytest.mark.parametrize("splits", [("train",), ("dev",), ("train", "dev", "train")])
def test_train_and_dev_are_required_once(tmp_path, monkeypatch, splits):
    monkeypatch.setattr(TinyTask, "splits", lambda self: splits)
    message = rf"splits train and dev .*, each once\. Received: {', '.join(splits)}\."
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(), tmp_path)


def test_chunks_end_by_pairs_or_characters(monkeypatch):
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 2)
    monkeypatch.setattr(encode_shards, "CHUNK_CHARACTERS", 40)
    pairs = [("aa", "bb"), ("c", "d"), ("e" * 50, "f"), ("g", "h")]
    assert list(encode_shards.chunks(pairs)) == [pairs[:2], pairs[2:3], pairs[3:]]


def test_progress_is_printed_and_the_summary_returned(tmp_path, capfd):
    data = generate(TinyTask(), tmp_path, num_processes=2)
    output = capfd.readouterr()
    assert output.out == ""
    for words in ("reading train", "reading dev", "learning 330 pieces", "encoding"):
        assert words in output.err
    for words in (f"data is in {tmp_path / 'tiny_task'}.", "330 pieces", "230 pairs"):
        assert words in str(data)
    assert data.seconds > 0
