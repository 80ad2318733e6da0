"""BPE dropout: without dropout SentencePiece's ids, with it the distribution that
algorithm 1 of Provilkov et al. (2020) has.
"""

import struct
from collections import Counter
from pathlib import Path

import pytest
import sentencepiece
from sample_texts import NASTY, SENTENCES, random_texts

from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)
from t2tlite.vocabularies.subword_encoder import SubwordEncoder
from t2tlite.vocabularies.subword_sampling import SubwordSampler

CONTROL, UNKNOWN, NORMAL = 3, 2, 1
BPE = 2


def field(number: int, content: bytes) -> bytes:
    """A field of a message of Protocol Buffers, of less than 128 bytes."""
    return bytes([number << 3 | 2, len(content)]) + content


def write_model(path: Path, pieces: list[tuple[str, float, int]]) -> Path:
    """A SentencePiece model of type BPE, whose pieces have these scores and types."""
    model = b""
    for text, score, kind in pieces:
        piece = field(1, text.encode()) + b"\x15" + struct.pack("<f", score)
        model += field(1, piece + bytes([3 << 3, kind]))
    # model_type of TrainerSpec; name of NormalizerSpec
    model += field(2, bytes([3 << 3, BPE])) + field(3, field(1, b"identity"))
    path.write_bytes(model)
    return path


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """A vocabulary as t2t-datagen learns it, with symbols."""
    path = tmp_path_factory.mktemp("learned") / "vocab.model"
    train_sentencepiece(SENTENCES, 340, path, symbols=("<2de>", "(NP"))
    return SentencePieceEncoder(path)


@pytest.fixture(scope="module")
def foreign(tmp_path_factory):
    """A vocabulary without bytes, whose pieces go over spaces, with a symbol that may
    be inside a word.
    """
    path = tmp_path_factory.mktemp("foreign") / "vocab.model"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_prefix=str(path.with_suffix("")),
        model_type="bpe",
        vocab_size=60,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        split_by_whitespace=False,
        user_defined_symbols=["<sep>"],
        minloglevel=2,
    )
    return SentencePieceEncoder(path)


@pytest.mark.parametrize("name", ["encoder", "foreign"])
def test_without_dropout_the_ids_are_sentencepieces(name, request):
    encoder = request.getfixturevalue(name)
    sampler = encoder.sampler(0.0)
    more = [
        "<2de> the cat (NP <2de>the",
        "the<sep>cat the <sep>",
        "的犬 of 猫猫 的",
        "m" * 99,
    ]
    texts = [*NASTY, *SENTENCES[:4], *random_texts()[:600], *more]
    assert len(texts) > 200
    for text in texts:
        assert sampler(text, 1) == encoder.encode(text), repr(text)


def test_samples_differ_and_have_the_text(encoder):
    sampler = encoder.sampler(0.3)
    for text in ["<2de> the cat sits on the mat", "größer als 12 (NP"]:
        samples = {tuple(sampler(text, sample)) for sample in range(1, 9)}
        assert len(samples) > 4
        assert {encoder.decode(ids) for ids in samples} == {text}
        symbol = "▁<2de>" if "<2de>" in text else "▁(NP"
        assert all(symbol in encoder.pieces(ids) for ids in samples)


def test_a_segmentation_depends_on_text_and_sample_alone(encoder):
    texts = [*SENTENCES[:4], *NASTY]
    first = encoder.sampler(0.3)
    forwards = [first(text, 7) for text in texts]
    second = encoder.sampler(0.3)
    backwards = [second(text, 7) for text in reversed(texts)]
    assert backwards[::-1] == forwards
    # texts that the vocabulary reads alike
    assert second("the\u00a0cat  sits ", 3) == second("the cat sits", 3)


def test_distribution_of_algorithm_1(tmp_path):
    """The paper's algorithm by hand, with p = 0.3, for merges a b, then b c, then
    ab c or a bc.

    First a b is made with 1 - p, otherwise b c with p (1 - p), otherwise nothing; then
    the one merge that is left is made with 1 - p.
    """
    special = [("<pad>", 0, CONTROL), ("</s>", 0, CONTROL), ("<unk>", 0, UNKNOWN)]
    merges = [("ab", 0.0, NORMAL), ("bc", -1.0, NORMAL), ("abc", -2.0, NORMAL)]
    letters = [(letter, -9.0, NORMAL) for letter in "▁abc"]
    path = write_model(tmp_path / "vocab.model", [*special, *merges, *letters])
    encoder = SentencePieceEncoder(path)
    sampler = encoder.sampler(0.3)
    counts = Counter()
    for sample in range(20_000):
        pieces = encoder.pieces(sampler("abc", sample))
        counts[" ".join(pieces[1:])] += 1
    expected = {"abc": 0.637, "ab c": 0.21, "a bc": 0.063, "a b c": 0.09}
    # four standard deviations are at most 0.0136
    shares = {pieces: count / 20_000 for pieces, count in counts.items()}
    assert shares == pytest.approx(expected, abs=0.0136)


def test_full_dropout_leaves_characters(encoder):
    pieces = encoder.pieces(encoder.sampler(1.0)("the cat", 1))
    assert pieces == ["▁", "t", "h", "e", "▁", "c", "a", "t"]


def test_a_long_text_without_spaces_takes_seconds_at_most(encoder):
    text = "thecatsitsonthemat" * 2000
    assert encoder.decode(encoder.sampler(0.1)(text, 1)) == text


def test_unigram_models_and_subwords_are_refused(tmp_path):
    prefix = tmp_path / "unigram"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES),
        model_prefix=str(prefix),
        model_type="unigram",
        vocab_size=40,
        hard_vocab_limit=False,
        pad_id=0,
        eos_id=1,
        unk_id=2,
        bos_id=-1,
        minloglevel=2,
    )
    message = r"need a SentencePiece vocabulary of type bpe.*Received: .*unigram\.model"
    with pytest.raises(ValueError, match=message):
        SubwordSampler(prefix.with_suffix(".model"), "none", 0.1)
    subwords = tmp_path / "vocab.subwords"
    subwords.write_text("'<pad>_'\n'<EOS>_'\n'a_'\n")
    with pytest.raises(ValueError, match=r"vocab\.subwords, of tensor2tensor's type"):
        SubwordEncoder(subwords).sampler(0.1)
