"""The constraint of brackets allows exactly the sequences that are trees over the
words, of all sequences there are.
"""

import itertools
from collections.abc import Iterator

import numpy as np
import pytest

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding import constraints as module
from t2tlite.decoding.constraints import bracket_constraint
from t2tlite.decoding.engine import Sentence
from t2tlite.decoding.slots import FORBIDDEN
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer
from t2tlite.tasks.bracketing import CLOSING, NONE, OPENING, PUNCTUATION, TAG
from t2tlite.tasks.parsing import ParsingTask
from t2tlite.trees.linearise import NORMALISED, TAGS, WORDS
from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)

PAD, EOS = 0, 1
# A vocabulary of eight tokens: PAD, EOS, two kinds of brackets, and two others.
OPEN_A, CLOSE_A, OPEN_B, CLOSE_B, X, DOT = range(2, 8)
CLASSES = np.array(
    [
        [NONE, NONE, OPENING, CLOSING, OPENING, CLOSING, TAG, PUNCTUATION],
        [PAD, PAD, CLOSE_A, PAD, CLOSE_B, PAD, PAD, PAD],
    ],
    np.int32,
)
OPENED_BY = {CLOSE_A: OPEN_A, CLOSE_B: OPEN_B}


def is_tree(tokens: tuple[int, ...], words: list[list[set[int]]], nested: int) -> bool:
    """Whether a sequence without its EOS is a tree over words, each of which is a list
    of what its tokens may be.
    """
    expected = [(choices, i > 0) for word in words for i, choices in enumerate(word)]
    # each open bracket, and the tokens of words before it
    stack: list[tuple[int, int]] = []
    at = row = 0
    for token in tokens:
        inside = at < len(expected) and expected[at][1]
        row = row + 1 if token in (OPEN_A, OPEN_B) else 0
        if token in OPENED_BY:
            if (
                inside
                or not stack
                or stack[-1][0] != OPENED_BY[token]
                or stack.pop()[1] == at
            ):
                return False
        elif row:
            if inside or row > nested or at == len(expected):
                return False
            stack.append((token, at))
        elif at == len(expected) or token not in expected[at][0]:
            return False
        else:
            at += 1
    return not stack and at == len(expected)


def decoded(constrain, max_length: int) -> Iterator[tuple[int, ...]]:
    """Every sequence that the constraint lets a search find for sentence 1 of 2."""
    prefixes: list[tuple[int, ...]] = [()]
    for step in range(max_length):
        ids: np.ndarray = np.zeros((1, len(prefixes), max_length), np.int32)
        ids[0, :, :step] = prefixes
        logits = np.zeros((1, len(prefixes), 8), np.float32)
        logits = constrain(logits, ids, step, np.array([1], np.int32))
        allowed = np.asarray(logits)[0] > FORBIDDEN / 2
        assert allowed.any(axis=1).all()  # a sequence can always be completed
        continued = []
        for prefix, row in zip(prefixes, allowed, strict=True):
            if row[EOS]:
                yield prefix
            continued += [(*prefix, token) for token in np.flatnonzero(row)]
        prefixes = [tokens for tokens in continued if tokens[-1] != EOS]
        if not prefixes:
            return
    raise AssertionError("a sequence within its maximum length must end")


@pytest.mark.parametrize("max_length", [3, 5, 6, 7])
@pytest.mark.parametrize(
    ("words", "tokens", "choices"),
    [
        ([[{X}], [{DOT}]], [X, DOT], [1, 1]),
        ([[{X}, {DOT}]], [X, DOT], [1, 0]),  # one word of two tokens
        ([[{X, DOT}], [{DOT}]], [X, DOT], [1 + 2, 1]),  # the first may be punctuation
        ([[{X}]], [EOS], [1 + 4]),  # any tag
    ],
)
def test_exactly_the_trees_are_allowed(words, tokens, choices, max_length, monkeypatch):
    monkeypatch.setattr(module, "MAX_NESTED", 2)
    width = len(tokens) + 2
    # the first sentence is another
    tokens = np.array([[EOS] * width, [*tokens, EOS, 0]], np.int32)
    choices = np.array([[EOS] * width, [*choices, 1, -1]], np.int32)
    limits = np.array([1, max_length], np.int32)
    constrain = bracket_constraint(CLASSES, tokens, choices, limits)
    allowed = list(decoded(constrain, max_length))
    expected = set()
    for length in range(max_length):
        for row in itertools.product(range(2, 8), repeat=length):
            if is_tree(row, words, nested=2):
                expected.add(row)
    assert len(allowed) == len(set(allowed))
    assert set(allowed) == expected != set()


