"""Word alignments: the rule on literal weights, the words of pieces, and a model's
against NumPy.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.alignment import (
    align,
    pieces_by_word,
    word_pieces,
    words_of_pieces,
)
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer
from t2tlite.tasks.task import Output

# S source pieces, T target pieces, without EOS


class Pieces:
    """A vocabulary whose pieces are written with `▁` for a space; `encode` knows whole
    words.
    """

    unknown = 1

    def __init__(self, *pieces: str, words: dict[str, list[int]] | None = None) -> None:
        self._pieces, self._words = pieces, words or {}

    def encode_batch(self, texts):
        return [self._words.get(text, [-1]) for text in texts]

    def pieces(self, ids):
        return [self._pieces[i] for i in ids]

    def decode(self, ids):
        return "".join(self._pieces[i] for i in ids).replace("▁", " ").removeprefix(" ")


def aligned(weights, source_words, target_words):
    """The alignment, given the word of each piece."""
    return align(weights, pieces_by_word(source_words), pieces_by_word(target_words))


def test_source_pieces_are_summed_and_target_pieces_averaged():
    # the third row decides for 1
    weights = np.array([[0.30, 0.30, 0.40], [0.05, 0.05, 0.90], [0.40, 0.40, 0.20]])
    # means 0.45 and 0.55
    assert aligned(weights, [0, 0, 1], [0, 1, 1]) == [(0, 0), (1, 1)]
    # the first of two equal ones
    assert aligned(weights, [0, 1, 2], [0, 1, 2]) == [(2, 0), (2, 1), (0, 2)]
    assert aligned(weights[:1], [0, 0, 0], [0]) == [(0, 0)]
    for pairs, shown in (([(2, 0), (2, 1), (0, 2)], "2-0 2-1 0-2"), ([], "")):
        assert Output("", 0.0, 0.0, alignment=pairs).as_json()["alignment"] == shown


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁walk", "ing", "▁home"], [0, 0, 1]),
        # a lone space belongs to what follows it
        (["▁", "Ж", "▁", "x", "y"], [0, 0, 1, 1, 1]),
        # as tensor2tensor's subwords
        (["walk", "ed, ", "a", " ", "b."], [0, 0, 1, 2, 2]),
        (["a", " b c", "d"], [0, 2, 2]),  # a piece of several words belongs to its last
        ([], []),
    ],
)
def test_the_words_of_pieces(pieces, words):
    encoder = Pieces(*pieces)
    text = encoder.decode(range(len(pieces)))
    assert words_of_pieces(encoder, range(len(pieces)), text) == words


def test_words_that_the_vocabulary_lacks_are_counted():
    """One that it writes as two stays one, and several as one stay several."""
    encoder = Pieces("▁a", "▁⁇", "▁b", "▁c", words={"a☃b": [0, 1, 2], "c": [3]})
    assert words_of_pieces(encoder, [0, 1, 2, 3], "a☃b c") == [0, 0, 0, 1]
    encoder = Pieces("▁a", "▁⁇", "▁b")
    assert words_of_pieces(encoder, [0, 1, 2], "a☃b") == [0, 0, 0]
    encoder = Pieces("▁a", "⁇", words={"a": [0], "x": [1], "y": [1]})
    assert words_of_pieces(encoder, [0, 1, 0], "a x y a") == [0, 1, 3]


SENTENCES = ["red cat sees dog", "", "horse bites bird today", "fish likes mouse"]


def word_starts(encoder, ids):
    """The number of the word of each piece."""
    starts = [piece.startswith("▁") for piece in encoder.pieces(ids)]
    return np.cumsum(starts) - 1


def test_a_models_alignments_equal_numpys(model):
    """From the attention of each sentence by itself, EOS included and then left out."""
    n_best = model.decode(SENTENCES, model.options(return_beams=2))
    actual = model.align(SENTENCES, n_best)
    assert actual[1] == [[]]  # the blank sentence
    for sentence, outputs, alignments in zip(SENTENCES, n_best, actual, strict=True):
        for output, alignment in zip(outputs, alignments, strict=True):
            if not sentence:
                continue
            source_ids = model.source_encoder.encode(sentence)
            inputs = np.array([[*source_ids, 1]], np.int32)
            targets = np.array([[*output.ids, 1]], np.int32)
            layers = model.engine.attention(inputs, targets).cross
            cross = np.mean([np.asarray(layer)[0].mean(0) for layer in layers], 0)
            source_words = word_starts(model.source_encoder, source_ids)
            target_words = word_starts(model.target_encoder, output.ids)
            expected = []
            for word in range(len(output.text.split())):
                row = cross[:-1, :-1][target_words == word].mean(0)
                expected.append((int(np.argmax(np.bincount(source_words, row))), word))
            assert alignment == expected


def test_neither_full_stops_nor_a_tag_are_aligned(model, monkeypatch):
    """The full stop of `B.` attends to that of `c.`; the tag is the first word of the
    source.
    """
    weights = np.array(
        [
            [0.7, 0.1, 0.1, 0.1],
            [0.1, 0.1, 0.7, 0.1],
            [0.1, 0.5, 0.2, 0.2],
            [0.0, 0.0, 0.1, 0.9],
        ]
    )
    engine = SimpleNamespace(
        max_positions=None, cross_attention=lambda *_: iter([(0, weights)])
    )
    monkeypatch.setattr(model, "engine", engine)
    words = {"a b c.": [0, 1, 2, 3], "a": [0], "b": [1], "c.": [2, 3]}
    monkeypatch.setattr(
        model, "source_encoder", Pieces("▁a", "▁b", "▁c", ".", words=words)
    )
    words = {"A": [0], "C": [1], "B.": [2, 3]}
    monkeypatch.setattr(
        model, "target_encoder", Pieces("▁A", "▁C", "▁B", ".", words=words)
    )
    n_best = [[Output("A C B.", -1.0, -1.0, (0, 1, 2, 3))]]
    assert model.align(["a b c."], n_best) == [[[(0, 0), (2, 1), (1, 2)]]]
    # A is as near to b as to c
    assert model.align(["a b c."], n_best, tag_words=1) == [[[(0, 0), (1, 1), (0, 2)]]]
    assert model.align(["a b c."], n_best, tag_words=3) == [[[]]]


def test_word_of_punctuation_alone_is_aligned():
    words = {"ab.": [0, 1, 2], "--": [3, 4]}
    encoder = Pieces("▁a", "b", ".", "▁-", "-", words=words)
    counted = word_pieces(encoder, range(5), "ab. --")
    assert counted == {0: [0, 1], 1: [3, 4]}


def test_an_empty_translation_has_no_alignment(model):
    assert model.align(["red cat"], [[Output("", -1.0, -1.0)]]) == [[[]]]


def test_an_output_of_a_space_alone_has_no_alignment():
    """Its piece has nothing to be aligned to, and must not be counted as a word."""
    weights = np.ones((1, 1))
    no_words = word_pieces(Pieces("▁"), [0], "")
    assert align(weights, {0: [0]}, no_words) == []


def test_target_that_fills_all_learned_positions_is_aligned():
    hparams = HParams(
        hidden_size=16,
        filter_size=16,
        num_hidden_layers=1,
        num_heads=2,
        pos="emb",
        max_length=4,
    )
    model = Transformer.from_hparams(hparams, 20, 20)
    engine = TensorFlowEngine(model)
    source, target = [5, 6, 7], list(range(3, 3 + model.hparams.max_positions))
    options = DecodeHParams()
    ((number, weights),) = engine.cross_attention([source], [target], options)
    (cross,) = model.attention(np.array([[*source, 1]]), np.array([target])).cross
    np.testing.assert_allclose(weights, np.asarray(cross)[0].mean(0)[:, :-1], atol=1e-6)
    assert (number, weights.shape) == (0, (model.hparams.max_positions, 3))
