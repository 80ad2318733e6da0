"""What a vocabulary is learned from, and how large it is by default."""

import base64
import dataclasses
import itertools
import json
import random
import re

import numpy as np
import pytest
from tiny_task import TinyTask, sentences

from t2tlite.data import learn_vocabulary
from t2tlite.data.generate import generate
from t2tlite.data.learn_vocabulary import TextSample, default_vocab_size
from t2tlite.data.problem import Problem
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece

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


def test_default_is_raised_to_what_the_characters_need(tmp_path):
    train = chinese(300)
    data = generate(OwnText(train=train), tmp_path, num_processes=1)
    characters = set("".join(text for pair in train for text in pair))
    encoder = data.dataset.encoders[0]
    assert len(characters) > 1000
    assert encoder.vocab_size > len(characters)
    # beside the characters, there is room for words
    assert len(encoder.encode("cat mat house")) < len("cat mat house") / 2
    # none is spelled in bytes
    assert len(encoder.encode("".join(MANY[:200]))) <= 202


def _with_addresses(pairs, count):
    """Some of the pairs end in an address with base64 of 2,000 characters."""
    draw = random.Random(5)
    junk = [base64.b64encode(draw.randbytes(1500)).decode() for _ in range(count)]
    ends = [f" https://example.org/?data={text}" for text in junk]
    return [
        (source + end, target + end)
        for (source, target), end in zip(pairs, ends, strict=False)
    ] + pairs[count:]


def _learned(pairs, path, **limits):
    problem = Problem(vocab_size=330, **limits)
    learn_vocabulary.learn_vocabulary(problem, pairs, 330, (), path)
    return path.read_bytes()


@pytest.mark.parametrize("limits", [{}, {"max_length": 100}])
def test_addresses_are_not_learned(tmp_path, limits):
    path = tmp_path / "v.model"
    pairs = sentences(300, 6)
    expected = _learned(pairs[30:], path)
    assert _learned(_with_addresses(pairs, 30), path, **limits) == expected


def test_text_of_long_words_alone_is_learned(tmp_path):
    """Sequences of genes, for example."""
    draw = random.Random(7)
    genes = ["".join(draw.choices("ACGT", k=400)) for _ in range(50)]
    _learned(list(zip(genes, genes, strict=True)), tmp_path / "v.model")


def test_pairs_with_too_many_words_are_not_learned(tmp_path):
    path = tmp_path / "v.model"
    pairs = sentences(300, 6)
    expected = _learned(pairs, path)
    dropped = [("zebra quagga " * 30, "ZEBRA " * 30)] * 9
    assert _learned([*pairs, *dropped], path) != expected
    assert _learned([*pairs, *dropped], path, max_length=60) == expected
    joined = tuple(" ".join(side) for side in zip(*pairs, strict=True))
    assert _learned([joined], path, max_length=60)


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


@dataclasses.dataclass(frozen=True)
class Ample(TinyTask):
    """A text that is too small for the default size of its vocabulary."""

    train: tuple[tuple[str, str], ...] = TinyTask().train[:40]
    vocab_size: int = 32000


@dataclasses.dataclass(frozen=True)
class ByPairs(Problem):
    """A problem that says nothing about its vocabulary."""

    def pairs(self, split, tmp_dir):
        draw = random.Random(split)
        for _ in range(400):
            text = "".join(draw.choices("abcdefghij ", k=60))
            yield text, text[::-1]


@pytest.fixture(scope="module")
def bounds(tmp_path_factory):
    """The smallest and the largest vocabulary of that text, and the latter's bytes."""
    path = tmp_path_factory.mktemp("bounds") / "v.model"
    text = list(itertools.chain.from_iterable(Ample().train))
    with pytest.raises(ValueError, match="at most") as error:
        train_sentencepiece(text, 9999, path)
    largest = int(re.search(r"at most (\d+)", str(error.value))[1])
    train_sentencepiece(text, largest, path)
    characters = set("".join(text).replace(" ", "▁"))
    return 259 + len(characters), largest, path.read_bytes()


