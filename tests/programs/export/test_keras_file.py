"""The format keras: a file that Keras opens, with the vocabulary beside it."""

from __future__ import annotations

import keras
import numpy as np
import pytest

import t2tlite
from t2tlite.bin import t2t_export
from t2tlite.models.transformer import Transformer
from t2tlite.vocabularies.encoders import open_encoder

pytestmark = pytest.mark.usefixtures("loaded_once")


def export(tiny_run, target, *more):
    return t2t_export.main(
        [
            f"--output_dir={tiny_run.run}",
            f"--export_dir={target}",
            "--format=keras",
            *more,
        ]
    )


def test_keras_opens_the_file(tiny_run, tmp_path, capsys):
    assert export(tiny_run, tmp_path / "out") == 0
    assert (
        "Equal to the run: beam search and log-probabilities of 12 sentences of dev"
        in capsys.readouterr().out
    )
    model, loaded = (
        t2tlite.load(tiny_run.run),
        keras.saving.load_model(tmp_path / "out" / "model.keras"),
    )
    assert isinstance(loaded, Transformer)
    encoder = open_encoder(tmp_path / "out" / "vocab.model")
    inputs, targets = (
        np.array([[*encoder.encode(text), 1]], np.int32)
        for text in ("red cat sees dog", "katze rot")
    )
    np.testing.assert_array_equal(
        loaded(inputs, targets), model.engine.model(inputs, targets)
    )
    readme = (tmp_path / "out" / "README.md").read_text()
    assert "Beam search is not in it, and neither is the vocabulary" in readme
    program = readme.partition("```python\n")[2].partition("```")[0]
    for name in ("model.keras", "vocab.model"):
        program = program.replace(f'"{name}"', repr(str(tmp_path / "out" / name)))
    names: dict = {}
    exec(program, names)
    assert names["logits"].shape[2] == encoder.vocab_size


def test_a_file_with_other_weights_is_found(tiny_run, tmp_path, monkeypatch, eagerly):
    """Weights changed between writing and reading."""
    load_model = keras.saving.load_model

    def changed(path):
        loaded = load_model(path)
        loaded.target_embedding.weight.assign(loaded.target_embedding.weight * 1.01)
        return loaded

    monkeypatch.setattr(keras.saving, "load_model", changed)
    with pytest.raises(
        ValueError, match=r"An export must decode as the run does\. Received for '"
    ):
        t2tlite.load(tiny_run.run).export(tmp_path / "out", "keras", beam_size=1)
    assert not list(tmp_path.iterdir())
