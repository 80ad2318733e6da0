"""Data made with a given vocabulary, or with one for each language."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from tiny_task import TinyTask, contents, sentences, write_subwords

from t2tlite.data import encode_shards
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate
from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece


@pytest.fixture
def vocabularies(tmp_path):
    """A subword vocabulary and a SentencePiece one."""
    text = [side for pair in sentences(100, 9) for side in pair]
    write_subwords(tmp_path / "given.subwords")
    train_sentencepiece(text, 320, tmp_path / "given.model")
    return str(tmp_path / "given.subwords"), str(tmp_path / "given.model")


def ids(store):
    """The source and the target of each pair, without padding."""
    rows = np.arange(len(store))
    sources = store.sources(rows, store.source_lengths.max())
    targets = store.targets(rows, store.target_lengths.max())
    pairs = []
    for source, target in zip(sources, targets, strict=True):
        pairs.append((source[source != 0].tolist(), target[target != 0].tolist()))
    return pairs


def decoded(data, split):
    source_encoder, target_encoder = data.encoders
    pairs = []
    for source, target in ids(data.store(split)):
        pairs.append((source_encoder.decode(source), target_encoder.decode(target)))
    return pairs


def test_a_given_vocabulary(tmp_path, vocabularies):
    for given in vocabularies:
        folder = tmp_path / given[-5:]
        data = generate(TinyTask(vocab_file=(given,)), folder, num_processes=1).dataset
        (path,) = data.folder.glob("vocab*")
        assert path.name == f"vocab.{given.rpartition('.')[2]}"
        assert path.read_bytes() == Path(given).read_bytes()
        assert decoded(data, "dev") == list(TinyTask().dev)
        first = open_encoder(given).encode(TinyTask().dev[0][0])
        assert ids(data.store("dev"))[0][0] == [*first, 1]


@pytest.mark.parametrize("processes", [1, 2])
def test_a_vocabulary_for_each_language(tmp_path, vocabularies, processes, monkeypatch):
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 50)
    generated = generate(
        TinyTask(vocab_file=vocabularies), tmp_path / "data", num_processes=processes
    )
    names = sorted(path.name for path in generated.dataset.folder.glob("vocab*"))
    assert names == ["vocab.source.subwords", "vocab.target.model"]
    sizes = [open_encoder(path).vocab_size for path in vocabularies]
    assert f"vocabulary  {sizes[0]} and {sizes[1]} pieces" in str(generated)
    assert decoded(generated.dataset, "train") == list(TinyTask().train)
    backwards = open_dataset(tmp_path / "data", "tiny_task_rev")
    assert [encoder.vocab_size for encoder in backwards.encoders] == sizes[::-1]
    assert decoded(backwards, "test") == [pair[::-1] for pair in TinyTask().test]


def test_finished_data_matches_by_content_of_vocabularies(tmp_path, vocabularies):
    before = generate(
        TinyTask(vocab_file=vocabularies[:1]), tmp_path / "data", num_processes=1
    )
    files = contents(before.dataset.folder)
    copy = shutil.copy(vocabularies[0], tmp_path / "elsewhere.subwords")
    assert generate(
        TinyTask(vocab_file=(copy,)), tmp_path / "data", num_processes=1
    ).already_there
    with pytest.raises(ValueError, match="made from something else: vocab_file was"):
        generate(TinyTask(vocab_file=vocabularies[1:]), tmp_path / "data")
    assert contents(before.dataset.folder) == files


def test_data_with_a_recorded_vocab_type_is_complete(tmp_path):
    """Older versions learned vocabularies of two types, and recorded which."""
    before = generate(TinyTask(), tmp_path, num_processes=1)
    path = before.dataset.folder / "manifest.json"
    manifest = json.loads(path.read_bytes())
    for kind in ("sentencepiece", "subwords"):
        manifest["options"]["vocab_type"] = kind
        path.write_text(json.dumps(manifest))
        assert len(open_dataset(tmp_path, "tiny_task").store("train")) == 230
        if kind == "sentencepiece":
            assert generate(TinyTask(), tmp_path, num_processes=1).already_there
            continue
        with pytest.raises(ValueError, match="vocab_type was subwords, now sentencep"):
            generate(TinyTask(), tmp_path, num_processes=1)


@pytest.mark.parametrize(
    ("given", "error", "message"),
    [
        (1, ValueError, r"vocab_file must be of type tuple\. Received: 1\."),
        (("a", "b", "c"), ValueError, r"target's, .* Received: a,b,c, nfc\."),
        (("gone.model",), FileNotFoundError, r"No such file .*: 'gone\.model'"),
        (("vocab.txt",), ValueError, r"must be named .* Received: vocab\.txt\."),
    ],
)
def test_bad_options(tmp_path, given, error, message):
    with pytest.raises(error, match=message):
        generate(TinyTask(vocab_file=given), tmp_path / "data", num_processes=1)
    assert not (tmp_path / "data" / "tiny_task" / "manifest.json").exists()