@pytest.mark.parametrize("size", [32000, 0])
def test_too_little_text_for_the_default_gives_the_largest(tmp_path, bounds, size):
    _, largest, content = bounds
    data = generate(Ample(vocab_size=size), tmp_path, num_processes=1)
    assert f"  {largest} pieces\n" in str(data)
    folder = data.dataset.folder
    assert (folder / "vocab.model").read_bytes() == content
    manifest = json.loads((folder / "manifest.json").read_text())
    assert manifest["options"]["vocab_size"] == size
    assert manifest["vocabulary"]["size"] == largest
    assert generate(Ample(vocab_size=size), tmp_path).already_there


def test_a_problem_has_a_vocabulary_by_its_number_of_pairs(tmp_path):
    data = generate(ByPairs(), tmp_path, num_processes=1)
    assert "1,000 pieces\n" in str(data)


@pytest.mark.parametrize("size", [1, 40, 8000])
def test_a_size_that_was_asked_for_is_refused_with_its_bound(tmp_path, bounds, size):
    smallest, largest, _ = bounds
    message = (
        f"={size}, which must be at most {largest} for this text. Lower vocab_size"
    )
    if size < smallest:
        message = f"={size}, which must be at least {smallest} for this text: .*Raise"
    with pytest.raises(ValueError, match=message):
        generate(Ample(vocab_size=size), tmp_path, num_processes=1)


@pytest.mark.parametrize(
    ("pairs", "pieces"),
    [(1, 1000), (1599, 1000), (1600, 2000), (29_000, 8000), (10**9, 32_000)],
)
def test_default_vocabulary_grows_with_the_root_of_the_pairs(pairs, pieces):
    assert default_vocab_size(pairs) == pieces


@pytest.fixture(scope="module", params=["sentencepiece", "words"])
def with_symbols(tmp_path_factory, request):
    """Data whose vocabulary has two symbols of the user."""
    task = TinyTask(user_symbols=("<2de>", "<BT>"), vocab_type=request.param)
    folder = tmp_path_factory.mktemp("with_symbols")
    return generate(task, folder, num_processes=1).dataset


def test_symbols_of_the_user_are_pieces(tmp_path, with_symbols):
    encoder = with_symbols.encoders[0]
    assert encoder.pieces(encoder.encode("<2de> <BT> a"))[:2] == ["▁<2de>", "▁<BT>"]
    vocab_file = (str(with_symbols.folder / "vocab.model"),)
    task = TinyTask(user_symbols=("<BT>",), vocab_file=vocab_file)
    again = generate(task, tmp_path, num_processes=1).dataset
    assert again.manifest.vocabulary.sha256 == with_symbols.manifest.vocabulary.sha256


@pytest.mark.parametrize(
    ("symbols", "is_given", "message"),
    [
        (("<2fr>",), True, r"pieces of vocab_file .*Received: '<2fr>'\."),
        (("<2 de>",), False, r"must differ, without white .*Received: '<2 de>'"),
        (("<a>", "<a>"), False, r"user_symbols must differ, .*Received: '<a>'"),
    ],
)
def test_symbols_that_cannot_be_pieces(
    tmp_path, with_symbols, symbols, is_given, message
):
    file = str(with_symbols.folder / "vocab.model")
    task = TinyTask(user_symbols=symbols, vocab_file=(file,) * is_given)
    with pytest.raises(ValueError, match=message):
        generate(task, tmp_path, num_processes=1)
    assert list(tmp_path.iterdir()) == []


def test_sample_is_bounded_uniform_and_repeatable():
    def sample(count):
        kept = TextSample(limit=100 * 122)  # room for 100 pairs of 1 + 1 characters
        kept.add((chr(33 + i), "x") for i in range(count))
        return [ord(source) - 33 for source, _ in kept.pairs]

    kept = sample(50_000)
    assert 25 < len(kept) <= 100
    assert kept == sample(50_000)
    # from everywhere: the standard error is under 2,900
    assert 20_000 < np.mean(kept) < 30_000
    assert sample(80) == list(range(80))
