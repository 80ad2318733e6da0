"""Searches of a sentence alone, and those that XLA compiles."""

import dataclasses

import numpy as np
import pytest

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import Sentence
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.models.transformer import Transformer
from t2tlite.programs.runs.keras_run import restored_model
from t2tlite.run_folder import RunFolder

LENGTHS = (1, 8, 10, 12, 14, 16)  # each of another padded length
OPTIONS = DecodeHParams(beam_size=1, extra_length=0)


def test_many_shapes_translate_as_without_xla(tiny_run, caplog):
    folder = RunFolder(tiny_run.run)
    model = restored_model(folder, folder.checkpoints()[-1])
    plain, compiled = TensorFlowEngine(model), TensorFlowEngine(model, jit_compile=True)
    assert len({plain._padded(length + 1) for length in LENGTHS}) == len(LENGTHS)

    for length in LENGTHS:
        sentences = [Sentence([5] * length)]
        [[hypothesis]] = compiled.decode(sentences, OPTIONS)
        [[expected]] = plain.decode(sentences, OPTIONS)
        assert hypothesis.ids == expected.ids
        assert hypothesis.score == pytest.approx(expected.score, abs=1e-4)

    assert "retracing" not in caplog.text


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("float32", {}),
        ("float32", {"no_repeat_ngram_size": 2}),
        ("mixed_bfloat16", {}),
    ],
)
def test_a_sentence_alone_is_decoded_as_in_a_batch(tiny_run, policy, options):
    hparams = RunFolder(tiny_run.run).hparams()
    hparams = dataclasses.replace(hparams, dtype_policy=policy)
    model = Transformer.from_hparams(hparams, 50, 50)
    engine = TensorFlowEngine(model)
    chosen = DecodeHParams(return_beams=2, extra_length=20, **options)
    sentences = [Sentence([5, 9, 7, number]) for number in range(3, 6)]
    together = engine.decode(sentences, chosen)
    alone = [engine.decode([sentence], chosen)[0] for sentence in sentences]
    assert TensorFlowEngine(model, frozen=True).decode(sentences, chosen) == together
    best = np.array([n_best[0].score for n_best in alone])
    expected = [n_best[0].score for n_best in together]
    if policy == "float32":
        assert [[each.ids for each in n_best] for n_best in alone] == [
            [each.ids for each in n_best] for n_best in together
        ]
        np.testing.assert_allclose(best, expected, rtol=1e-5)
    else:  # hypotheses of nearly equal scores may be in another order
        np.testing.assert_allclose(best, expected, rtol=2e-2)
