"""Vocabularies of both kinds: any text there and back, any ids, any file."""

import pickle

import pytest
from fuzzing import TEXTS, damaged_bytes, survives
from hypothesis import given
from hypothesis import strategies as st
from tiny_task import write_subwords

from t2tlite.vocabularies.encoders import open_encoder
from t2tlite.vocabularies.normalisation import normalise
from t2tlite.vocabularies.sentencepiece_encoder import train_sentencepiece

TRAINING = [
    "The cat sat on the mat.",
    "Ein Hund läuft über 12 Brücken, schnell!",
    "naïve façade — “quoted” 北京 2017",
]
KINDS = ("vocab.model", "vocab.subwords")


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("vocabularies")
    train_sentencepiece(TRAINING * 3, 330, folder / KINDS[0])
    write_subwords(folder / KINDS[1])
    return {kind: open_encoder(folder / kind) for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@given(texts=st.lists(st.one_of(TEXTS, st.text()), max_size=4))
def test_any_text_survives(kind, vocabularies, texts):
    encoder = vocabularies[kind]
    for text, ids in zip(texts, encoder.encode_batch(texts), strict=True):
        expected = normalise(text) if kind == "vocab.model" else text.strip()
        assert encoder.decode(ids) == expected
        assert encoder.encode(text) == ids
        assert len(encoder.pieces(ids)) == len(ids)


@pytest.mark.parametrize("kind", KINDS)
@given(
    text=st.lists(
        st.one_of(st.characters(), st.integers(0xD800, 0xDFFF).map(chr)), min_size=1
    ).map("".join)
)
def test_text_with_lone_surrogates(kind, vocabularies, text):
    survives(lambda: vocabularies[kind].encode(text))


@pytest.mark.parametrize("kind", KINDS)
@given(
    ids=st.lists(
        st.one_of(
            st.integers(0, 110), st.integers(), st.sampled_from([2**31, 2**63, -1])
        )
    )
)
def test_any_ids(kind, vocabularies, ids):
    encoder = vocabularies[kind]
    texts = []
    if survives(lambda: texts.append(encoder.decode(ids))):
        texts[0].encode()
    survives(lambda: encoder.pieces(ids))


@pytest.mark.parametrize("kind", KINDS)
@given(data=st.data())
def test_a_damaged_file(kind, vocabularies, data, tmp_path):
    path = tmp_path / f"damaged.{kind}"
    path.write_bytes(data.draw(damaged_bytes(vocabularies[kind].path.read_bytes())))

    def use() -> None:
        encoder = pickle.loads(pickle.dumps(open_encoder(path)))
        ids = encoder.encode(TRAINING[1])
        encoder.decode(ids).encode()
        encoder.decode(range(min(encoder.vocab_size, 1000))).encode()
        encoder.pieces(ids)

    survives(use)


@given(
    text=st.one_of(TEXTS, st.text()),
    lines=st.lists(st.text(max_size=6), min_size=1, max_size=20),
)
def test_any_subword_file(text, lines, tmp_path):
    path = tmp_path / "any.subwords"
    quoted = (f"'{line}'" if number % 2 else line for number, line in enumerate(lines))
    path.write_text(
        "\n".join(["<pad>_", "<EOS>_", "a_", *"\\_u;0123456789", *quoted]),
        encoding="utf-8",
    )

    def use() -> None:
        encoder = open_encoder(path)
        assert encoder.decode(encoder.encode(text)) == text.strip()

    survives(use)


@given(
    texts=st.lists(st.one_of(TEXTS, st.text()), max_size=4),
    size=st.one_of(st.integers(-1, 400), st.sampled_from([10**6, 2**31, -(2**40)])),
)
def test_learned_from_any_text(texts, size, tmp_path):
    if survives(lambda: train_sentencepiece(texts, size, tmp_path / "learned.model")):
        encoder = open_encoder(tmp_path / "learned.model")
        for text in texts:
            assert encoder.decode(encoder.encode(text)) == normalise(text)
