"""A CTranslate2 model computes what the Transformer that it was made of does, whatever
that one's hparams are.
"""

import ctranslate2
import numpy as np
import pytest
from numpy_softmax import log_softmax
from tiny_task import sentences

from t2tlite.config import DecodeHParams, HParams
from t2tlite.decoding.engine import Sentence
from t2tlite.models.transformer import Transformer
from t2tlite.programs.export.ctranslate2_engine import (
    QUANTIZATIONS,
    CTranslate2Engine,
    open_translator,
)
from t2tlite.programs.export.ctranslate2_spec import convert
from t2tlite.vocabularies.sentencepiece_encoder import (
    SentencePieceEncoder,
    train_sentencepiece,
)
from t2tlite.vocabularies.subword_encoder import SubwordEncoder

SMALL = HParams(hidden_size=32, filter_size=48, num_hidden_layers=2, num_heads=2)
PRE_NORM = "layer_preprocess_sequence=n,layer_postprocess_sequence=da"
UNSHARED = "shared_embedding_and_softmax_weights=false"
SPACE = "use_target_space_embedding=true"
LEARNED = "pos=emb,max_length=20"
KEYS, VALUES = "attention_key_channels", "attention_value_channels"
MODELS = {
    "the paper's": "",
    "tensor2tensor's": f"{PRE_NORM},{SPACE},pos=timing_halves",
    "learned positions": LEARNED,
    "no positions, a target space": f"pos=none,{SPACE}",
    "unshared": UNSHARED,
    "two vocabularies": f"{UNSHARED},{PRE_NORM},{LEARNED},{SPACE}",
    "a deep encoder": "num_encoder_layers=3,num_decoder_layers=1",
    "a deep decoder": f"{PRE_NORM},num_encoder_layers=1,num_decoder_layers=3",
    "a large epsilon": "norm_epsilon=0.5",
    "small keys": f"{KEYS}=8",
    "small values": f"{VALUES}=8",
    "large keys": f"{KEYS}=64",
    "large values, small keys": f"{VALUES}=48,{KEYS}=16",
    "heads that do not divide the width": f"num_heads=3,{KEYS}=9,{VALUES}=30",
}


@pytest.fixture(scope="module")
def vocabularies(tmp_path_factory):
    """Two SentencePiece vocabularies of different sizes."""
    folder = tmp_path_factory.mktemp("vocabularies")
    actual = []
    for name, size in (("one", 330), ("other", 310)):
        path = folder / f"{name}.model"
        train_sentencepiece(
            [text for pair in sentences(200, 1) for text in pair], size, path
        )
        actual.append(SentencePieceEncoder(path))
    return actual


def random_model(encoders, changes="") -> Transformer:
    """A model with random weights, none at its initial value, so that attention is far
    from even.
    """
    sizes = [encoder.vocab_size for encoder in encoders]
    model = Transformer.from_hparams(SMALL.override(changes), *sizes)
    draw = np.random.default_rng(3)
    for variable in model.trainable_variables:
        scale = 0.2 if len(variable.shape) == 2 else 0.1
        values = draw.normal(scale=scale, size=variable.shape).astype(np.float32)
        variable.assign(values + variable.path.endswith("gamma"))
    return model


def weights(model):
    return {variable.path: variable.numpy() for variable in model.trainable_variables}


def engine_of(model, encoders, folder, quantization="float32") -> CTranslate2Engine:
    convert(model.hparams, weights(model), encoders, folder, quantization)
    return CTranslate2Engine(
        open_translator(folder, quantization),
        encoders,
        quantization,
        model.hparams.max_positions,
        model.count_params(),
        lambda: model,
    )


SOURCES = [[5, 9, 300, 17], [28, 12], []]
# a padding token in the middle embeds to zeros
TARGETS = [[6, 301, 2, 19, 44], [], [3, 0, 25]]


def scores_by_logits(model, sources=SOURCES, targets=TARGETS) -> list[float]:
    """The log-probability of each target with its EOS, by the model's logits."""
    inputs, labels = (
        np.array([[*row, 1, 0, 0, 0, 0, 0][:6] for row in rows])
        for rows in (sources, targets)
    )
    log_probs = log_softmax(model(inputs, labels))
    chosen = np.take_along_axis(log_probs, labels[:, :, None], axis=2)[:, :, 0]
    return [
        row[: len(target) + 1].sum()
        for row, target in zip(chosen, targets, strict=True)
    ]


@pytest.mark.parametrize("name", MODELS)
def test_log_probabilities_are_the_models(vocabularies, tmp_path, name):
    two = name == "two vocabularies"
    encoders = vocabularies if two else [vocabularies[0]] * 2
    model = random_model(encoders, MODELS[name])
    engine = engine_of(model, encoders, tmp_path)
    options = DecodeHParams(beam_size=1, extra_length=3)
    assert engine.score(SOURCES, TARGETS, options) == pytest.approx(
        scores_by_logits(model), abs=2e-4
    )
    n_best = engine.decode([Sentence(ids) for ids in SOURCES[:2]], options)
    for source, [actual] in zip(SOURCES[:2], n_best, strict=True):
        # greedy search chooses the most probable token at each position
        target = [*actual.ids, 1][: len(source) + 4]
        chosen = np.argmax(model(np.array([[*source, 1]]), np.array([target])), axis=2)[
            0
        ]
        assert chosen.tolist() == target


@pytest.mark.parametrize("quantization", QUANTIZATIONS)
def test_quantised_models_are_nearly_the_same(vocabularies, tmp_path, quantization):
    """Read again in float32, which a CPU computes whatever the weights were stored
    in.
    """
    encoders = [vocabularies[0]] * 2
    model = random_model(encoders, "hidden_size=64")
    convert(model.hparams, weights(model), encoders, tmp_path, quantization)
    translator = ctranslate2.Translator(str(tmp_path), compute_type="float32")
    engine = CTranslate2Engine(translator, encoders, quantization, None, 0, dict)
    actual = engine.score(SOURCES, TARGETS, DecodeHParams())
    assert actual == pytest.approx(
        scores_by_logits(model), abs=2e-4 if quantization == "float32" else 0.5
    )


def test_subwords_of_tensor2tensor(tmp_path, fixtures):
    """A vocabulary without an unknown token, and with pieces that are no words of
    CTranslate2's.
    """
    path = next((fixtures / "tensor2tensor").glob("*.subwords"), None) or next(
        fixtures.rglob("*.subwords")
    )
    encoders = [SubwordEncoder(path)] * 2
    model = random_model(encoders, "hidden_size=8,filter_size=8")
    engine = engine_of(model, encoders, tmp_path)
    options = DecodeHParams(beam_size=1)
    last = encoders[0].vocab_size - 1
    pair = [[3, last, 2]], [[last, 4]]
    assert engine.score(*pair, options) == pytest.approx(
        scores_by_logits(model, *pair), abs=2e-4
    )