def test_an_unexpected_word_is_not_put_off():
    """The word that is due is improbable, and the model is sure of another, which is
    not allowed.
    """
    logits: np.ndarray = np.zeros((1, 1, 8), np.float32)
    logits[0, 0, [OPEN_A, X, DOT]] = 5.0, -20.0, 9.0
    sentence = np.array([[X, EOS]], np.int32), np.array([[1, 1]], np.int32)
    constrain = bracket_constraint(CLASSES, *sentence, np.array([9], np.int32))
    ids = np.zeros((1, 1, 9), np.int32)
    allowed = constrain(logits, ids, 0, np.array([0], np.int32))
    allowed = np.asarray(allowed)[0, 0]
    assert allowed[X] == pytest.approx(9.0 - module.UNEXPECTED, abs=1e-3)
    assert allowed[OPEN_A] == 5.0
    assert (allowed[[0, EOS, CLOSE_A, CLOSE_B, DOT]] < FORBIDDEN / 2).all()


SENTENCE = "The cat -- a (tabby) -- sat on 3 mats , purring - loudly .".split()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    symbols = [
        f"{bracket}{label}" for bracket in "()" for label in ("S", "NP", "VP", "PP")
    ]
    text = [
        "XX XX , . : DT NN VBD IN CD JJ VBG RB the cat a tabby sat on mats purring"
        " loudly The 3 -"
    ] * 30
    path = tmp_path_factory.mktemp("vocabulary") / "vocab.model"
    train_sentencepiece(text, 400, path, symbols)
    return SentencePieceEncoder(path)


@pytest.fixture(scope="module")
def engine(encoder):
    """A model with random weights, whose sequences are noise."""
    hparams = HParams().override(
        "hidden_size=16,filter_size=16,num_heads=2,num_hidden_layers=1"
    )
    model = Transformer.from_hparams(hparams, encoder.vocab_size, encoder.vocab_size)
    random = np.random.default_rng(1)
    for weights in model.trainable_variables:
        weights.assign(random.normal(size=weights.shape) * 0.5)
    return TensorFlowEngine(model, jit_compile=False)


@pytest.mark.parametrize("form", [NORMALISED, TAGS, WORDS])
@pytest.mark.parametrize(
    "options",
    [
        pytest.param("beam_size=1", marks=pytest.mark.slow),
        "beam_size=5,return_beams=5",
        "sampling_method=random,return_beams=3",
    ],
)
def test_sequences_of_a_random_model_need_no_repair(form, options, encoder, engine):
    sentences = [SENTENCE, SENTENCE[:1], SENTENCE[3:9], ["''", "'", "...", "?"]]
    task = ParsingTask(form)
    constrained = []
    free = []
    for words in sentences:
        source = " ".join(words)
        ids = encoder.encode(source)
        free.append(Sentence(ids))
        constrained.append(Sentence(ids, constraint=task.constraint(source, encoder)))
    chosen = DecodeHParams().override(f"{options},extra_length=40")
    decoded = engine.decode(constrained, chosen)
    for words, hypotheses in zip(sentences, decoded, strict=True):
        for hypothesis in hypotheses:
            sequence = encoder.text(hypothesis.ids)
            assert not form.read(sequence, words).repairs, (words, sequence)
    repairs = 0
    for words, hypotheses in zip(sentences, engine.decode(free, chosen), strict=True):
        sequence = encoder.text(hypotheses[0].ids)
        repairs += len(form.read(sequence, words).repairs)
    assert repairs
