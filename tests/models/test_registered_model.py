"""A model that a user's package registers trains, is restored and decodes."""

import dataclasses

import keras
import numpy as np
import pytest
from eager import run_eagerly
from tiny_run import trainer_flags

from t2tlite import registry
from t2tlite.bin import t2t_trainer
from t2tlite.config import HParams
from t2tlite.models.transformer import Transformer
from t2tlite.programs.runs.load import load
from t2tlite.run_folder import RunFolder


@registry.register_model
@keras.saving.register_keras_serializable("tests")
class BackwardTransformer(Transformer):
    """Its encoder reads every source backwards."""

    def encode(self, inputs, seed=None, record=None):
        return super().encode(keras.ops.flip(inputs, axis=1), seed, record)


def test_a_model_of_a_users_package_trains_and_decodes(tiny_run, tmp_path):
    run = tmp_path / "run"
    words = (
        "--model=backward_transformer",
        "--train_steps=2",
        "--local_eval_frequency=0",
    )
    with run_eagerly():
        assert t2t_trainer.main(trainer_flags(tiny_run, run, *words)) == 0
        translator = load(run, None)
        assert len(translator.translate(["cat sees dog"])) == 1
    hparams = RunFolder(run).hparams()
    assert hparams.model == "backward_transformer"
    model = registry.get_model(hparams.model).from_hparams(hparams, 9, 9)
    plain = dataclasses.replace(hparams, model="transformer")
    other = Transformer.from_hparams(plain, 9, 9)
    sources = np.array([[5, 3, 1]])
    np.testing.assert_array_equal(
        model(sources, sources), other(sources[:, ::-1], sources)
    )
    copy = type(model).from_config(model.get_config())
    assert type(copy) is BackwardTransformer


def test_an_unknown_model_is_refused():
    with pytest.raises(ValueError, match=r"no model 'transfromer'.*'transformer'"):
        HParams(model="transfromer")
