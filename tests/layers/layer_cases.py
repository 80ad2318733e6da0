"""The public layers, the layers of Keras that they stand for, and models that contain
them.

Usage: python layer_cases.py FOLDER, which loads models that test_keras_models.py saved,
and compares what they compute.
"""

from __future__ import annotations

import dataclasses
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import keras
import numpy as np

from t2tlite import layers

# B batch, T length, D hidden size, V vocabulary

HIDDEN, VOCAB = 8, 300
IDS = np.array([[5, 290, 3, 7], [8, 257, 0, 0]], np.int32)  # [B, T]
VECTORS = np.random.default_rng(1).normal(size=(2, 4, HIDDEN)).astype(np.float32)


def attend_twice(layer: keras.layers.Layer, x: Any) -> Any:
    return layer(x, keras.ops.flip(x, axis=1))


def twice(layer: keras.layers.Layer, x: Any) -> Any:
    return layer(x, x)


def listed_twice(layer: keras.layers.Layer, x: Any) -> Any:
    return layer([x, x])


def once(layer: keras.layers.Layer, x: Any) -> Any:
    return layer(x)


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A layer and the one of Keras that it stands for, each with what calls it."""

    make: Callable[..., keras.layers.Layer]
    of_keras: Callable[..., keras.layers.Layer]
    call: Callable[[keras.layers.Layer, Any], Any] = once
    call_of_keras: Callable[[keras.layers.Layer, Any], Any] = once
    takes_ids: bool = False

    def inputs(self) -> np.ndarray:
        return IDS if self.takes_ids else VECTORS


def attention(**options: Any) -> layers.MultiHeadAttention:
    return layers.MultiHeadAttention(HIDDEN, 2, dropout=0.1, **options)


def attention_of_keras(**options: Any) -> keras.layers.MultiHeadAttention:
    return keras.layers.MultiHeadAttention(2, 4, use_bias=False, **options)


CASES = {
    "Dense": LayerCase(
        lambda **options: layers.Dense(HIDDEN, **options),
        lambda **options: keras.layers.Dense(HIDDEN, **options),
    ),
    "Dropout": LayerCase(
        lambda **options: layers.Dropout(0.5, **options),
        lambda **options: keras.layers.Dropout(0.5, **options),
    ),
    "Embedding": LayerCase(
        lambda **options: layers.Embedding(VOCAB, HIDDEN, **options),
        lambda **options: keras.layers.Embedding(VOCAB, HIDDEN, **options),
        takes_ids=True,
    ),
    "FeedForward": LayerCase(
        lambda **options: layers.FeedForward(HIDDEN, 12, 0.1, **options),
        lambda **options: keras.layers.Dense(HIDDEN, **options),
    ),
    "LayerNormalization": LayerCase(
        layers.LayerNormalization, keras.layers.LayerNormalization
    ),
    "MultiHeadAttention": LayerCase(attention, attention_of_keras, call_of_keras=twice),
    "MultiHeadAttention_to_memory": LayerCase(
        attention, attention_of_keras, attend_twice, attend_twice
    ),
    "RestrictedAttention": LayerCase(
        lambda **options: layers.RestrictedAttention(
            HIDDEN, 2, dropout=0.1, radius=2, **options
        ),
        attention_of_keras,
        call_of_keras=twice,
    ),
    "Positions": LayerCase(
        lambda **options: layers.Positions("timing", HIDDEN, **options),
        keras.layers.Identity,
    ),
    "Positions_learned": LayerCase(
        lambda **options: layers.Positions("emb", HIDDEN, 5, **options),
        keras.layers.Identity,
    ),
    "Residual": LayerCase(
        lambda **options: layers.Residual(0.1, **options),
        keras.layers.Add,
        twice,
        listed_twice,
    ),
}


@keras.saving.register_keras_serializable("tests")
class Net(keras.Model):
    """A classifier that contains the layer of a case."""

    def __init__(self, name: str, **options: Any) -> None:
        super().__init__(name=name, **options)
        self.case = CASES[name]
        self.layer = self.case.make()
        self.classes = keras.layers.Dense(2)

    def call(self, x: Any) -> Any:
        return self.classes(keras.ops.mean(self.case.call(self.layer, x), axis=1))

    def get_config(self) -> dict[str, str]:
        return {"name": self.name}


def functional(name: str) -> keras.Model:
    case = CASES[name]
    x = keras.Input((None,)) if case.takes_ids else keras.Input((None, HIDDEN))
    y = keras.ops.mean(case.call(case.make(), x), axis=1)
    return keras.Model(x, keras.layers.Dense(2)(y))


def sequential(name: str) -> keras.Model:
    pooling = keras.layers.GlobalAveragePooling1D()
    return keras.Sequential([CASES[name].make(), pooling, keras.layers.Dense(2)])


MODELS = [(Net, name) for name in CASES]
MODELS += [(functional, name) for name in CASES]
MODELS += [(sequential, name) for name in CASES if CASES[name].call is once]


def main(folder: Path) -> None:
    # Keras 3.15 reads weights through an interface that NumPy 2 deprecates
    warnings.filterwarnings("ignore", "__array__ implementation", DeprecationWarning)
    for i in range(len(MODELS)):
        model = keras.saving.load_model(folder / f"{i}.keras")
        with np.load(folder / f"{i}.npz") as arrays:
            outputs = model(arrays["inputs"])
            np.testing.assert_allclose(outputs, arrays["outputs"], rtol=1e-5, atol=1e-6)
    print(len(MODELS), "equal")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
