"""What a vocabulary is learned from, and how large it is by default."""

import base64
import dataclasses
import random

import pytest
from tiny_task import TinyTask, sentences

from t2tlite.data import learn_vocabulary
from t2tlite.data.encode_shards import LengthLimits
from t2tlite.data.generate import generate
from t2tlite.data.learn_vocabulary import TextSample

# 1,200 Chinese characters, each of which a vocabulary needs
MANY = [chr(0x4E00 + i) for i in range(1200)]


def chinese(count):
    """Pairs of Chinese and English, without spaces on the Chinese side."""
    draw = random.Random(1)
    return tuple(
        ("".join(draw.sample(MANY, 30)), source) for source, _ in sentences(count, 2)
    )


@dataclasses.dataclass(frozen=True)
class OwnText(TinyTask):
    """As parallel_text: the default follows the number of pairs."""

    vocab_size: int = 0


@pytest.mark.parametrize("vocab_type", ["sentencepiece", "subwords"])
@pytest.mark.parametrize("count", [300, 1000])
def test_default_is_raised_to_what_the_characters_need(
    tmp_path, capfd, vocab_type, count
):
    train = chinese(count)
    data = generate(
        OwnText(train=train, vocab_type=vocab_type), tmp_path, num_processes=1
    )
    characters = set("".join(text for pair in train for text in pair))
    encoder = data.dataset.encoders[0]
    assert len(characters) > 1000
    assert encoder.vocab_size > len(characters)
    # beside the characters, there is room for words
    assert len(encoder.encode("cat mat house")) < len("cat mat house") / 2
    note = (
        "The vocabulary has more than the default of 1,000 pieces, since this text has"
    )
    assert note in capfd.readouterr().err
    if vocab_type == "sentencepiece":
        assert "pieces, more than the default, 1,000: each character" in str(data)
        # none is spelled in bytes
        assert len(encoder.encode("".join(MANY[:200]))) <= 202


def test_default_is_raised_to_what_symbols_need(tmp_path):
    symbols = tuple(f"<{i}>" for i in range(800))
    data = generate(OwnText(user_symbols=symbols), tmp_path, num_processes=1)
    encoder = data.dataset.encoders[0]
    assert encoder.pieces(encoder.encode("<799> cat"))[0] == "▁<799>"
    assert encoder.vocab_size > 1059


@pytest.mark.parametrize("vocab_type", ["sentencepiece", "subwords"])
def test_size_that_is_asked_for_is_not_raised(tmp_path, vocab_type):
    task = OwnText(train=chinese(300), vocab_type=vocab_type, vocab_size=1000)
    with pytest.raises(
        ValueError, match=r"at least \d+ .*Received: 1000\. Raise vocab_"
    ):
        generate(task, tmp_path, num_processes=1)


def _with_addresses(pairs, count):
    """Some of the pairs end in an address with base64 of 2,000 characters."""
    draw = random.Random(5)
    junk = [base64.b64encode(draw.randbytes(1500)).decode() for _ in range(count)]
    ends = [f" https://example.org/?data={text}" for text in junk]
    return [
        (source + end, target + end)
        for (source, target), end in zip(pairs, ends, strict=False)
    ] + pairs[count:]


def _learned(pairs, path, limits=None):
    sample = TextSample()
    sample.add_all(pairs)
    sample.learn_vocabulary(330, path, limits=limits)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
@pytest.mark.parametrize("limits", [None, LengthLimits(100), LengthLimits(0, 3.0)])
def test_addresses_are_not_learned(tmp_path, name, limits):
    pairs = sentences(300, 6)
    expected = _learned(pairs[30:], tmp_path / name)
    assert _learned(_with_addresses(pairs, 30), tmp_path / name, limits) == expected


def test_text_of_long_words_alone_is_learned(tmp_path):
    """Sequences of genes, for example."""
    draw = random.Random(7)
    genes = ["".join(draw.choices("ACGT", k=400)) for _ in range(50)]
    _learned(list(zip(genes, genes, strict=True)), tmp_path / "v.model")


def test_chinese_without_spaces_is_learned(tmp_path):
    draw = random.Random(8)
    text = ["".join(draw.choices(MANY[:20], k=500)) for _ in range(50)]
    pairs = [*zip(text[:20], text[:20], strict=True), *sentences(100, 9)]
    with_text = _learned(pairs, tmp_path / "v.model")
    assert with_text != _learned(pairs[20:], tmp_path / "v.model")


@pytest.mark.parametrize("name", ["v.model", "v.subwords"])
@pytest.mark.parametrize(
    ("limits", "dropped"),
    [
        (LengthLimits(max_length=60), [("zebra quagga " * 30, "ZEBRA " * 30)]),
        (LengthLimits(max_length_ratio=4.0), [("zebra quagga okapi " * 3, "Z")]),
    ],
)
def test_dropped_pairs_are_not_learned(tmp_path, name, limits, dropped):
    pairs = sentences(300, 6)
    expected = _learned(pairs, tmp_path / name)
    assert _learned([*pairs, *dropped * 9], tmp_path / name) != expected
    assert _learned([*pairs, *dropped * 9], tmp_path / name, limits) == expected


def test_first_vocabulary_is_learned_from_some_of_much_text(tmp_path, monkeypatch):
    monkeypatch.setattr(learn_vocabulary, "SMALL_TEXT", 20_000)
    pairs = sentences(300, 6)
    expected = _learned(pairs, tmp_path / "v.model")
    long = ("zebra quagga " * 30, "ZEBRA " * 30)
    limits = LengthLimits(max_length=60)
    assert _learned([*pairs, long], tmp_path / "v.model", limits) == expected


@pytest.mark.parametrize("pairs", [40, 60])
def test_character_that_sentencepiece_reserves(tmp_path, pairs):
    """U+2585, in all or in some of the text."""
    text = sentences(60, 1)
    train = [(f"{s} \u2585", f"\u2585 {t}") for s, t in text[:pairs]] + text[pairs:]
    dev = (("cat \u2585 dog", "\u2585"),)
    task = OwnText(train=tuple(train), dev=dev)
    data = generate(task, tmp_path, num_processes=1).dataset
    encoder = data.encoders[0]
    assert len(encoder.encode("cat dog house")) <= 6
    assert encoder.decode(encoder.encode("cat \u2585 dog")) == "cat \u2585 dog"
