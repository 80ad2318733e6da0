"""From text to a data directory: what is kept, what is dropped, what is refused."""

import dataclasses
import hashlib
import itertools
import json
import random
import re

import numpy as np
import pytest
from tiny_task import FileTask, TinyTask, contents, sentences, write_pairs

from t2tlite.data import encode_shards
from t2tlite.data.beam_pipeline import Pipeline
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.data.learn_vocabulary import TextSample, default_vocab_size
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece


def test_what_is_stored_decodes_to_the_text(tmp_path):
    task = TinyTask()
    data = generate(task, tmp_path, num_processes=1).dataset
    assert (data.name, [*data.manifest.splits], data.manifest.reverse) == (
        "tiny_task",
        ["train", "dev", "test"],
        False,
    )
    assert data.manifest.language_pair == ("en", "de")
    assert data.manifest.decode_defaults == {
        "beam_size": 4,
        "alpha": 0.6,
        "extra_length": 50,
    }
    assert data.encoders[1].vocab_size == 330
    for split in data.manifest.splits:
        store, pairs = data.store(split), getattr(task, split)
        rows = np.arange(len(pairs))
        sources = store.sources(rows, int(store.source_lengths.max()))
        targets = store.targets(rows, int(store.target_lengths.max()))
        assert [data.encoders[0].decode(row) for row in sources] == [
            source for source, _ in pairs
        ]
        assert [data.encoders[1].decode(row) for row in targets] == [
            target for _, target in pairs
        ]
        entry = data.manifest.splits[split]
        assert entry.pairs == len(pairs)
        assert entry.source_tokens == np.count_nonzero(sources)
        assert entry.longest_target == targets.shape[1]
    assert data.store("dev").source_text() == [source for source, _ in task.dev]
    assert data.store("test").target_text() == [target for _, target in task.test]
    with pytest.raises(ValueError, match="Only dev and test"):
        data.store("train").source_text()


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
        "train": str(raw),
    }
    status = raw.stat()
    entry = {
        "file": "raw.tsv",
        "bytes": status.st_size,
        "modified_ns": status.st_mtime_ns,
        "sha256": digest,
    }
    assert manifest["made_from"] == [entry]
    assert (manifest["vocabulary"]["type"], manifest["vocabulary"]["size"]) == (
        "sentencepiece",
        330,
    )
    for entry in [manifest["vocabulary"], *manifest["splits"]["train"]["shards"]]:
        content = (folder / entry["file"]).read_bytes()
        assert (entry["bytes"], entry["sha256"]) == (
            len(content),
            hashlib.sha256(content).hexdigest(),
        )
    assert [shard["pairs"] for shard in manifest["splits"]["train"]["shards"]] == [
        50,
        50,
        20,
    ]


def test_reversed_shares_the_folder_and_swaps(tiny_data):
    data = generate(TinyTask(reverse=True), tiny_data, num_processes=1)
    assert data.already_there
    assert data.dataset.name == "tiny_task_rev"
    assert data.dataset.manifest.language_pair == ("de", "en")
    assert data.dataset.store("dev").source_text() == [
        target for _, target in TinyTask().dev
    ]


