"""Learning a subword vocabulary: tensor2tensor's own files, a slow reference, clear
errors.
"""

import json
import random
from collections import Counter, defaultdict

import pytest
from sample_texts import SENTENCES

from t2tlite.vocabularies import subword_builder
from t2tlite.vocabularies.subword_builder import (
    build_subwords,
    count_tokens,
    learn_subtokens,
    learn_to_size,
)
from t2tlite.vocabularies.subword_encoder import SubwordEncoder

# The escape characters, those of the marks, and those of the sentences.
CHARACTERS = (
    set("\\_u;0123456789")
    | set("<pad><EOS>")
    | {c for sentence in SENTENCES for c in sentence}
)


@pytest.fixture(scope="session")
def corpus(fixtures):
    return (
        (fixtures / "tensor2tensor/subword_corpus.txt")
        .read_text(encoding="utf-8")
        .removesuffix("\n")
        .split("\n")
    )


@pytest.mark.parametrize("target", [200, 1000])
def test_files_are_tensor2tensors(fixtures, corpus, tmp_path, target):
    build_subwords(iter(corpus), target, tmp_path / "v.subwords")
    expected = fixtures / f"tensor2tensor/subword_built_{target}_None.subwords"
    assert (tmp_path / "v.subwords").read_bytes() == expected.read_bytes()
    # no temporary file
    assert [path.name for path in tmp_path.iterdir()] == ["v.subwords"]


@pytest.mark.parametrize("min_count", [1, 3, 10, 50])
def test_subtokens_are_tensor2tensors(fixtures, corpus, min_count):
    built = json.loads((fixtures / "tensor2tensor/subword_built.json").read_bytes())[
        "built"
    ]
    assert (
        learn_subtokens(count_tokens(corpus), min_count)
        == built[f"min_count{min_count}"]["subtokens"]
    )


def test_multi30k_vocabulary_is_tensor2tensors(shared):
    """The vocabulary of a model that tensor2tensor trained; its search ended at a
    minimum count of 140.
    """
    name = "mt_prenorm/vocab.translate_ende_multi30k_small.2048.subwords"
    expected = (
        (shared / "t2t/checkpoints" / name)
        .read_text(encoding="utf-8")
        .removesuffix("\n")
        .split("\n")
    )
    files = [shared / f"data/multi30k/train.{language}" for language in ("en", "de")]
    lines = (
        line.strip()
        for file in files
        for line in file.read_text(encoding="utf-8").split("\n")
    )
    assert [
        f"'{subtoken}'" for subtoken in learn_subtokens(count_tokens(lines), 140)
    ] == expected


def reference(counts, min_count):
    """tensor2tensor's procedure, step by step, for tokens of small letters."""
    alphabet = set("\\_u;0123456789<pad><EOS>") | {c for token in counts for c in token}
    subtokens = set(alphabet)
    for _ in range(4):
        occurrences = defaultdict(int)
        for token, count in counts.items():
            escaped, start = token + "_", 0
            while start < len(escaped):
                for end in range(start + 1, len(escaped) + 1):
                    occurrences[escaped[start:end]] += count
                start = max(
                    end
                    for end in range(start + 1, len(escaped) + 1)
                    if escaped[start:end] in subtokens
                )
        taken = []
        for candidate in sorted(occurrences, key=len, reverse=True):
            if len(candidate) > 1 and occurrences[candidate] >= min_count:
                taken.append((occurrences[candidate], candidate))
                for end in range(1, len(candidate)):
                    occurrences[candidate[:end]] -= occurrences[candidate]
        taken += [(occurrences[character], character) for character in alphabet]
        ordered = [
            "<pad>_",
            "<EOS>_",
            *(subtoken for _, subtoken in sorted(taken, reverse=True)),
        ]
        subtokens = set(ordered)
    return ordered


def test_random_words_against_the_procedure_step_by_step():
    draw = random.Random(1)
    for min_count in (1, 2, 5, 20):
        words = [
            "".join(draw.choices("aabcde", k=draw.randint(1, 9))) for _ in range(150)
        ]
        counts = Counter(draw.choices(words, k=400))

        assert learn_subtokens(counts, min_count) == reference(counts, min_count)


# the size for each minimum count, the size wanted, the minimum count chosen, and all
# that are tried
SEARCHES = {
    "bisects": (
        lambda count: 1000 // count,
        100,
        10,
        [500, 250, 125, 62, 31, 15, 7, 11, 9, 10],
    ),
    "ends within one percent": (
        lambda count: {250: 1009}.get(count, 500),
        1000,
        250,
        [500, 250],
    ),
    "one percent is not within": (
        lambda count: {250: 1010}.get(count, 500),
        1000,
        250,
        [500, 250, 375, 312, 281, 265, 257, 253, 251, 250],
    ),
    "ends at the smallest count": (
        lambda count: 10,
        100,
        500,
        [500, 250, 125, 62, 31, 15, 7, 3, 1],
    ),
    "takes the first of two equally near": (
        lambda count: {500: 90, 250: 110}.get(count, 1000),
        100,
        500,
        [500, 250, 375, 437, 468, 484, 492, 496, 498, 499],
    ),
}


@pytest.mark.parametrize(
    ("size_of", "target", "chosen", "expected"), SEARCHES.values(), ids=SEARCHES
)
def test_search_for_the_minimum_count(monkeypatch, size_of, target, chosen, expected):
    tried = []

    def learn(counts, min_count):
        tried.append(min_count)
        return [min_count] * size_of(min_count)

    monkeypatch.setattr(subword_builder, "learn_subtokens", learn)
    assert learn_to_size({}, target) == [chosen] * size_of(chosen)
    assert tried == expected


def test_what_is_built_can_be_used(tmp_path):
    build_subwords(SENTENCES, 120, tmp_path / "v.subwords")
    encoder = SubwordEncoder(tmp_path / "v.subwords")
    assert encoder.pieces([0, 1]) == ["<pad>_", "<EOS>_"]
    assert set(encoder.pieces(range(encoder.vocab_size))) >= CHARACTERS
    assert [encoder.decode(ids) for ids in encoder.encode_batch(SENTENCES)] == SENTENCES


def test_line_breaks_in_text(tmp_path):
    """No line of the file can hold them, so they are spelt as numbers."""
    text = ["a\nb", "a\rb\r\n", "'", '"', "\x85\u2028", " ", "a_b\\"]
    build_subwords(text * 9, 60, tmp_path / "v.subwords")
    encoder = SubwordEncoder(tmp_path / "v.subwords")
    assert encoder.vocab_size == (tmp_path / "v.subwords").read_bytes().count(b"\n")
    assert len(set(encoder.pieces(range(encoder.vocab_size)))) == encoder.vocab_size
    assert [encoder.decode(encoder.token_ids(line)) for line in text] == text
    assert encoder.pieces(encoder.encode("a\nb"))[1].startswith("\\1")


def test_target_too_small_names_the_smallest(tmp_path):
    smallest = len(CHARACTERS) + 2
    with pytest.raises(
        ValueError,
        match=(
            rf"at least {smallest} for this text.*Received: {smallest - 1}\..*about"
            r" that"
        ),
    ):
        build_subwords(SENTENCES, smallest - 1, tmp_path / "v.subwords")
    assert list(tmp_path.iterdir()) == []
    build_subwords(SENTENCES, smallest, tmp_path / "v.subwords")
    assert SubwordEncoder(tmp_path / "v.subwords").vocab_size >= smallest
