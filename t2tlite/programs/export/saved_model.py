"""The format saved_model: text in, text out, for TensorFlow and TensorFlow Serving
without t2tlite.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import tensorflow as tf

from t2tlite.config import DecodeHParams
from t2tlite.decoding.engine import check_supported
from t2tlite.decoding.rules import rules_of
from t2tlite.decoding.search_ops import is_filled
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.files.atomic_file import copy_file
from t2tlite.programs.export.compare import NBest, check_export, check_hypotheses
from t2tlite.programs.export.formats import Settings
from t2tlite.programs.export.graph import TASKS, DecodingGraph
from t2tlite.programs.export.graph_text import GraphText, graph_text
from t2tlite.quiet import quiet_stderr
from t2tlite.tasks.task import Hypothesis
from t2tlite.types import PAD, Tensor
from t2tlite.vocabularies.text_encoder import TextEncoder

VERSION = "1"  # the folder of the only version in TensorFlow Serving's layout
SUPPORTED = frozenset(
    "beam_size alpha extra_length batch_size return_beams min_length"
    " no_repeat_ngram_size t2t_rules".split()
)  # sampling is not among them
BLANK = ("", " ", "\u00a0\u200b")  # the last, if the vocabulary normalises text
ASSETS = "assets.extra"  # of a SavedModel, for files that are not part of its graph


def check(model: TextDecoder, settings: Settings) -> None:
    """Raises ValueError for a quantization, or a task or a decoding option that the
    graph does not have.
    """
    settings.refuse_quantization("saved_model")
    if model.task.name not in TASKS:
        known = ", ".join(TASKS)
        raise ValueError(
            f"--format=saved_model exports the tasks {known}. Received: a run of the"
            f" task {model.task.name!r}. Use --format=keras."
        )
    check_supported("--format=saved_model", SUPPORTED, settings.decoding)


def write(model: TextDecoder, folder: Path, settings: Settings) -> Sequence[str]:
    """Saves the graph, and the vocabularies that are not part of it; returns paragraphs
    on its use.
    """
    _check_path(str(folder))
    with quiet_stderr():  # SentencePiece prints messages
        graph = DecodingGraph(model, settings.decoding)
    target = folder / VERSION
    module, signatures = graph.module()
    tf.saved_model.save(module, str(target), signatures)
    outside = [
        encoder.path
        for encoder, side in zip(
            model.encoders, (graph.source, graph.target), strict=True
        )
        if side.tokenizer is None
    ]
    for path in dict.fromkeys(outside):
        (target / ASSETS).mkdir(exist_ok=True)
        copy_file(path, target / ASSETS / path.name)
    return _paragraphs(
        graph, settings.decoding, list(dict.fromkeys(path.name for path in outside))
    )


def _check_path(path: str) -> None:
    """Raises ValueError if TensorFlow, which looks for files by pattern, would not find
    those of the path.
    """
    if "\\" in path or not fnmatch.fnmatchcase(path, path):
        raise ValueError(
            "The path of a SavedModel must have no brackets or backslashes: TensorFlow"
            f" takes them for a pattern and does not find its files. Received: {path}."
            " Name another --export_dir."
        )


def verify(
    model: TextDecoder, folder: Path, settings: Settings, sentences: Sequence[str]
) -> str:
    """Compares the SavedModel's n-best lists and log-probabilities with the run's;
    ValueError if they differ.
    """
    with quiet_stderr():
        exported = Exported(
            model, settings.decoding, tf.saved_model.load(str(folder / VERSION))
        )
    check_export(model, sentences, settings.decoding, exported.decode, exported.score)
    blank = list(filter(model.source_encoder.is_blank, BLANK))
    nothing = [[Hypothesis("", 0.0, 0.0)]] * len(blank)
    check_hypotheses(blank, nothing, exported.decode(blank))
    return "n-best lists and log-probabilities"


class Exported:
    """A loaded SavedModel, called with text even if it takes and returns token ids."""

    def __init__(
        self, model: TextDecoder, options: DecodeHParams, loaded: tf.Module
    ) -> None:
        self._model, self._options, self._loaded = model, options, loaded
        self._source, self._target = map(graph_text, model.encoders)

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The hypotheses of each sentence's whole beam, best first."""
        if self._source.tokenizer is None:  # otherwise the graph prepares the sentences
            task = self._model.task_under(self._options)
            sentences = [task.source(sentence) for sentence in sentences]
            if rules_of(self._options).strips:
                sentences = [sentence.strip() for sentence in sentences]
        decode = getattr(self._loaded, TASKS[self._model.task.name].signature)
        outputs = decode(
            self._input(self._source, self._model.source_encoder, sentences),
            return_beams=0,
        )
        texts = outputs[self._target.noun].numpy()
        scores = outputs["scores"].numpy()
        log_probs = outputs["log_probs"].numpy()
        n_best_lists = []
        for columns in zip(texts, scores, log_probs, strict=True):
            n_best_list = []
            for text, score, log_prob in zip(*columns, strict=True):
                if is_filled(score):
                    n_best_list.append(
                        Hypothesis(self._text(text), float(score), float(log_prob))
                    )
            n_best_lists.append(n_best_list)
        return n_best_lists

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target."""
        outputs = self._loaded.score(
            self._input(self._source, self._model.source_encoder, sources),
            self._input(self._target, self._model.target_encoder, targets),
        )
        return [float(value) for value in outputs["log_probs"].numpy()]

    def _input(
        self, side: GraphText, encoder: TextEncoder, texts: Sequence[str]
    ) -> Tensor:
        if side.tokenizer is not None:
            return tf.constant(texts)
        rows = []
        for text in texts:
            rows.append([] if encoder.is_blank(text) else encoder.encode(text))
        return tf.ragged.constant(rows, tf.int32, ragged_rank=1).to_tensor(PAD)

    def _text(self, output: bytes | np.ndarray) -> str:
        if isinstance(output, bytes):
            return output.decode("utf-8")
        return self._model.target_encoder.text(output)


def _paragraphs(
    graph: DecodingGraph, options: DecodeHParams, outside: Sequence[str]
) -> list[str]:
    name, noun, texts = graph.task.signature, graph.target.noun, not outside
    loads = "TensorFlow and tensorflow_text load" if texts else "TensorFlow loads"
    ops = (
        "import tensorflow_text  # registers the ops of SentencePiece\n"
        if texts
        else ""
    )
    given = '["A sentence.", ""]' if texts else "[[5, 9, 3], [8, 0, 0]]"
    takes = (
        "a list of sentences"
        if texts
        else "token ids, int32, a row for each sentence, padded with 0"
    )
    paragraphs = [
        f"`{VERSION}` is a SavedModel. {loads} it, without t2tlite:",
        "```python\n"
        "import tensorflow as tf\n"
        f"{ops}\n"
        f'model = tf.saved_model.load("{VERSION}")\n'
        f"found = model.{name}(tf.constant({given}),"
        f" beam_size={graph.beam_sizes[-1]})\n"
        f'print(found["{noun}"], found["scores"], found["log_probs"])\n'
        "```",
        (
            f"`{name}` takes {takes}, and returns `{noun}`, `scores` and `log_probs` of"
            " the best hypotheses of each, best first. A score of -1e9 marks an empty"
            " place. A blank sentence has an empty output with score 0."
        ),
        (
            f"Optional inputs: `beam_size` ({', '.join(map(str, graph.beam_sizes))}; by"
            f" default {options.beam_size}), `alpha` (by default {options.alpha}),"
            f" `extra_length` (by default {options.extra_length}), `return_beams` (how"
            " many hypotheses, 0 for as many as beam_size; by default"
            f" {graph.return_beams})."
        ),
        f"TensorFlow Serving's default signature is `{name}` without optional inputs.",
        (
            "`score` takes `sources` and `targets`, and returns `log_probs`, the"
            " log-probability of each target."
        ),
    ]
    if graph.task.note:
        paragraphs.append(graph.task.note)
    if outside:
        files = " and ".join(f"`{VERSION}/{ASSETS}/{file}`" for file in outside)
        paragraphs.append(
            "TensorFlow has no op for tensor2tensor's subword vocabularies. So this"
            f" model takes and returns token ids; the vocabulary is {files}, which"
            " `t2tlite.vocabularies.encoders.open_encoder` reads."
        )
    return paragraphs