def test_blank_lines_leave_train_and_stay_in_dev(tmp_path):
    pairs = sentences(50, 1)
    pairs[3:3] = [("", "X"), (" \t", "X"), ("x", "\u3000"), ("", "")]
    dev = (("", "A CAT"), (" a  cat ", " "), *sentences(5, 2))
    data = generate(
        TinyTask(train=tuple(pairs), dev=dev), tmp_path, num_processes=1
    ).dataset
    assert len(data.store("train")) == 50
    assert data.manifest.splits["train"].dropped == {
        "empty": 4,
        "too_long": 0,
        "length_ratio": 0,
    }
    assert data.manifest.splits["dev"].dropped == {
        "empty": 0,
        "too_long": 0,
        "length_ratio": 0,
    }
    assert data.store("dev").source_text()[:2] == ["", " a  cat "]
    assert data.store("dev").source_lengths[0] == 1  # EOS alone
    assert data.store("dev").target_text()[1] == " "


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
    assert splits["train"].dropped == {
        "empty": 0,
        "too_long": too_long.sum(),
        "length_ratio": ratio.sum(),
    }
    assert (
        data.dataset.store("train").source_lengths.tolist()
        == lengths[0][~too_long & ~ratio].tolist()
    )
    assert [splits["dev"].pairs, splits["test"].pairs] == [30, 20]
    assert f"dropped: {too_long.sum()} too long, {ratio.sum()} length ratio" in str(
        data
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"train": ()},
            "at least one pair with text on both sides in train. Received: 0 pairs",
        ),
        (
            {"train": ((" ", "x"), ("y", ""))},
            "text on both sides in train. Received: 2 pairs",
        ),
        ({"dev": ()}, "at least one pair in dev. Received: 0"),
        (
            {"train": (("a", "b"), ("c\n", "d"))},
            "tiny_task, train pair 2: a text must not contain a line break",
        ),
        (
            {"dev": (("a", "b"), ("c", "\udcff"))},
            "dev pair 2: Text must be Unicode without lone surrogates",
        ),
        (
            {"test": (("a", None),)},
            r"test pair 1: a pair \(source, target\) of two strings is required\."
            r" Received: \('a', None\)\. Yield source, target\.",
        ),
        (
            {"vocab_size": 99999},
            r"vocab_size must be at least \d+ and at most \d+ for this text",
        ),
        (
            {"vocab_size": 10},
            r"vocab_size must be at least \d+ and at most \d+ for this text",
        ),
        ({"max_length": -1}, "max_length must be at least 1"),
        ({"max_length_ratio": 0.5}, "max_length_ratio must be at least 1"),
    ],
)
def test_bad_input_changes_nothing(tmp_path, data_dir, uninterrupted, changes, message):
    with pytest.raises(ValueError, match=message):
        generate(TinyTask(**changes), tmp_path / "new", num_processes=1)
    assert not list((tmp_path / "new").glob("*"))
    with pytest.raises(ValueError, match=f"{message}|made from something else"):
        generate(TinyTask(**changes), data_dir, num_processes=1)
    assert contents(data_dir) == uninterrupted


def test_too_little_text_for_the_default_size(tmp_path):
    """The default gives the largest vocabulary that there is; a size that was asked for
    is refused with both bounds.
    """
    train = TinyTask().train[:40]
    text = [side for pair in train for side in pair]
    with pytest.raises(ValueError, match="at most") as largest:
        train_sentencepiece(text, 9999, tmp_path / "v.model")
    largest = int(re.search(r"at most (\d+)", str(largest.value))[1])
    train_sentencepiece(text, largest, tmp_path / "v.model")
    smallest = 259 + len(set("".join(text).replace(" ", "▁")))

    @dataclasses.dataclass(frozen=True)
    class Ample(TinyTask):
        vocab_size: int = 32000

    data = generate(Ample(train=train), tmp_path / "data", num_processes=1)
    assert (
        f"vocabulary  {largest} pieces, the most that this text allows: it is too small"
        " for the default, 32,000" in (str(data))
    )
    assert (data.dataset.folder / "vocab.model").read_bytes() == (
        tmp_path / "v.model"
    ).read_bytes()
    manifest = json.loads((data.dataset.folder / "manifest.json").read_text())
    assert (manifest["options"]["vocab_size"], manifest["vocabulary"]["size"]) == (
        32000,
        largest,
    )
    assert generate(
        Ample(train=train), tmp_path / "data", num_processes=1
    ).already_there
    for size, advice in (
        (1, "Raise vocab_size."),
        (40, "Raise vocab_size."),
        (8000, "Lower vocab_size or give more"),
    ):
        bounds = (
            rf"at least {smallest} and at most {largest} for this text: .*Received:"
            rf" {size}\. {advice}"
        )
        with pytest.raises(ValueError, match=bounds):
            generate(
                Ample(train=train, vocab_size=size), tmp_path / "other", num_processes=1
            )
    fits = generate(
        Ample(train=train, vocab_size=smallest), tmp_path / "other", num_processes=1
    )
    assert f"vocabulary  {smallest} pieces\n" in str(fits)


@pytest.mark.parametrize(
    ("pairs", "pieces"),
    [
        (1, 1000),
        (1599, 1000),
        (1600, 2000),
        (29_000, 8000),
        (409_600, 32_000),
        (10**9, 32_000),
    ],
)
def test_default_vocabulary_grows_with_the_root_of_the_pairs(pairs, pieces):
    assert default_vocab_size(pairs) == pieces


