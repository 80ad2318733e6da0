"""The format saved_model: text in, text out, for TensorFlow and TensorFlow Serving
without t2tlite.
"""

from __future__ import annotations

import dataclasses
import fnmatch
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from t2tlite.config import DecodeHParams
from t2tlite.data.manifest import RunManifest
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.plan import ExportFormat, ExportPlan
from t2tlite.quiet import quiet_stderr
from t2tlite.vocabularies.encoders import FILE_ENDINGS

if TYPE_CHECKING:
    from t2tlite.programs.export.graph import DecodingGraph, LoadedGraph

VERSION = "1"  # the folder of the only version in TensorFlow Serving's layout
SUPPORTED = frozenset(
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
ASSETS = "assets.extra"  # of a SavedModel, for files that are not part of its graph

USAGE = """\
`{version}` is a SavedModel. {loads} it, without t2tlite:

```python
import tensorflow as tf
{imports}
model = tf.saved_model.load("{version}")
found = model.{signature}(tf.constant({example}), beam_size={largest})
print(found["{noun}"], found["scores"], found["log_probs"])
```

`{signature}` takes {inputs}, and returns `{noun}`,
`scores` and `log_probs` of the best hypotheses of each, best first. A score of -1e9
marks an empty place. A blank sentence has an empty output with score 0.

Optional inputs:
`beam_size` ({beam_sizes}; by default {beam_size}), `alpha` (by default {alpha}),
`extra_length` (by default {extra_length}), `return_beams` (how many hypotheses, 0 for
as many as beam_size; by default {return_beams}).

TensorFlow Serving's default signature is `{signature}` without optional inputs.

`score` takes `sources` and `targets`, and returns `log_probs`, the log-probability of
each target.
"""
USAGE_OF_IDS = """
TensorFlow has no op for tensor2tensor's subword vocabularies. So this model takes and
returns token ids; the vocabulary is {files}, which
`t2tlite.vocabularies.encoders.open_encoder` reads.
"""


@dataclasses.dataclass(frozen=True)
class GraphTask:
    """The part of a task (t2tlite/tasks) that a graph can compute."""

    signature: str  # the name of the signature that decodes
    splits_words: bool  # whether it prepares sentences as ParsingTask.source does
    return_beams: int | None  # its default, unless it is the run's; 0 is the whole beam
    usage: str = ""  # for README.md: what the graph leaves out


TRANSLATION = GraphTask("translate", splits_words=False, return_beams=None)
TASKS = {
    "translation": TRANSLATION,
    "text_to_text": TRANSLATION,
    "parsing": GraphTask(
        "parse",
        splits_words=True,
        return_beams=0,
        usage="""
`parse` returns linearised trees as they were decoded. t2tlite's Python code
(t2tlite/tasks/parsing.py) chooses the one that fits the words best and makes the tree
over these words.
""",
    ),
}


class SavedModelFormat(ExportFormat):
    """Writes a SavedModel, whose graph has vocabulary, beam search and model."""

    name = "saved_model"

    def check(self, plan: ExportPlan) -> None:
        super().check(plan)
        task = plan.manifest.task
        if task not in TASKS:
            known = ", ".join(TASKS)
            raise ValueError(
                f"format=saved_model exports the tasks {known}. Received: a run of"
                f" the task {task!r}. Use format=ctranslate2."
            )
        check_supported("format=saved_model", SUPPORTED, plan.decoding)
        _check_text_operations(plan.manifest)
        _check_path(str(plan.folder))

    def write(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> str:
        """Saves the graph, and the vocabularies that cannot be part of it."""
        from t2tlite.programs.export.graph import DecodingGraph  # loads TensorFlow

        task = TASKS[model.task.name]
        return_beams = plan.decoding.return_beams
        if task.return_beams is not None:
            return_beams = task.return_beams
        with quiet_stderr():  # SentencePiece prints messages
            graph = DecodingGraph(
                model,
                plan.decoding,
                task.signature,
                return_beams,
                splits_words=TASKS[model.task_under(plan.decoding).name].splits_words,
            )
        graph.save(folder / VERSION)
        outside = graph.outside_vocabularies()
        for path in outside:
            (folder / VERSION / ASSETS).mkdir(exist_ok=True)
            copy_file(path, folder / VERSION / ASSETS / path.name)
        return _usage(graph, plan.decoding, outside) + task.usage

    def open(self, model: TextDecoder, folder: Path, plan: ExportPlan) -> LoadedGraph:
        from t2tlite.programs.export.graph import LoadedGraph  # loads TensorFlow

        signature = TASKS[model.task.name].signature
        with quiet_stderr():
            return LoadedGraph(model, plan.decoding, signature, folder / VERSION)


def _check_text_operations(manifest: RunManifest) -> None:
    """Raises ValueError if the graph needs SentencePiece's operations and they are not
    installed.
    """
    learned = []
    for entry in manifest.vocabulary_entries():
        if entry.file.endswith(FILE_ENDINGS["sentencepiece"]):
            learned.append(entry.file)
    if learned and importlib.util.find_spec("tensorflow_text") is None:
        raise ValueError(
            "A SavedModel with a SentencePiece vocabulary needs tensorflow-text, which"
            " is not installed, and which does not exist for Windows and Python 3.14."
            f" Received: a run with {' and '.join(learned)}. Export on another system"
            " or Python, or with format=ctranslate2."
        )


def _check_path(path: str) -> None:
    """Raises ValueError if TensorFlow, which looks for files by pattern, would not find
    those of the path.
    """
    if "\\" in path or not fnmatch.fnmatchcase(path, path):
        raise ValueError(
            "The path of a SavedModel must have no brackets or backslashes: TensorFlow"
            f" takes them for a pattern and does not find its files. Received: {path}."
            " Name another export_dir."
        )


def _usage(
    graph: DecodingGraph, options: DecodeHParams, outside: Sequence[Path]
) -> str:
    """The README's text; `outside` are the vocabularies that are not in the graph."""
    if outside:
        loads = "TensorFlow loads"
        imports = ""
        example = "[[5, 9, 3], [8, 0, 0]]"
        inputs = "token ids, int32, a row for each sentence, padded with 0"
    else:
        loads = "TensorFlow and tensorflow_text load"
        imports = "import tensorflow_text  # registers the ops of SentencePiece\n"
        example = '["A sentence.", ""]'
        inputs = "a list of sentences"
    usage = USAGE.format(
        version=VERSION,
        loads=loads,
        imports=imports,
        example=example,
        inputs=inputs,
        signature=graph.signature,
        noun=graph.target.noun,
        largest=graph.beam_sizes[-1],
        beam_sizes=", ".join(map(str, graph.beam_sizes)),
        beam_size=options.beam_size,
        alpha=options.alpha,
        extra_length=options.extra_length,
        return_beams=graph.return_beams,
    )
    if outside:
        names = [f"`{VERSION}/{ASSETS}/{path.name}`" for path in outside]
        usage += USAGE_OF_IDS.format(files=" and ".join(names))
    return usage
