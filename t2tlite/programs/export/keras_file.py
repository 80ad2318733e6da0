"""The format keras: the model alone in a `.keras` file, its vocabulary beside it.

`keras.saving.load_model` restores the Transformer if t2tlite, which has its classes, is
installed.
"""

from __future__ import annotations

import warnings
from pathlib import Path

from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.programs.export.verification import (
    DecodedInOneBatch,
    check_export,
    keras_model,
    opened_run,
    with_tensorflow,
)

FILE = "model.keras"

USAGE = """\
`{file}` is the model alone: token ids to logits, and `start_decoding` and
`decode_step` for a search of your own.
Beam search is not in it, and neither is the vocabulary: text becomes token ids by
{vocabularies}. Each sequence of ids ends with 1 (EOS) and is padded with 0.

Loading needs t2tlite, which has the model's classes:

```python
import keras
import numpy as np
import t2tlite.models.transformer
from t2tlite.vocabularies.encoders import open_encoder

model = keras.saving.load_model("{file}")
source, target = open_encoder("{source}"), open_encoder("{target}")
inputs = np.array([[*source.encode("..."), 1]], np.int32)
targets = np.array([[*target.encode("..."), 1]], np.int32)
logits = model(inputs, targets)  # [1, target tokens, vocabulary]
```
"""


class KerasFormat(ExportFormat):
    """Writes `model.keras` and the vocabularies. Any model can be saved."""

    name = "keras"

    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        # Keras 3.15 writes weights through an interface that NumPy 2 deprecates
        with warnings.catch_warnings():
            warnings.filterwarnings(
                "ignore",
                "__array__ implementation doesn't accept a copy",
                DeprecationWarning,
            )
            keras_model(model).save(folder / FILE)
        for encoder in model.encoders:
            copy_file(encoder.path, folder / encoder.path.name)
        source = model.source_encoder.path.name
        target = model.target_encoder.path.name
        vocabularies = f"`{source}`"
        if source != target:
            vocabularies = f"`{source}` (source) and `{target}` (target)"
        return USAGE.format(
            file=FILE, vocabularies=vocabularies, source=source, target=target
        )

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        plan: ExportPlan,
        sentences: list[str],
    ) -> str:
        import keras  # loads TensorFlow

        loaded = keras.saving.load_model(folder / FILE)
        export = DecodedInOneBatch(with_tensorflow(model, loaded), plan.decoding)
        check_export(opened_run(model, plan.decoding), export, sentences)
        return "beam search and log-probabilities"