def test_size_chosen_by_the_number_of_pairs_is_reported(tmp_path):
    letters = np.random.default_rng(1).choice(list("abcdefghijklmnop"), size=(900, 6))
    words = ["".join(row) for row in letters]
    train = tuple(
        (" ".join(words[i : i + 8]), " ".join(words[i + 8 : i + 16]))
        for i in range(0, 880, 8)
    )
    data = generate(TinyTask(train=train, vocab_size=0), tmp_path, num_processes=1)
    assert (
        "vocabulary  1,000 pieces, chosen by the number of training pairs;"
        " --vocab_size=N gives N" in str(data)
    )
    assert data.dataset.encoders[0].vocab_size == 1000


def test_symbols_of_the_user_are_pieces(tmp_path):
    task = TinyTask(user_symbols=("<2de>", "<BT>"))
    encoder = generate(task, tmp_path / "data", num_processes=1).dataset.encoders[0]
    assert encoder.pieces(encoder.encode("<2de> <BT> a"))[:2] == ["▁<2de>", "▁<BT>"]
    vocab_file = (str(tmp_path / "data" / "tiny_task" / "vocab.model"),)
    generate(
        TinyTask(user_symbols=("<BT>",), vocab_file=vocab_file),
        tmp_path / "again",
        num_processes=1,
    )
    for options, message in (
        (
            {"user_symbols": ("<2fr>",), "vocab_file": vocab_file},
            r"must be pieces of vocab_file .*Received: '<2fr>', ",
        ),
        (
            {"user_symbols": ("<2 de>",)},
            r"different strings without white space\. Received: '<2 de>'",
        ),
        (
            {"user_symbols": ("<a>", "<a>")},
            r"different strings without white space\. Received: '<a>,<a>'",
        ),
        (
            {"user_symbols": ("<a>",), "vocab_type": "subwords"},
            r"need vocab_type=sentencepiece\. Received: <a> with",
        ),
    ):
        with pytest.raises(ValueError, match=message):
            generate(TinyTask(**options), tmp_path / "refused", num_processes=1)


def test_everything_dropped(tmp_path):
    with pytest.raises(
        ValueError,
        match=(
            r"training pairs in train\. Received: 230, of which max_length=1 .*drop all"
        ),
    ):
        generate(TinyTask(max_length=1), tmp_path, num_processes=1)
    with pytest.raises(FileNotFoundError, match="no finished data"):
        open_dataset(tmp_path, "tiny_task")


def test_no_processes(tmp_path):
    with pytest.raises(ValueError, match="num_processes must be at least 1"):
        generate(TinyTask(), tmp_path, num_processes=0)


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


def test_chunks_end_by_pairs_or_characters(monkeypatch):
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 2)
    monkeypatch.setattr(encode_shards, "CHUNK_CHARACTERS", 40)
    pairs = [("aa", "bb"), ("c", "d"), ("e" * 50, "f"), ("g", "h")]
    assert list(encode_shards.chunks(pairs)) == [pairs[:2], pairs[2:3], pairs[3:]]


def test_sample_is_bounded_uniform_and_repeatable():
    def sample(count):
        kept = TextSample(limit=100 * 122)  # room for 100 pairs of 1 + 1 characters
        for i in range(count):
            kept.add(chr(i), "x")
        return [ord(text) for text in kept.sentences() if text != "x"]

    kept = sample(50_000)
    assert 25 < len(kept) <= 100
    assert kept == sample(50_000)
    # from everywhere: the standard error is under 2,900
    assert 20_000 < np.mean(kept) < 30_000
    assert sample(80) == list(range(80))


def test_long_texts_do_not_fill_the_sample():
    kept = TextSample()
    kept.add("x" * 100_000, "y")
    assert [len(text) for text in kept.sentences()] == [10_000, 1]


def test_progress_is_printed_and_the_summary_returned(tmp_path, capfd):
    data = generate(TinyTask(), tmp_path, num_processes=2)
    output = capfd.readouterr()
    assert output.out == ""
    for words in ("reading train", "reading dev", "learning 330 pieces", "encoding"):
        assert words in output.err
    for words in (
        f"The data is in {tmp_path / 'tiny_task'}.",
        "330 pieces",
        "230 pairs",
    ):
        assert words in str(data)
    assert data.seconds > 0


def test_module_constants_fit_four_bytes_offsets():
    """A shard's tokens are at most its bytes of text and one EOS a pair: Arrow counts
    them in 31 bits.
    """
    assert 4 * encode_shards.CHUNK_CHARACTERS + 50_000 < 2**31
