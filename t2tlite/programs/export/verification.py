"""Verifies an export: its output for sample sentences must be the run's."""

import dataclasses
import itertools
import random
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from t2tlite.config import DecodeHParams
from t2tlite.data.dataset import open_dataset
from t2tlite.decoding.text_decoder import TextDecoder
from t2tlite.tasks.task import Output
from t2tlite.types import Seq2SeqModel

TOLERANCE = 1e-4  # of scores and log-probabilities
# batch_size that decodes all sentences in one batch, so that rounding is the same too
ONE_BATCH = 1_000_000

BLANK = ("", " ", "\u00a0\u200b")
SAMPLES = 12  # sentences
LONGEST = 48  # tokens of a sample
WORDS = 4  # of a sentence made from the vocabulary


NBest = Sequence[Sequence[Output]]  # hypotheses of each sentence, best first


class OpenedExport(Protocol):
    """An export that was read back."""

    def decode(self, sentences: Sequence[str]) -> NBest:
        """The `return_beams` hypotheses of each sentence as sequences, best first."""

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        """The log-probability of each target given its source."""


class DecodedInOneBatch:
    """A model that decodes and scores all sentences in one batch."""

    def __init__(self, model: TextDecoder, options: DecodeHParams) -> None:
        self._model = model
        self._options = dataclasses.replace(options, batch_size=ONE_BATCH)

    def decode(self, sentences: Sequence[str]) -> NBest:
        task = self._model.task.as_sequences()
        return self._model.decode(sentences, self._options, task=task)

    def score(self, sources: Sequence[str], targets: Sequence[str]) -> list[float]:
        options = DecodeHParams(batch_size=ONE_BATCH)
        scored = self._model.score_hypotheses(sources, targets, options)
        return [hypothesis.log_prob for hypothesis in scored]


def keras_model(model: TextDecoder) -> Seq2SeqModel:
    """The model that TensorFlow computes with; ValueError if another engine does."""
    keras: Seq2SeqModel | None = getattr(model.engine, "model", None)
    if keras is None:
        raise ValueError(
            "Only a model that TensorFlow loaded can be exported. Received: one loaded"
            f" with engine={model.engine.name}. Load the run without naming an engine."
        )
    return keras


def opened_run(model: TextDecoder, options: DecodeHParams) -> DecodedInOneBatch:
    """The run itself, to compare with: without XLA, which would round differently."""
    from t2tlite.decoding.tensorflow_engine import TensorFlowEngine  # loads TensorFlow

    engine = TensorFlowEngine(keras_model(model))
    run = TextDecoder(engine, model.encoders, model.manifest)
    return DecodedInOneBatch(run, options)


def check_equal(
    run: OpenedExport,
    export: OpenedExport,
    sentences: Sequence[str],
    tolerance: float = TOLERANCE,
) -> None:
    """Raises ValueError for the first sentence whose texts differ, or whose scores and
    log-probabilities differ by more than the tolerance. Blank sentences are decoded
    too.
    """
    decoded = [*sentences, *BLANK]
    expected = run.decode(decoded)
    targets = [n_best[0].text for n_best in expected]
    ours = zip(expected, run.score(decoded, targets), strict=True)
    theirs = zip(export.decode(decoded), export.score(decoded, targets), strict=True)
    for sentence, first, second in zip(decoded, ours, theirs, strict=True):
        texts, values = _texts_and_values(*first)
        other_texts, other_values = _texts_and_values(*second)
        is_equal = texts == other_texts
        if not is_equal or not np.allclose(values, other_values, 0, tolerance):
            raise ValueError(
                "An export must decode and score as the run does. Received for"
                f" {sentence!r}: {other_texts} {other_values} from the export,"
                f" {texts} {values} from the run. Please report this, with the run's"
                " hparams.json."
            )


def _texts_and_values(
    n_best: Sequence[Output], log_prob: float
) -> tuple[list[str], list[float]]:
    """The texts and the numbers of an n-best list, and the log-probability of its
    best one when it is scored.
    """
    values = [log_prob]
    for output in n_best:
        values += [output.score, output.log_prob]
    return [output.text for output in n_best], values


def count_equal(
    run: OpenedExport, export: OpenedExport, sentences: Sequence[str]
) -> int:
    """The number of sentences that have the run's best translation."""
    pairs = zip(run.decode(sentences), export.decode(sentences), strict=True)
    return sum(ours[0].text == theirs[0].text for ours, theirs in pairs)


def sample_sentences(model: TextDecoder) -> tuple[list[str], str]:
    """Sentences to verify an export with; and their origin: the run's dev data, or if
    that is gone words of the vocabulary.
    """
    samples = _usable(model, _dev_sentences(model))
    if samples:
        return samples, "of dev"
    return _usable(model, _made_sentences(model)), "made of the vocabulary's words"


def _usable(model: TextDecoder, sentences: Sequence[str]) -> list[str]:
    """A sample of the sentences that are neither blank nor too long."""
    limit = min(LONGEST, model.max_source_tokens)
    usable = []
    rows = model.source_encoder.encode_batch(sentences)
    for sentence, ids in zip(sentences, rows, strict=True):
        if 0 < len(ids) <= limit:
            usable.append(sentence)
    return usable[:: max(1, len(usable) // SAMPLES)][:SAMPLES]


def _dev_sentences(model: TextDecoder) -> list[str]:
    """The sources of dev; empty if the data is no longer there, or the run was
    imported.
    """
    manifest = model.manifest
    if not manifest.data_dir:
        return []
    try:
        dataset = open_dataset(manifest.data_dir, manifest.name)
        return dataset.store("dev").source_text()
    except (OSError, ValueError):
        return []


def _made_sentences(model: TextDecoder) -> list[str]:
    """Sentences of the vocabulary's first pieces that have only letters."""
    encoder = model.source_encoder
    pieces = (encoder.decode([i]).strip() for i in range(2, encoder.vocab_size))
    letters = filter(str.isalpha, pieces)
    words = list(itertools.islice(letters, SAMPLES * WORDS)) or ["a"]
    draw = random.Random(0)
    return [" ".join(draw.choices(words, k=WORDS)) for _ in range(SAMPLES)]
