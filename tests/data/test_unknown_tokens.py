"""Text that a given vocabulary cannot spell is counted, and reported with its share."""

import io
from pathlib import Path

import pytest
import sentencepiece
from tiny_task import TinyTask

from t2tlite.data import encode_shards
from t2tlite.data.dataset import open_dataset
from t2tlite.data.generate import generate


@pytest.fixture(scope="module")
def lower_case(tmp_path_factory) -> Path:
    """A vocabulary of the sources alone, without bytes; targets are in upper case."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=(source for source, _ in TinyTask().train),
        model_writer=model,
        vocab_size=40,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path_factory.mktemp("vocabulary") / "lower.model"
    path.write_bytes(model.getvalue())
    return path


def test_tokens_that_a_vocabulary_lacks(tmp_path, lower_case, monkeypatch):
    monkeypatch.setattr(encode_shards, "CHUNK_PAIRS", 50)
    task = TinyTask(vocab_file=(str(lower_case),), vocab_type="words")
    data = generate(task, tmp_path, num_processes=1)
    manifest = data.dataset.manifest
    dev = data.dataset.store("dev")
    processor = sentencepiece.SentencePieceProcessor(model_file=str(lower_case))
    for name in ("train", "dev", "test"):
        expected = 0
        for _, target in getattr(task, name):
            expected += processor.encode(target).count(processor.unk_id())
        entry = manifest.split(name)
        assert (entry.source_unknown, entry.target_unknown) == (0, expected)
        assert expected > len(getattr(task, name))  # each word is unknown
    share = manifest.split("dev").target_unknown / dev.target_lengths.sum()
    line = f"unknown: 0.0% of source and {share:.1%} of target tokens, which the"
    line += " vocabulary lacks (neighbours are one token); learn it from text of both"
    assert line in str(data)
    assert " pieces\n" in str(data)
    assert line in str(generate(task, tmp_path))
    reversed_entry = open_dataset(tmp_path, "tiny_task_rev").manifest.split("train")
    assert reversed_entry.source_unknown == manifest.split("train").target_unknown
    path = data.dataset.folder / "train-00000.arrow"
    entry = encode_shards.split_entry([path])
    assert 0 < entry.target_unknown < manifest.split("train").target_unknown
    words = TinyTask(vocab_type="words", vocab_size=5)
    assert "are one token)\n" in str(generate(words, tmp_path / "words"))
