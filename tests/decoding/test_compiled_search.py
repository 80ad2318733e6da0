"""Searches that XLA compiles, once for each shape of a batch."""

import pytest

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import Sentence
from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
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
