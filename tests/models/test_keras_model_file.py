"""A Transformer saved by Keras as one file, `model.keras`, is the same model when Keras
loads it; test_python_api.py has another process that does.
"""

import keras
import numpy as np
import pytest
from tiny_transformer import (
    PRE_NORM_AND_EMB,
    SOURCES,
    TARGETS,
    UNSHARED,
    make_transformer,
)

from t2tlite.models.transformer import Transformer

VARIANTS = {
    "pre_norm": PRE_NORM_AND_EMB,
    "unshared": UNSHARED,
    "bfloat16": "dtype_policy=mixed_bfloat16",
}

# Keras 3.15 writes a model's weights through an interface that NumPy 2 deprecates.
pytestmark = pytest.mark.filterwarnings(
    "ignore:__array__ implementation doesn't accept a copy:DeprecationWarning"
)


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_a_loaded_model_equals_the_saved_one(changes, tmp_path):
    model = make_transformer(changes)
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    assert isinstance(loaded, Transformer)
    assert loaded.hparams == model.hparams
    paths = [variable.path for variable in model.weights]
    assert [variable.path for variable in loaded.weights] == paths
    for ours, theirs in zip(loaded.get_weights(), model.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
    seed = keras.ops.array([1, 2], "int32")
    for options in ({}, {"seed": seed}):
        expected = model(SOURCES, TARGETS, **options)
        np.testing.assert_array_equal(loaded(SOURCES, TARGETS, **options), expected)
