"""The format keras: the model alone in a `.keras` file, its vocabulary beside it.

`keras.saving.load_model` restores the Transformer if t2tlite, which has its classes, is
installed.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Sequence
from pathlib import Path

import keras

from t2tlite.decoding.tensorflow_engine import TensorFlowEngine
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.compare import check_export, decoded, keras_model, scored
from t2tlite.programs.export.formats import Settings

FILE = "model.keras"


def check(model: TextDecoder, settings: Settings) -> None:
    """Raises ValueError for a quantization; any model can be saved."""
    settings.refuse_quantization("keras")


def write(model: TextDecoder, folder: Path, settings: Settings) -> Sequence[str]:
    """Writes the model and its vocabularies into a folder; returns paragraphs on their
    use.
    """
    # Keras 3.15 writes weights through an interface that NumPy 2 deprecates
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore",
            "__array__ implementation doesn't accept a copy",
            DeprecationWarning,
        )
        keras_model(model).save(folder / FILE)
    names = [encoder.path.name for encoder in model.encoders]
    for encoder in model.encoders:
        copy_file(encoder.path, folder / encoder.path.name)
    return [
        f"`{FILE}` is the model alone: token ids to logits, and `start_decoding` and"
        " `decode_step` for a search of your own. Beam search is not in it, and"
        " neither is the vocabulary: text becomes token ids by "
        + " (source) and ".join(f"`{name}`" for name in dict.fromkeys(names))
        + (" (target)" if names[0] != names[1] else "")
        + ". Each sequence of ids ends with 1 (EOS) and is padded with 0.",
        "Loading needs t2tlite, which has the model's classes:",
        "```python\n"
        "import keras\n"
        "import numpy as np\n"
        "import t2tlite.models.transformer\n"
        "from t2tlite.vocabularies.encoders import open_encoder\n\n"
        f'model = keras.saving.load_model("{FILE}")\n'
        f'source, target = open_encoder("{names[0]}"), open_encoder("{names[1]}")\n'
        'inputs = np.array([[*source.encode("..."), 1]], np.int32)\n'
        'targets = np.array([[*target.encode("..."), 1]], np.int32)\n'
        "logits = model(inputs, targets)  # [1, target tokens, vocabulary]\n"
        "```",
    ]


def verify(
    model: TextDecoder, folder: Path, settings: Settings, sentences: Sequence[str]
) -> str:
    """Loads the file, and compares beam search and log-probabilities; ValueError if
    they differ.
    """
    loaded = keras.saving.load_model(folder / FILE)
    exported = TextDecoder(TensorFlowEngine(loaded), model.encoders, model.manifest)
    decode = functools.partial(decoded, exported, options=settings.decoding)
    check_export(
        model, sentences, settings.decoding, decode, functools.partial(scored, exported)
    )
    return "beam search and log-probabilities"
