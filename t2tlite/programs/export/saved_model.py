"""The format saved_model: text in, text out, for TensorFlow and TensorFlow Serving
without t2tlite.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.config import DecodeHParams
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.quiet import quiet_stderr
from t2tlite.vocabularies.sentencepiece_encoder import SentencePieceEncoder

if TYPE_CHECKING:
    from t2tlite.programs.export.graph import LoadedGraph

VERSION = "1"  # the folder of the only version in TensorFlow Serving's layout
ASSETS = "assets.extra"  # of a SavedModel, for files that are not part of its graph
# the name of the function that decodes, by task
SIGNATURES = {
    "translation": "translate",
    "text_to_text": "translate",
    "parsing": "parse",
}

SAVED_MODEL_USAGE = """\
`1` is a SavedModel, which TensorFlow loads without t2tlite:

```python
import tensorflow as tf
{imports}
model = tf.saved_model.load("1")
found = model.{signature}(tf.constant({example}))
print(found["{noun}"], found["scores"], found["log_probs"])
```

`{signature}` takes {inputs}, and returns `{noun}`,
`scores` and `log_probs` of the {n_best} best hypotheses of each, best first. A score of
-1e9 marks an empty place. A blank sentence has an empty output with score 0. The
decoding options are in export.json.

`score` takes `sources` and `targets`, and returns `log_probs`, the log-probability of
each target.
"""
TEXT = {
    "imports": "import tensorflow_text  # registers the ops of SentencePiece\n",
    "example": '["A sentence.", ""]',
    "inputs": "a list of sentences",
    "noun": "texts",
}
IDS = {
    "imports": "",
    "example": "[[5, 9, 3], [8, 0, 0]]",
    "inputs": "token ids, int32, a row for each sentence, padded with 0",
    "noun": "ids",
}
IDS_USAGE = """
TensorFlow has no op for tensor2tensor's subword vocabularies. So this model takes and
returns token ids; `t2tlite.vocabularies.encoders.open_encoder` reads the vocabulary in
`1/assets.extra`.
"""
PARSER_USAGE = """
`parse` returns linearised trees as they were decoded. t2tlite's Python code
(t2tlite/tasks/parsing.py) chooses the one that fits the words best and makes the tree
over these words.
"""


@dataclasses.dataclass(frozen=True)
class SavedModelFormat(ExportFormat):
    """Writes a SavedModel, whose graph has vocabulary, beam search and model."""

    name = "saved_model"
    supported = frozenset(
        {
            "beam_size",
            "alpha",
            "extra_length",
            "batch_size",
            "return_beams",
            "min_length",
            "no_repeat_ngram_size",
            "t2t_rules",
        }
    )  # sampling is not among them

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        if plan.manifest.task not in SIGNATURES:
            raise ValueError(
                f"format=saved_model exports the tasks {', '.join(SIGNATURES)}."
                f" Received: the task {plan.manifest.task!r}. Use format=ctranslate2."
            )
        types = {entry.type for entry in plan.manifest.vocabulary_entries()}
        has_text = importlib.util.find_spec("tensorflow_text") is not None
        if "sentencepiece" in types and not has_text:
            raise ValueError(
                "A SavedModel with a SentencePiece vocabulary needs tensorflow-text,"
                " which is not installed (Windows and Python 3.14 have none). Use"
                " format=ctranslate2."
            )
        path = str(plan.folder)
        if "\\" in path or not fnmatch.fnmatchcase(path, path):
            raise ValueError(
                "The path of a SavedModel must have no brackets or backslashes, which"
                f" TensorFlow takes for a pattern. Received: {path}. Name another"
                " export_dir."
            )

    def write(self, model: TextDecoder, folder: Path, decoding: DecodeHParams) -> str:
        """Saves the graph, and the vocabularies that cannot be part of it."""
        from t2tlite.programs.export.graph import save_graph  # loads TensorFlow

        signature = SIGNATURES[model.task.name]
        decoding = _decoding(model, decoding)
        with quiet_stderr():  # SentencePiece prints messages
            save_graph(model, decoding, signature, folder / VERSION)
        subwords = {}  # by name, once if they are shared
        for encoder in model.encoders:
            if not isinstance(encoder, SentencePieceEncoder):
                subwords[encoder.path.name] = encoder.path
        for name, path in subwords.items():
            (folder / VERSION / ASSETS).mkdir(exist_ok=True)
            copy_file(path, folder / VERSION / ASSETS / name)
        usage = SAVED_MODEL_USAGE.format(
            signature=signature,
            n_best=decoding.return_beams,
            **(IDS if subwords else TEXT),
        )
        if subwords:
            usage += IDS_USAGE
        return usage + (PARSER_USAGE if signature == "parse" else "")

    def open(
        self, model: TextDecoder, folder: Path, decoding: DecodeHParams
    ) -> LoadedGraph:
        from t2tlite.programs.export.graph import LoadedGraph  # loads TensorFlow

        signature = SIGNATURES[model.task.name]
        with quiet_stderr():
            return LoadedGraph(model, decoding, signature, folder / VERSION)

    def verify(
        self,
        model: TextDecoder,
        folder: Path,
        decoding: DecodeHParams,
        sentences: list[str],
    ) -> str:
        return super().verify(model, folder, _decoding(model, decoding), sentences)


def _decoding(model: TextDecoder, decoding: DecodeHParams) -> DecodeHParams:
    """The options of the graph: of a parser, all hypotheses are returned."""
    if SIGNATURES[model.task.name] == "parse":
        return dataclasses.replace(decoding, return_beams=decoding.beam_size)
    return decoding
